//! Scenarios of MXJobs: the conditions Running and Succeeded, restarts, and the differences between the two shapes.
//! `#n` is a defect of the Go operator v1.8.1 that the scenario must not show.

use training_job::api::SuccessPolicy;
use training_job_mxnet::MXJob;

type PlanHarness = training_job_testbed::PlanHarness<MXJob>;

/// Returns a training job in the nested shape, with roles such as `Scheduler=1 Worker=2:OnFailure`.
fn train(roles: &str, run_policy: &str) -> PlanHarness {
    PlanHarness::with(roles, &format!("jobMode: MXTrain\nrunPolicy: {{{run_policy}}}"))
}

/// Returns a training job in the inline shape.
fn inline(roles: &str, field: &str) -> PlanHarness {
    PlanHarness::with(roles, &format!("jobMode: MXTrain\n{field}"))
}

fn tune(roles: &str) -> PlanHarness {
    PlanHarness::with(roles, "jobMode: MXTune\nrunPolicy: {}")
}

#[test]
fn the_scheduler_decides_a_training() {
    let mut w = train("Scheduler=1 Server=1 Worker=2", "");
    assert_eq!(w.reconcile().state(), "Created");
    w.pod("worker-0").running().pod("server-0").running();
    assert_eq!(w.reconcile().state(), "Created", "the scheduler does not run yet");
    assert_eq!(w.all_running().state(), "Created Running");
    w.pod("worker-0").succeeds().pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("scheduler-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
    assert!(w.status().completion_time.is_some());
}

#[test]
fn without_a_scheduler_all_workers_decide() {
    let mut w = train("Server=1 Worker=2", "").started();
    assert_eq!(w.state(), "Created Running");
    w.pod("worker-0").succeeds().pod("server-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running", "worker 1 runs on");
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn with_all_workers_the_scheduler_does_not_end_the_job() {
    let mut w = train("Scheduler=1 Server=1 Worker=2", "");
    w.edit(|job| job.spec.success_policy = Some(SuccessPolicy::AllWorkers));
    let mut w = w.started();
    assert_eq!(w.state(), "Created Running");
    w.pod("scheduler-0").succeeds().pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("worker-1").succeeds();
    assert_eq!(
        w.reconcile().state(),
        "Created Succeeded",
        "the server never ends by itself"
    );
}

#[test]
fn with_all_workers_the_scheduler_makes_the_job_run_and_ends_one_without_workers() {
    let all_workers = |roles| {
        let mut w = train(roles, "");
        w.edit(|job| job.spec.success_policy = Some(SuccessPolicy::AllWorkers));
        w
    };
    let mut w = all_workers("Scheduler=1 Worker=2");
    assert_eq!(w.reconcile().state(), "Created");
    w.pod("scheduler-0").running();
    assert_eq!(w.reconcile().state(), "Created Running");
    let mut w = all_workers("Scheduler=1 Server=1").started();
    w.pod("scheduler-0").succeeds();
    assert_eq!(
        w.reconcile().state(),
        "Created Succeeded",
        "there is no worker to wait for"
    );
}

#[test]
fn a_tuning_runs_and_ends_with_its_tuner() {
    let mut w = tune("TunerTracker=1 TunerServer=2 Tuner=1");
    w.reconcile().pod("tunertracker-0").running();
    w.pod("tunerserver-0").running();
    assert_eq!(w.reconcile().state(), "Created");
    assert_eq!(w.all_running().state(), "Created Running");
    w.pod("tuner-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
    assert_eq!(
        w.pod_names(),
        [
            "tuner-0",
            "(tunerserver-0)",
            "(tunerserver-1)",
            "(tunertracker-0)"
        ],
        "helpers never end by themselves"
    );
}

#[test]
fn all_tuners_must_succeed() {
    let mut w = tune("TunerTracker=1 Tuner=2").started();
    w.pod("tuner-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("tuner-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn an_empty_mode_is_a_training() {
    let mut w = train("Worker=1", "");
    w.edit(|job| job.spec.job_mode.clear());
    let mut w = w.started();
    w.pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn tuners_restart_alone() {
    let mut w = tune("TunerTracker=1 TunerServer=2:OnFailure Tuner=1").started();
    w.pod("tunerserver-1").exits(1).reconcile();
    assert_eq!(
        w.pod_names(),
        ["tuner-0", "tunerserver-0", "tunerserver-1", "tunertracker-0"]
    );
    assert_eq!(w.attempts()["tunerserver-1"], 1);
}

/// From 128 on in the nested shape. In the inline shape, the codes that the stand-alone operator documents.
#[test]
fn each_shape_has_exit_codes_of_its_own_that_are_tried_again() {
    let state = |mut w: PlanHarness, code| {
        w = w.started();
        w.pod("worker-0").exits(code);
        w.reconcile().state()
    };
    for code in [1, 2, 126, 127, 128, 130, 137, 138, 139, 143, 255] {
        let then = |restarts| {
            if restarts {
                "Created Restarting"
            } else {
                "Created Failed"
            }
        };
        let nested = train("Worker=1:ExitCode", "backoffLimit: 9");
        assert_eq!(state(nested, code), then(code >= 128), "nested {code}");
        let inline = inline("Worker=1:ExitCode", "backoffLimit: 9");
        let documented = [130, 137, 138, 143].contains(&code);
        assert_eq!(state(inline, code), then(documented), "inline {code}");
    }
}

/// The default of the stand-alone operator is to delete all pods (#16, #24).
#[test]
fn the_inline_shape_has_a_clean_up_policy_of_its_own() {
    let roles = "Scheduler=1 Server=1 Worker=2";
    let (all, ended_ones): (&[&str], &[&str]) = (
        &["scheduler-0", "server-0", "worker-0", "worker-1"],
        &["scheduler-0", "worker-0"],
    );
    let table = [
        ("nested unset", train(roles, ""), ended_ones),
        ("inline unset", inline(roles, "backoffLimit: 3"), &[]),
        (
            "inline Running",
            inline(roles, "cleanPodPolicy: Running"),
            ended_ones,
        ),
        ("inline All", inline(roles, "cleanPodPolicy: All"), &[]),
        ("inline None", inline(roles, "cleanPodPolicy: None"), all),
    ];
    for (case, harness, left) in table {
        let mut w = harness.started();
        w.pod("worker-0").succeeds().reconcile();
        w.pod("scheduler-0").succeeds();
        w.reconcile().finish_deletions().reconcile();
        assert_eq!(w.pod_names(), left, "{case}");
    }
}

/// A cluster has few addresses. Headless services stay with the pods that have ended, under the default policy.
#[test]
fn a_finished_job_gives_its_cluster_ip_back_when_the_pod_behind_it_has_ended() {
    for (policy, left) in [
        ("", vec!["job-server-0", "job-worker-0"]),
        ("cleanPodPolicy: None", vec!["job-server-0", "job-worker-0"]),
        ("cleanPodPolicy: All", vec![]),
        (
            "stableAddress: false",
            vec!["job-scheduler-0", "job-server-0", "job-worker-0"],
        ),
    ] {
        let mut w = train("Scheduler=1 Server=1 Worker=1", policy).started();
        w.pod("server-0").succeeds().pod("worker-0").succeeds();
        w.pod("scheduler-0").succeeds();
        w.reconcile().finish_deletions().reconcile();
        assert_eq!(w.state(), "Created Succeeded");
        assert_eq!(w.services.keys().collect::<Vec<_>>(), left, "{policy}");
    }
    // It listens until it has ended.
    let mut w = train("Scheduler=1 Worker=1", "cleanPodPolicy: None").started();
    w.pod("worker-0").exits(1).reconcile();
    assert!(w.services.contains_key("job-scheduler-0"));
    w.pod("scheduler-0").succeeds().reconcile();
    assert!(!w.services.contains_key("job-scheduler-0"));
}
