//! The API server is away while many jobs have work to do.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use training_job::api::ConditionType;
use training_job_testbed::cluster::{Link, WAIT_TIMEOUT, wait_for_all};
use training_operator_testing::operator::Operator;

use crate::rig::jobs::{is, job};
use crate::rig::stage::Stage;

const JOBS: usize = 100;

/// Attempts that the operator makes at least while the test watches. Their number is the length of the absence.
const ATTEMPTS: usize = 8;

/// The beginning of the line that says that the server is away.
const AWAY: &str = "the API server is away";

/// Warnings in a whole absence.
const MAX_LINES: usize = 5;

/// The operator's limit of writes at a time.
const MAX_WRITES_IN_FLIGHT: usize = 16;

/// Connections that may be opened in each second of an absence, and beside.
const MAX_CONNECTIONS_PER_SECOND: f64 = 5.0;

#[tokio::test]
async fn many_busy_jobs_open_few_connections_write_few_lines_and_lose_no_event_while_the_server_is_away() {
    let stage = Stage::new("away").await;
    let relay = stage.cluster.relay(&stage.cluster.kubeconfig()).await;
    let namespace = format!("--namespace={}", stage.namespace);
    let flags = [&*namespace, "--enable-scheme=MXJob"];
    let operator = Operator::start(stage.cluster, relay.kubeconfig(), &flags);
    operator.ready().await;
    for (number, link) in [Link::Closed, Link::Unavailable].into_iter().enumerate() {
        let name = |job: usize| format!("j{number}-{job}");
        let creates = join_all((0..JOBS).map(|number| stage.create(job(&name(number), 1))));
        let goes = async {
            stage.until_job(&name(0), |job| job.status.is_some()).await;
            let before = (relay.traffic().connections, operator.log().len());
            relay.set(link);
            (before, Instant::now())
        };
        let (_, ((connections, lines), gone)) = tokio::join!(creates, goes);
        // Each call in flight may open one more connection, because the client sends a call again that was not sent
        // yet when its connection was closed, and closes the connection of a call that got 503. The calls must have
        // their answers before the link changes again, which breaks them once more. So the count begins when the
        // operator knows of the absence.
        let attempts = async {
            while !operator.log()[lines..].iter().any(|line| has(line, AWAY)) {
                sleep(Duration::from_millis(20)).await;
            }
            let wanted = relay.traffic().connections + ATTEMPTS + MAX_WRITES_IN_FLIGHT;
            while relay.traffic().connections < wanted {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(WAIT_TIMEOUT, attempts)
            .await
            .expect("the operator tries again");
        let opened = relay.traffic().connections - connections;
        let seconds = gone.elapsed().as_secs_f64() + 1.0;
        let allowed = MAX_CONNECTIONS_PER_SECOND * seconds + MAX_WRITES_IN_FLIGHT as f64;
        assert!(
            opened as f64 <= allowed,
            "{link:?}: {opened} in {:?}",
            gone.elapsed()
        );
        relay.set(Link::Up);
        for job_number in 0..JOBS {
            stage.until(&name(job_number), ConditionType::Running).await;
        }

        let log = operator.log().split_off(lines);
        let count = |message: &str| log.iter().filter(|line| has(line, message)).count();
        assert_eq!(count(AWAY), 1, "{link:?}: {log:#?}");
        assert_eq!(count("the API server is back"), 1, "{link:?}");
        // kube warns of each certificate that it does not check.
        let is_warning = |line: &&Value| line["level"] != "INFO" && !has(line, "Server cert bypassed");
        let warnings: Vec<_> = log.iter().filter(is_warning).collect();
        // A call whose connection breaks while another one still answers fails by itself.
        assert!(warnings.len() <= MAX_LINES, "{link:?}: {warnings:#?}");
        let lost = operator
            .metric("training_operator_events_dropped_total{cause=\"call\"}")
            .await;
        assert_eq!(lost.unwrap_or_default(), 0.0, "{link:?}");
    }
    let jobs = stage.jobs().list(&ListParams::default()).await.unwrap();
    assert_eq!(
        jobs.iter().filter(|job| is(job, ConditionType::Running)).count(),
        2 * JOBS
    );
    // A create whose response is lost has no event, because the operator finds the object later. There are at most so
    // many in each of the two absences.
    let least = 2 * 2 * JOBS - 2 * MAX_WRITES_IN_FLIGHT;
    let is_create = |event: &&Event| {
        matches!(
            event.reason.as_deref(),
            Some("SuccessfulCreatePod" | "SuccessfulCreateService")
        )
    };
    let events: Api<Event> = Api::namespaced(stage.cluster.client(), &stage.namespace);
    wait_for_all(events, "", |events: &[Event]| {
        events.iter().filter(is_create).count() >= least
    })
    .await;
    operator.expect_well();
}

fn has(line: &Value, message: &str) -> bool {
    line["message"]
        .as_str()
        .is_some_and(|text| text.starts_with(message))
}
