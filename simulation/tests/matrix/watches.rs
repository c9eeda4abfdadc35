//! Watches that end, or fall silent.

use serde_json::json;
use training_job_mxnet::MXJob;
use training_job_simulation::faults::CallFault::{Gone, Lost, Refused, Slow};
use training_job_simulation::faults::PodFate::{Pends, Runs, Succeeds};
use training_job_simulation::modes::crowd::{self, Size};
use training_job_simulation::simulation::{SMALL, Simulation, train};

use crate::harness::{
    PAIR, assert_ends, assert_within, call, created_and_deleted, everywhere, fill_a_page, metric, reads,
    settle_and_check, sim_of, stale, start_with_metrics, succeeds, success,
};

/// Watches resume where they were. A watch without any event for two minutes, not even a bookmark (which a server
/// sends each minute), may wait for versions that never come, after a restored backup. The operator then lists once.
#[tokio::test(start_paused = true)]
async fn watches_end_every_few_seconds() {
    for seconds in [1, 5] {
        let mut sim = sim_of(succeeds, json!({})).await;
        for _ in 0..220 / seconds {
            sim.advance(seconds).await;
            sim.cluster.cut_watches(None);
        }
        let lists = sim.network.count("list", "");
        assert_within(lists, 3..=6, format_args!("{seconds} s: lists"));
        assert_ends(&sim, "job", "Succeeded", "");
        assert_eq!(created_and_deleted(&sim, "pods job-worker-0"), (1, 0));
        settle_and_check(&mut sim).await;
    }
}

/// A server under load ends the watches of readers that were slow for a moment. Each watch resumes immediately. No
/// update is older than two seconds (I18), there is no additional list, and nothing is created twice. The same holds
/// with many jobs.
#[tokio::test(start_paused = true)]
async fn watches_end_after_each_event() {
    for events in [1, 3] {
        let mut sim = stale(succeeds, 2_000, 0);
        sim.start();
        sim.network.end_watches(Some(events));
        for number in 0..20 {
            sim.create(train(&format!("job-{number}"), &SMALL)).await;
        }
        sim.advance(300).await;
        sim.assert_no_violations();
        // Each of 80 pods is created, bound, runs, and ends.
        let ended = sim.network.ended_watches();
        assert!(ended >= 4 * 80 / events, "{events} events: {ended} watches");
        assert_eq!(sim.network.count("list", ""), 4, "{events} events");
        let counts = sim.monitor.child_counts();
        assert!(counts.values().all(|(made, _)| *made == 1), "{counts:?}");
        for number in 0..20 {
            assert!(sim.conditions(&format!("job-{number}")).ends_with("Succeeded"));
        }
        settle_and_check(&mut sim).await;
    }
}

#[test]
fn watches_of_many_jobs_end_after_each_event() {
    let summary = crowd::run(Size { jobs: 60, pods: 4 }, Some(1), |_| ());
    assert!(summary.violations.is_empty(), "{:#?}", summary.violations);
}

#[test]
fn a_read_gets_410_once() {
    everywhere(&success(), reads, &[Refused(410, "Expired")]);
}

#[tokio::test(start_paused = true)]
async fn watches_get_410_for_an_hour() {
    for fault in [Gone, Refused(410, "Expired")] {
        for resource in ["pods", "services", "mxjobs", ""] {
            let mut sim = Simulation::without_operator(succeeds);
            sim.network
                .fail_next("watch", resource, usize::MAX, fault.clone());
            sim.start();
            sim.create(train("job", &SMALL)).await;
            sim.advance(3_600).await;
            let lists = sim.network.count("list", resource);
            let most = if resource.is_empty() { 4 * 130 } else { 130 };
            assert_within(
                lists,
                50..=most,
                format_args!("{fault:?}, {resource}: lists in an hour"),
            );
            assert_ends(&sim, "job", "Succeeded", format_args!("lists are enough"));
            assert_eq!(created_and_deleted(&sim, "pods job-worker-0"), (1, 0));
            settle_and_check(&mut sim).await;
        }
    }
}

/// One of the three watches is silent, and its connection stays open. The metrics show the silence, and its end.
#[tokio::test(start_paused = true)]
async fn a_watch_is_dead_and_the_others_live() {
    for (resource, label) in [
        ("pods", "pods"),
        ("services", "services"),
        ("mxjobs", "mxjobs.kubeflow.org"),
    ] {
        let mut sim = Simulation::without_operator(|_, _| Succeeds(30));
        let metrics = start_with_metrics(&mut sim, 16, |operator| operator.manage::<MXJob>());
        let label = format!("{{resource=\"{label}\"}}");
        let of = |name: &str| metric(&metrics, &[&format!("training_operator_watch_{name}{label}")]);
        sim.advance(10).await;
        sim.cluster.freeze_watches(Some(resource));
        // The first attempt to watch again gets no response either.
        sim.network.fail_next("watch", resource, 1, Lost);
        sim.create(train("job", &SMALL)).await;
        let (last, failures) = (of("last_event_timestamp_seconds"), of("failures_total"));
        sim.advance(60).await;
        assert_eq!(of("last_event_timestamp_seconds"), last, "{resource} is silent");
        assert_eq!(failures, 0.0, "{resource} is silent");
        sim.advance(200).await;
        assert_ends(&sim, "job", "Succeeded", resource);
        assert_eq!(
            created_and_deleted(&sim, "pods job-worker-0"),
            (1, 0),
            "{resource}"
        );
        assert!(
            of("last_event_timestamp_seconds") > last && of("failures_total") > 0.0,
            "{resource}"
        );
        settle_and_check(&mut sim).await;
    }
}

/// Jobs are created, end and are deleted during a list of several pages. Its second page is refused because the list
/// is too old.
#[tokio::test(start_paused = true)]
async fn things_change_while_a_long_list_is_read() {
    for fault in [Slow(3_000, 3_000), Refused(410, "Expired")] {
        let mut sim = Simulation::new(|name, _| match name.get(..2) {
            Some("a-") => Pends,
            Some("en") => Succeeds(8),
            _ => Runs,
        });
        for number in 0..20 {
            sim.create(train(&format!("job-{number}"), &PAIR)).await;
        }
        fill_a_page(&sim).await;
        sim.advance(20).await;
        let mut pages = 0;
        let page = fault.clone();
        sim.network.add_rule(move |call| {
            let hit = call.verb == "list" && call.query.contains("continue=") && pages < 2;
            pages += u32::from(hit);
            hit.then(|| page.clone())
        });
        sim.cluster.compact();
        sim.cluster.cut_watches(None);
        for number in 0..20 {
            sim.create(train(&format!("ends-{number}"), &SMALL)).await;
            if number % 2 == 0 {
                sim.delete(&format!("job-{number}")).await;
            }
            sim.advance(1).await;
        }
        sim.advance(60).await;
        for number in 0..20 {
            assert!(
                sim.conditions(&format!("ends-{number}")).ends_with("Succeeded"),
                "{fault:?}"
            );
        }
        let counts = sim.monitor.child_counts();
        assert!(
            counts.values().all(|(made, _)| *made == 1),
            "{fault:?}: nothing is made twice"
        );
        assert_eq!(sim.pods_now().len(), 500 + 2 * 10 + 4 * 20, "{fault:?}");
        settle_and_check(&mut sim).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pods_change_a_thousand_times_a_second() {
    let mut sim = Simulation::without_operator(succeeds);
    let metrics = start_with_metrics(&mut sim, 16, |operator| operator.manage::<MXJob>());
    sim.create(train("job", &SMALL)).await;
    sim.advance(10).await;
    sim.network.take_calls();
    let path = "/api/v1/namespaces/default/pods/job-worker-0";
    for second in 0..5 {
        for moment in 0..1_000 {
            let note = serde_json::json!({"metadata": {"annotations": {"n": format!("{second}-{moment}")}}});
            call(&sim, "PATCH", path, note).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
    assert_eq!(sim.network.take_calls().len(), 0, "nothing is to be done or told");
    let passes = metric(&metrics, &["_count{", "result="]);
    assert_within(passes, 50.0..=560.0, "passes for 5,000 changes");
    // The end is reported within two seconds, even if other things change.
    sim.advance(92).await;
    assert!(
        sim.status("job")["replicaStatuses"]["Worker"]["succeeded"].as_i64() == Some(2),
        "{}",
        sim.status("job")
    );
    settle_and_check(&mut sim).await;
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_cause_few_calls() {
    let sim = sim_of(|_, _| Runs, json!({})).await;
    sim.advance(10).await;
    sim.network.take_calls();
    for _ in 0..20_000 {
        sim.cluster.cut_watches(None);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let calls = sim.network.take_calls().len();
    assert!(calls < 150, "{calls} calls in 200 seconds");
    sim.assert_no_violations();
}
