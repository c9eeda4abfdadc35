//! Unreadable responses.

use training_job_testbed::cluster::{Fault, On, Reply};

use crate::rig::jobs::{cleaned, job};
use crate::rig::stage::Stage;

fn page() -> Reply {
    Reply::raw(200, "text/html", "<html><body>Sign in</body></html>")
}

fn half() -> Reply {
    Reply::raw(200, "application/json", r#"{"kind":"#)
}

/// A valid object of the API server, but not the requested one.
fn status() -> Reply {
    Reply::status(200, "")
}

#[tokio::test]
async fn answers_that_cannot_be_read_are_errors_and_nothing_more() {
    let stage = Stage::new("unreadable").await;
    let mut planned = Vec::new();
    for (n, resource) in ["mxjobs", "pods", "services"].into_iter().enumerate() {
        for verb in ["list", "watch"] {
            let faults = [
                Fault::Refused(page()),
                Fault::Refused(half()),
                Fault::Refused(status()),
                Fault::BrokenOff,
            ];
            // Another test covers watches that break off.
            let count = if verb == "list" { 4 } else { 3 };
            // The faults occur in turn, so two for each call cover all kinds of fault.
            for fault in faults.into_iter().take(count).cycle().skip(n).take(2) {
                planned.push(stage.proxy.fault(On::call(verb, resource).times(1), fault));
            }
        }
    }
    let faults = [
        ("page", Fault::Misreported(page())),
        ("half", Fault::Misreported(half())),
        ("status", Fault::Misreported(status())),
        ("broken", Fault::BrokenOff),
        ("lie", Fault::Refused(status())),
    ];
    for (name, fault) in &faults {
        for (verb, resource) in [
            ("create", "services"),
            ("create", "pods"),
            ("patch", "mxjobs/status"),
            ("delete", "pods"),
        ] {
            let on = On::call(verb, resource).prefixed(name).times(1);
            planned.push(stage.proxy.fault(on, fault.clone()));
        }
    }
    let operator = stage.operator();
    for (name, _) in &faults {
        stage.create(cleaned(job(name, 2), "All")).await;
    }
    stage.good_job().await;
    for (name, _) in &faults {
        stage.until_all_run(name, 2).await;
        stage.succeed(name, 2).await;
    }
    for (name, _) in &faults {
        stage.until_pods(name, 0).await;
    }
    for plan in &planned {
        plan.happened(1).await;
    }
    stage.expect_no_harm();
    operator.expect_well();
}
