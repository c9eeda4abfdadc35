//! A job on which a hook of its kind panics.

use training_job_local::NodeConfig;
use training_job_testbed::PANICS;

use super::bad_manifest::{GOOD, jobs};

fn manifest(hook: &str) -> String {
    let named = format!("name: blocks\n  annotations: {{{PANICS}: {hook}}}");
    let text = GOOD.replacen("name: blocks", &named, 1);
    text.replacen(
        "image: example.com/toy:1",
        "image: toy\n            command: [sleep, '60']",
        1,
    )
}

#[test]
fn a_hook_that_panics_at_the_check_of_a_manifest_is_named() {
    let error = jobs().yaml(&manifest("env")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "<yaml>:1:1: the hook env of ToyJob panicked: no environment; report it to the authors of the kind"
    );
}

#[tokio::test]
async fn a_run_ends_when_a_hook_panics_and_names_it() {
    let jobs = jobs().yaml(&manifest("outcome")).unwrap();
    let mut run = jobs.start(NodeConfig::default()).await.unwrap();
    while run.next().await.is_some() {}
    assert!(!run.succeeded());
    assert_eq!(
        run.dead_ends(),
        [
            "ToyJob blocks does not change, because the hook outcome of ToyJob panicked: no outcome; \
             report it to the authors of the kind"
        ]
    );
}
