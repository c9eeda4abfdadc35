//! Admission and quota. The errors are those of a real API server. Other tests provoke them there.

use serde_json::json;
use training_job_simulation::faults::CallFault::{Refused, Slow};
use training_job_simulation::faults::PodFate::{Runs, Succeeds, SucceedsWith};
use training_job_simulation::scenario::users::set_quota;
use training_job_simulation::simulation::{SMALL, Simulation, train};

use crate::harness::{
    assert_ends, assert_made, assert_within, edit, event_count, policy, settle_and_check, with_policy,
};

/// A quota allows a limited number of pods, from none to all but one, and later all.
#[tokio::test(start_paused = true)]
async fn a_quota_lets_in_some_of_many() {
    for quota in [0, 1, 5, 61] {
        let mut sim = Simulation::new(|_, _| Succeeds(500));
        let mut left = quota;
        sim.network.add_rule(move |call| {
            if !call.is("create", "pods") {
                return None;
            }
            let over = left == 0;
            left -= usize::from(!over);
            over.then_some(Refused(403, "Forbidden"))
        });
        sim.create(train("job", &[("Scheduler", 1), ("Server", 1), ("Worker", 60)]))
            .await;
        sim.create(train("other", &SMALL)).await;
        sim.advance(300).await;
        if quota > 0 {
            let status = sim.status("job");
            assert_eq!(status["waitingReason"], "FailedCreatePod");
            sim.advance(30).await;
            assert!(status["waitingSince"].is_string(), "{status}");
            assert_eq!(sim.status("job")["waitingSince"], status["waitingSince"]);
        }
        assert_eq!(sim.pods_now().len(), quota);
        assert_eq!(sim.network.count("delete", ""), 0, "what is there is kept");
        assert_eq!(event_count(&sim, "FailedCreatePod"), 2, "each job says so once");
        let creates = sim.network.count("create", "pods");
        // Each of about twelve passes of each job has one failed call, or two that were in flight together.
        assert_within(
            creates,
            quota + 10..quota + 2 * 14 * 12,
            "creates in five minutes",
        );
        // The scheduler decides the outcome, and is created first.
        assert_eq!(sim.conditions("job").contains("Running"), quota > 0);
        settle_and_check(&mut sim).await;
        assert_ends(&sim, "job", "Succeeded", "");
        assert!(sim.monitor.child_counts().values().all(|(made, _)| *made == 1));
    }
}

/// Many jobs share a quota that is far smaller than what they need together, and the pods of each wait for the others. Jobs
/// that hold a part must not keep each other waiting.
#[tokio::test(start_paused = true)]
async fn every_job_ends_under_a_quota_for_few_of_them() {
    const JOBS: usize = 40;
    fn pods_of(job: &str) -> usize {
        let number: usize = job.split('-').nth(1).unwrap().parse().unwrap();
        3 + number % 3
    }
    // The jobs are created in groups of this many, one group in each second.
    for (quota, group) in [(5, 40), (7, 40), (7, 1), (12, 8), (23, 20)] {
        let mut sim = Simulation::new(|pod, _| SucceedsWith(pods_of(pod), 2));
        sim.network.allow_calls(100_000);
        // The calls of different jobs overtake each other.
        let mut number = 0;
        sim.network.add_rule(move |call| {
            number += 1;
            (call.verb != "watch").then_some(Slow(number * 37 % 100, 10))
        });
        set_quota(&sim.cluster, Some(quota)).await;
        let names: Vec<_> = (0..JOBS).map(|number| format!("job-{number}")).collect();
        for group in names.chunks(group) {
            for name in group {
                let workers = i32::try_from(pods_of(name) - 2).unwrap();
                sim.create(train(
                    name,
                    &[("Scheduler", 1), ("Server", 1), ("Worker", workers)],
                ))
                .await;
            }
            sim.advance(1).await;
        }
        settle_and_check(&mut sim).await;
        for name in &names {
            let conditions = sim.conditions(name);
            assert!(
                conditions.ends_with("Succeeded"),
                "quota {quota}: {name} is {conditions}"
            );
        }
    }
}

/// Admission refuses the pods with any status code until its cause is fixed. The job has one event, which names the pods
/// and the cause. Meanwhile jobs with a deadline end at the deadline, and a job can be suspended.
#[tokio::test(start_paused = true)]
async fn denied_pods_are_tried_ever_more_rarely() {
    for code in [400, 402, 403, 418, 451, 499] {
        let mut sim = Simulation::new(|_, _| Runs);
        let denied = Refused(code, "denied the request");
        sim.network.fail_next("create", "pods", usize::MAX, denied);
        sim.create(train("job", &SMALL)).await;
        sim.create(train("suspended", &SMALL)).await;
        let deadline = json!({"activeDeadlineSeconds": 600});
        sim.create(with_policy("limited", &SMALL, deadline)).await;
        sim.advance(1_800).await;
        assert_ends(&sim, "limited", "Failed", code);
        let events = sim.cluster.list("events", None);
        let told = events
            .iter()
            .filter(|event| event.value()["reason"] == "FailedCreatePod");
        let told: Vec<_> = told.map(|event| event.value()).collect();
        assert_eq!(told.len(), 3, "{code}");
        for event in told {
            let message = event["message"].as_str().unwrap();
            let is_right = message.contains("-scheduler-0") && message.contains("denied the request");
            assert!(is_right && event["type"] == "Warning", "{code}: {event}");
        }
        let creates = sim.network.count("create", "pods");
        assert_within(
            creates,
            20..3 * 4 * 30,
            format_args!("{code}: creates in half an hour"),
        );
        edit(&sim, "mxjobs", "suspended", policy(json!({"suspend": true}))).await;
        sim.advance(5).await;
        assert_eq!(sim.conditions("suspended"), "Created Suspended", "{code}");
        settle_and_check(&mut sim).await;
        assert_eq!(sim.conditions("job"), "Created Running", "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn services_that_a_limit_refuses_are_created_when_another_job_is_gone() {
    for fault in [Refused(403, "exceeded quota"), Refused(500, "range is full")] {
        let mut sim = Simulation::new(|_, _| Runs);
        sim.create(train("other", &SMALL)).await;
        sim.advance(5).await;
        let (mut left, refused) = (2, fault.clone());
        sim.network.add_rule(move |call| {
            let is_over = left == 0;
            let is_create = call.is("create", "services");
            left -= usize::from(is_create && !is_over);
            (is_create && is_over).then(|| refused.clone())
        });
        sim.create(train("job", &SMALL)).await;
        sim.advance(300).await;
        assert_eq!(event_count(&sim, "FailedCreateService"), 1, "{fault:?}");
        assert_eq!(
            sim.status("job")["waitingReason"],
            "FailedCreateService",
            "{fault:?}"
        );
        assert_eq!(sim.services_now().len(), 4 + 2, "{fault:?}: it gets no pods");
        assert_eq!(sim.pods_now().len(), 4, "{fault:?}: it gets no pods");
        // By now the backoff is long.
        sim.network.heal();
        sim.delete("other").await;
        sim.advance(5).await;
        assert_eq!(sim.conditions("job"), "Created Running", "{fault:?}");
        settle_and_check(&mut sim).await;
        assert_made(&sim, "services job-worker-1", 1, "");
        assert_eq!(sim.status("job")["waitingReason"], json!(null), "{fault:?}");
    }
}

/// The end of a pod lets the job begin that waits longest, whatever its backoff is by then.
#[tokio::test(start_paused = true)]
async fn jobs_that_a_quota_refuses_begin_in_order_when_others_end() {
    let sim = Simulation::new(|_, _| Succeeds(10));
    set_quota(&sim.cluster, Some(1)).await;
    for number in 0..30 {
        sim.create(train(&format!("job-{number}"), &[("Worker", 1)]))
            .await;
        sim.advance(1).await;
    }
    // One second from the end of a pod to the next pod, which takes a second to start and ten to end.
    sim.advance(30 * 13).await;
    for number in 0..30 {
        assert_ends(&sim, &format!("job-{number}"), "Succeeded", "");
    }
    let creates = sim.network.count("create", "pods");
    assert!(creates < 30 * 8, "{creates} creates of 30 pods");
    sim.assert_no_violations();
}
