//! Kinds whose roles are in lists. The kinds of this repository have their roles in maps.

use training_job::admission;
use training_job_testbed::cluster::ControlPlane;
use training_job_testbed::{GroupJob, ListJob};

use super::costs::refused;

#[tokio::test]
async fn the_rules_of_lists_are_cheap_enough() {
    let plane = ControlPlane::shared().await;
    let definition = admission::definition::<ListJob>().unwrap();
    assert_eq!(refused(plane, &definition).await, []);
    let definition = admission::definition::<GroupJob>().unwrap();
    assert_eq!(refused(plane, &definition).await, []);
}
