//! Temporary errors: 429 and 5xx, before and after the call took effect, and slow responses.

use std::time::Duration;

use serde_json::Value;
use training_job_testbed::cluster::{Fault, On, Planned, Reply};

use crate::rig::jobs::{cleaned, job};
use crate::rig::stage::Stage;

#[tokio::test]
async fn calls_are_delayed_as_long_as_429_requests() {
    let stage = Stage::new("too-many-requests").await;
    let too_many = || Reply::status(429, "TooManyRequests");
    let busy = |on: On, reply: Reply| stage.proxy.fault(on.times(1), Fault::Refused(reply));
    let of = |verb, resource| On::call(verb, resource).prefixed("a");
    let planned = [
        busy(On::call("list", "mxjobs"), too_many().header("retry-after", "1")),
        busy(On::call("watch", "pods"), too_many()),
        busy(
            On::call("list", "services"),
            too_many().header("retry-after", "whenever"),
        ),
        // The response of the API server's flow control.
        busy(
            of("create", "services"),
            Reply::raw(429, "text/plain", "Too many.").header("retry-after", "2"),
        ),
        busy(
            of("create", "pods"),
            too_many().header("retry-after", "1.5 moons"),
        ),
        busy(of("patch", "mxjobs/status"), too_many()),
        busy(of("create", "events"), too_many()),
        busy(of("delete", "pods"), too_many().header("retry-after", "1")),
        busy(of("delete", "services"), too_many().header("retry-after", "-5")),
    ];
    let operator = stage.operator();
    stage.create(cleaned(job("a", 2), "All")).await;
    // A job that waits does not delay the others.
    stage.good_job().await;
    stage.until_all_run("a", 2).await;
    stage.succeed("a", 2).await;
    stage.until_pods("a", 0).await;
    planned[8].happened(1).await;
    stage.proxy.wait_for(&of("delete", "services"), 2).await;
    expect_all(&planned, 1);
    let waits: Vec<_> = operator
        .failed_passes("a")
        .iter()
        .map(|line| (text(line, "problem"), line["wait_ms"].as_u64().unwrap()))
        .collect();
    let asked = waits
        .iter()
        .find(|(problem, _)| problem.contains("Too many."))
        .unwrap();
    assert!(asked.1 >= 2_000, "{waits:?}");
    // Without a readable delay the operator uses its backoff, which begins at half a second.
    assert!(
        waits.iter().all(|(_, wait)| (500..60_000).contains(wait)),
        "{waits:?}"
    );
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn server_errors_are_got_over_whether_or_not_the_call_took_effect() {
    let stage = Stage::new("server-errors").await;
    let replies = [
        (500, "InternalError"),
        (502, ""),
        (503, "ServiceUnavailable"),
        (504, "Timeout"),
    ];
    let mut planned = Vec::new();
    let mut names = Vec::new();
    for (code, reason) in replies {
        for after in [false, true] {
            let name = format!("j{code}{}", if after { "after" } else { "before" });
            for (verb, resource) in [
                ("create", "services"),
                ("create", "pods"),
                ("patch", "mxjobs/status"),
                ("delete", "pods"),
                ("delete", "services"),
            ] {
                let reply = Reply::status(code, reason);
                let fault = if after {
                    Fault::Misreported(reply)
                } else {
                    Fault::Refused(reply)
                };
                let on = On::call(verb, resource).prefixed(&name).times(1);
                planned.push(stage.proxy.fault(on, fault));
            }
            names.push(name);
        }
    }
    for (n, resource) in ["mxjobs", "pods", "services"].into_iter().enumerate() {
        let reply = Reply::status(replies[n].0, replies[n].1);
        planned.push(
            stage
                .proxy
                .fault(On::call("list", resource).times(1), Fault::Refused(reply.clone())),
        );
        planned.push(
            stage
                .proxy
                .fault(On::call("watch", resource).times(1), Fault::Refused(reply)),
        );
    }
    let operator = stage.operator();
    for name in &names {
        stage.create(cleaned(job(name, 2), "All")).await;
    }
    for name in &names {
        stage.until_all_run(name, 2).await;
        stage.succeed(name, 2).await;
    }
    for name in &names {
        stage.until_pods(name, 0).await;
    }
    for plan in &planned {
        plan.happened(1).await;
    }
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn warnings_and_slowness_cost_time_and_nothing_else() {
    let stage = Stage::new("slow").await;
    let warning = r#"299 - "this \"is\" old; ünd strange""#.to_owned();
    let warned = stage
        .proxy
        .fault(On::writes().prefixed("a"), Fault::Header("warning", warning));
    let late = stage.proxy.fault(
        On::call("create", "pods").prefixed("b"),
        Fault::Late(Duration::from_secs(2)),
    );
    let operator = stage.operator();
    stage.create(job("a", 2)).await;
    stage.create(job("b", 2)).await;
    stage.until_all_run("a", 2).await;
    stage.until_all_run("b", 2).await;
    stage.succeed("a", 2).await;
    stage.succeed("b", 2).await;
    assert!(warned.count() >= 6 && late.count() == 2, "{warned:?} {late:?}");
    for name in ["a", "b"] {
        assert_eq!(operator.failed_passes(name), [Value::Null; 0]);
        let events = stage.events(name).await;
        assert!(
            events.iter().all(|(reason, _)| !reason.starts_with("Failed")),
            "{events:?}"
        );
    }
    stage.expect_no_harm();
    operator.expect_well();
}

fn expect_all(planned: &[Planned], times: usize) {
    for plan in planned {
        assert!(plan.count() >= times, "{plan:?}");
    }
}

fn text(line: &Value, field: &str) -> String {
    line[field].as_str().unwrap_or_default().to_owned()
}
