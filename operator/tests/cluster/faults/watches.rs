//! Real watches end and continue.

use training_job_testbed::cluster::On;

use crate::rig::jobs::job;
use crate::rig::stage::Stage;

const RESOURCES: [&str; 3] = ["mxjobs", "pods", "services"];

/// The versions of the watches are those of the API server's events and bookmarks.
#[tokio::test]
async fn a_watch_that_ends_continues_from_its_version() {
    let stage = Stage::new("watch-ends").await;
    let operator = stage.operator_with(&["--enable-scheme=MXJob"]);
    for (n, in_order) in [(1, true), (2, false), (3, true)] {
        for resource in RESOURCES {
            stage.proxy.watched(resource, n).await;
        }
        let name = format!("j{n}");
        stage.create(job(&name, 2)).await;
        stage.until_all_run(&name, 2).await;
        for resource in RESOURCES {
            assert_eq!(stage.proxy.cut_watches(resource, in_order), 1, "{resource}");
        }
        // While no watch is open.
        stage.succeed(&name, 2).await;
    }
    for resource in RESOURCES {
        let lists = stage.proxy.count(&On::call("list", resource));
        assert_eq!(lists, 1, "{resource} listed again");
    }
    stage.expect_no_harm();
    operator.expect_well();
}
