//! Replicas and roles that change while the job runs (#4, #6, #7, #51).

use crate::harness::{PlanHarness, Stories};

#[test]
fn a_number_that_the_environment_has_restarts_the_whole_job_and_counts_nowhere() {
    for scope in ["Job", "Role", "Replica"] {
        for workers in [0, 1, 4] {
            let policy = format!("restartScope: {scope}, backoffLimit: 0");
            let mut w = PlanHarness::train("Scheduler=1 Server=1 Worker=2", &policy).started();
            w.created.clear();
            w.scale("Worker", workers).reconcile();
            let case = format!("{scope} {workers}");
            assert_eq!(w.state(), "Created Restarting", "{case}");
            assert!(w.created.is_empty(), "{case}: old and new pods must not meet");
            let message = format!(
                "ToyJob job is restarting because its number of replicas changed (Worker 2 -> {workers}), and the \
                 environment of its replicas depends on that number."
            );
            assert_eq!(w.message_of("Restarting"), message);
            let event = w.events.last().unwrap();
            assert!(!event.warning);
            assert_eq!(&*event.reason, "ToyJobResized");
            assert_eq!(&event.message, &message);
            w.restart_operator().reconcile().finish_deletions().reconcile();
            assert_eq!(w.pods.len(), 2 + usize::try_from(workers).unwrap(), "{case}");
            assert!(w.attempts().values().all(|attempt| *attempt == 1), "{case}");
            w.all_running();
            assert_eq!((w.state(), w.status().restart_count), (running(), 0), "{case}");
            assert_eq!(w.status().failure, None, "{case}");
        }
    }
}

fn running() -> String {
    "Created Running".to_owned()
}

#[test]
fn a_second_resize_during_a_restart_restarts_the_new_pods() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "").started();
    w.scale("Worker", 3).reconcile();
    w.scale("Worker", 4).reconcile().finish_deletions().reconcile();
    w.scale("Worker", 2).reconcile().finish_deletions().reconcile();
    w.all_running();
    assert_eq!((w.state(), w.pods.len()), (running(), 3));
    let all = w.attempts();
    assert!(all.values().all(|attempt| *attempt == all["worker-0"]), "{all:?}");
    assert_eq!(w.status().restart_count, 0);
}

#[test]
fn a_failure_of_a_job_that_is_resized_counts_and_the_restart_is_one() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:OnFailure", "backoffLimit: 1").started();
    w.scale("Worker", 3).pod("worker-0").exits(1).all_replaced();
    assert_eq!((w.state(), w.status().restart_count), (running(), 1));
    assert!(w.attempts().values().all(|attempt| *attempt == 1));
}

/// The Go operator and earlier versions record no numbers of replicas.
#[test]
fn a_job_without_recorded_numbers_survives_an_upgrade() {
    for restarts in 0..2 {
        let mut w = PlanHarness::train("Scheduler=1 Worker=2:ExitCode", "").started();
        for _ in 0..restarts {
            w.pod("worker-0").exits(137).all_replaced();
        }
        w.edit(|job| {
            job.metadata.generation = Some(7);
            job.status.as_mut().unwrap().recovery.sizes.clear();
        });
        let before = (w.pods.clone(), w.state());
        w.restart_operator().reconcile();
        assert_eq!((w.pods.clone(), w.state()), before);
        w.scale("Worker", 3).reconcile();
        assert_eq!(w.state(), "Created Restarting", "the numbers are recorded now");
    }
}

#[test]
fn a_job_that_is_edited_before_its_first_status_is_stored_restarts() {
    for (generation, state) in [(1, "Running"), (2, "Restarting")] {
        let mut w = PlanHarness::train("Scheduler=1 Worker=2", "");
        w.reconcile();
        w.edit(|job| {
            job.status = None;
            job.metadata.generation = Some(generation);
        });
        w.restart_operator().all_running();
        assert_eq!(w.state(), format!("Created {state}"));
    }
}

#[test]
fn a_spec_that_is_corrected_before_the_first_status_restarts_the_job() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "");
    w.reconcile();
    w.edit(|job| job.status = None);
    w.restart_operator().scale("Worker", -1);
    w.edit(|job| job.metadata.generation = Some(2));
    assert_eq!(w.reconcile_once().state(), "Failed");
    w.scale("Worker", 1);
    w.edit(|job| job.metadata.generation = Some(3));
    assert_eq!(w.reconcile().state(), "Created Restarting");
}

#[test]
fn a_suspended_or_finished_job_is_resized_without_a_restart() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "").started();
    w.suspend(true).reconcile().finish_deletions().reconcile();
    w.scale("Worker", 3).reconcile().suspend(false).reconcile();
    w.all_running();
    assert_eq!((w.state(), w.pods.len()), (running(), 4));
    assert!(!w.event_reasons().contains(&"ToyJobResized"));
    w.pod("scheduler-0").succeeds().reconcile();
    w.after(10).reconcile().scale("Worker", 5).reconcile();
    assert_eq!(w.state(), "Created Succeeded");
    assert!(!w.event_reasons().contains(&"ToyJobResized"));
}

#[test]
fn a_job_without_pods_is_resized_without_a_restart() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "").started();
    w.scale("Worker", 3);
    w.pods.clear();
    w.edit(|job| job.status.as_mut().unwrap().recovery.started.clear());
    w.reconcile().reconcile();
    assert_eq!(w.pods.len(), 4);
    assert!(!w.event_reasons().contains(&"ToyJobResized"));
    assert_eq!(w.status().recovery.sizes["Worker"], 3);
}

#[test]
fn more_workers_are_made_and_the_old_ones_stay_as_they_are() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").elastic().started();
    let old = w.pods["job-worker-0"].clone();
    w.scale("Worker", 3).reconcile();
    assert_eq!(w.pod_names(), ["scheduler-0", "worker-0", "worker-1", "worker-2"]);
    assert_eq!(w.service_names(), w.pod_names());
    assert_eq!(
        w.pods["job-worker-0"], old,
        "pods keep the environment they were born with"
    );
    assert_eq!(w.all_running().state(), "Created Running");
    assert_eq!(w.counts("Worker"), (3, 0, 0));
    assert_eq!(w.status().restart_count, 0);
}

#[test]
fn surplus_workers_are_deleted_once_and_do_not_count_as_failures() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=3", "backoffLimit: 0")
        .elastic()
        .started();
    w.created.clear();
    w.scale("Worker", 1).reconcile();
    assert_eq!(
        w.pod_names(),
        ["scheduler-0", "worker-0", "(worker-1)", "(worker-2)"]
    );
    assert_eq!(w.service_names(), ["scheduler-0", "worker-0"]);
    assert_eq!(w.finish_deletions().reconcile().state(), "Created Running");
    assert_eq!(w.counts("Worker"), (1, 0, 0));
    assert!(w.created.is_empty(), "no hole is filled");
}

#[test]
fn a_hole_below_a_surplus_pod_is_not_filled() {
    for scope in ["Job", "Replica"] {
        let mut w = PlanHarness::train("Scheduler=1 Worker=4", &format!("restartScope: {scope}"))
            .elastic()
            .started();
        w.created.clear();
        w.scale("Worker", 1).reconcile().pod("worker-1").vanishes();
        w.pod("worker-2").vanishes().reconcile();
        assert_eq!(
            w.pod_names(),
            ["scheduler-0", "worker-0", "(worker-3)"],
            "{scope}"
        );
        assert!(w.created.is_empty(), "{scope}: {:?}", w.created);
        assert_eq!(w.status().restart_count, 0, "{scope}");
    }
}

#[test]
fn workers_scaled_down_and_up_again_do_not_count_as_failures() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=3", "backoffLimit: 0")
        .elastic()
        .started();
    w.scale("Worker", 2).reconcile().scale("Worker", 3).reconcile();
    assert_eq!(
        w.pod_names(),
        ["scheduler-0", "worker-0", "worker-1", "(worker-2)"]
    );
    assert_eq!(w.all_replaced().state(), "Created Running");
    assert_eq!(w.status().restart_count, 0);
    assert_eq!(w.counts("Worker"), (3, 0, 0));
}

#[test]
fn a_failed_surplus_pod_has_no_effect() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "").elastic().started();
    w.scale("Worker", 1).pod("worker-1").exits(1);
    assert_eq!(w.reconcile().state(), "Created Running");
}

#[test]
fn scaling_down_to_those_that_are_done_is_success() {
    let mut w = PlanHarness::train("Worker=3", "").started();
    w.pod("worker-0").succeeds().reconcile();
    assert_eq!(w.scale("Worker", 1).reconcile().state(), "Created Succeeded");
}

#[test]
fn a_role_may_be_added_and_taken_away() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").elastic().started();
    w.edit(|job| {
        let worker = job.spec.replica_specs["Worker"].clone();
        job.spec.replica_specs.insert("Server".into(), worker);
    });
    assert_eq!(w.reconcile().pod_names(), ["scheduler-0", "server-0", "worker-0"]);
    w.all_running();
    w.edit(|job| {
        job.spec.replica_specs.remove("Server");
    });
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(
        (w.pod_names(), w.service_names()),
        (
            vec!["scheduler-0".into(), "worker-0".to_owned()],
            vec!["scheduler-0".into(), "worker-0".to_owned()]
        )
    );
    assert!(!w.status().replica_statuses.contains_key("Server"));
    assert_eq!(w.state(), "Created Running");
    assert_eq!(w.status().restart_count, 0);
}

#[test]
fn a_role_that_is_added_again_has_no_lost_replicas() {
    let mut w = PlanHarness::train("Scheduler=1 Server=1 Worker=1", "")
        .elastic()
        .started();
    let server = w.job.spec.replica_specs["Server"].clone();
    w.edit(|job| {
        job.spec.replica_specs.remove("Server");
    });
    w.reconcile().finish_deletions().reconcile();
    w.edit(|job| {
        job.spec.replica_specs.insert("Server".into(), server);
    });
    assert_eq!(w.reconcile().all_running().state(), "Created Running");
    assert_eq!(w.status().restart_count, 0);
}

#[test]
fn names_identify_replicas_and_labels_are_restored() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").started();
    let labels = w.pod("worker-0").object().metadata.labels.as_mut().unwrap();
    let before = labels.clone();
    labels.insert("training.kubeflow.org/replica-index".into(), "100000".into());
    w.created.clear();
    w.reconcile();
    assert!(w.created.is_empty());
    assert_eq!(w.state(), "Created Running");
    assert_eq!(w.counts("Worker"), (1, 0, 0));
    assert_eq!(w.pod("worker-0").object().metadata.labels, Some(before));
}

#[test]
fn a_role_of_none_comes_and_goes_no_more() {
    let w = PlanHarness::train("Scheduler=1 Server=0 Worker=1", "").started();
    assert_eq!(w.pod_names(), ["scheduler-0", "worker-0"]);
    assert_eq!(w.created.len(), 2);
    assert!(w.status().replica_statuses.contains_key("Server"));
}
