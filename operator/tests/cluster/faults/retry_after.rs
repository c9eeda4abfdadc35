//! The delay that a response with 429 requests. The process reads it from a header.

use training_job_testbed::cluster::{Fault, On, Reply};

use crate::rig::jobs::{cleaned, job};
use crate::rig::stage::Stage;

#[tokio::test]
async fn calls_are_delayed_as_long_as_429_requests() {
    let stage = Stage::new("too-many-requests").await;
    // The API server's flow control responds with text.
    let busy = |on: On, after: &str| {
        let reply = Reply::raw(429, "text/plain", "Too many.").header("retry-after", after);
        stage.proxy.fault(on.times(1), Fault::Refused(reply))
    };
    let of = |verb, resource| On::call(verb, resource).prefixed("a");
    let planned = [
        busy(On::call("list", "services"), "whenever"),
        busy(of("create", "services"), "2"),
        busy(of("create", "pods"), "1.5 moons"),
        busy(of("delete", "services"), "-5"),
    ];
    let operator = stage.operator();
    stage.create(cleaned(job("a", 2), "All")).await;
    // A job that waits does not delay the others.
    stage.good_job().await;
    stage.until_all_run("a", 2).await;
    stage.succeed("a", 2).await;
    stage.proxy.wait_for(&of("delete", "services"), 2).await;
    for plan in &planned {
        plan.happened(1).await;
    }
    let passes = operator.failed_passes("a");
    let waits: Vec<_> = passes
        .iter()
        .map(|line| line["wait_ms"].as_u64().unwrap())
        .collect();
    // Without a readable delay the operator uses its backoff, which begins at half a second.
    assert!(waits.iter().all(|wait| (500..60_000).contains(wait)), "{waits:?}");
    assert!(waits.iter().any(|wait| *wait >= 2_000), "{waits:?}");
    stage.expect_no_harm();
    operator.expect_well();
}
