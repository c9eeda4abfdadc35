//! Stories of MPIJobs' lives: the launcher decides, and comes last.

use serde_json::{Value, json};
use training_job::{GangScheduler, Settings, render, validate};
use training_job_mpi::MPIJob;
use training_job_testing::World;

const RUNNING: [&str; 2] = ["Created", "Running"];

fn world(launcher: &str, workers: &str) -> World<MPIJob> {
    World::with(&format!("Launcher=1:{launcher} Worker={workers}"), "")
}

fn running(launcher: &str, workers: &str) -> World<MPIJob> {
    let mut w = world(launcher, workers);
    w.reconcile();
    w.all_running();
    w.all_running();
    w
}

#[test]
fn the_launcher_starts_when_all_workers_run_and_decides() {
    let mut w = world("Never", "2:Never");
    w.reconcile();
    assert_eq!(w.pod_names(), ["worker-0", "worker-1"]);
    w.pod("worker-0").running();
    assert_eq!(w.reconcile().pod_names().len(), 2, "one is not all");
    w.pod("worker-1").running();
    assert_eq!(w.reconcile().pod_names(), ["launcher", "worker-0", "worker-1"]);
    assert_eq!(w.state(), ["Created"]);
    w.pod("launcher").running();
    assert_eq!(w.reconcile().state(), RUNNING);
    assert!(w.service_names().is_empty(), "nobody looks for them by name");
    w.pod("launcher").succeeds();
    w.reconcile();
    assert_eq!(w.state(), ["Created", "Succeeded"]);
    assert_eq!(w.told("Succeeded"), "MPIJob job is successfully completed.");
    assert_eq!(
        w.finish_deletions().reconcile().pod_names(),
        ["launcher"],
        "workers would sleep for a year"
    );
}

/// There is to be room for it from the start.
#[test]
fn the_launcher_is_a_member_of_a_gang_when_it_is_due() {
    let mut w = world("Never", "2:Never").with_gangs("volcano");
    w.edit(|job| {
        for role in job.spec.mpi_replica_specs.values_mut().flatten() {
            let cpu = json!({"requests": {"cpu": "1"}});
            role.template.spec.as_mut().unwrap().containers[0].resources =
                Some(serde_json::from_value(cpu).unwrap());
        }
    });
    let asks = |group: &Value| {
        let spec = &group["spec"];
        (spec["minMember"].clone(), spec["minResources"]["cpu"].clone())
    };
    let settings = Settings {
        gang_scheduler: GangScheduler::named("volcano"),
        ..Settings::default()
    };
    let rendered = render::all(&validate(&w.job, &settings).unwrap());
    let group = rendered.objects.iter().find(|o| o.kind.kind == "PodGroup");
    assert_eq!(asks(&group.unwrap().content), (2.into(), "3".into()));
    w.reconcile();
    assert_eq!(asks(w.group().unwrap()), (2.into(), "3".into()));
    w.phase("Inqueue").all_running();
    assert_eq!(asks(w.group().unwrap()), (3.into(), "3".into()));
    assert_eq!(w.pod_names(), ["launcher", "worker-0", "worker-1"]);
}

#[test]
fn it_starts_with_them_where_that_is_wanted() {
    let mut w = World::<MPIJob>::with("Launcher=1 Worker=2", "launcherCreationPolicy: AtStartup");
    assert_eq!(w.reconcile().pod_names(), ["launcher", "worker-0", "worker-1"]);
}

#[test]
fn a_worker_whose_number_is_not_written_is_none() {
    let mut w = World::<MPIJob>::from_yaml(
        "{apiVersion: kubeflow.org/v1, kind: MPIJob, metadata: {name: job, namespace: team, uid: u}, spec: {mpiReplicaSpecs: {\
         Launcher: {template: {spec: {containers: [{name: a, image: i}]}}}, \
         Worker: {template: {spec: {containers: [{name: a, image: i}]}}}}}}",
    );
    assert_eq!(w.reconcile().pod_names(), ["launcher"]);
}

#[test]
fn a_lost_worker_restarts_the_whole_job() {
    let mut w = running("OnFailure", "2:OnFailure");
    assert_eq!(w.state(), RUNNING);
    w.pod("worker-1").evicted();
    assert_eq!(w.reconcile().state(), ["Created", "Restarting"]);
    assert_eq!(
        w.told("Restarting"),
        "job job is restarting because Worker replica(s) failed."
    );
    w.finish_deletions().reconcile();
    assert_eq!(
        w.pod_names(),
        ["worker-0", "worker-1"],
        "the launcher waits for them again"
    );
    w.all_running();
    w.all_running();
    assert_eq!(w.state(), RUNNING);
    assert!(w.attempts().values().all(|&attempt| attempt == 1));
}

/// What the Go operator never does.
#[test]
fn exit_codes_are_looked_at() {
    for (code, state) in [(137, "Restarting"), (1, "Failed")] {
        let mut w = running("ExitCode", "2:ExitCode");
        w.pod("launcher").exits(code);
        assert_eq!(w.reconcile().state(), ["Created", state], "{code}");
    }
}

#[test]
fn a_launcher_that_its_kubelet_restarts_finds_the_workers_as_they_were() {
    let mut w = running("OnFailure", "2:OnFailure");
    w.pod("launcher").restarts_in_place(9);
    w.reconcile();
    assert_eq!(
        (w.state(), w.status().restart_count),
        (RUNNING.map(str::to_owned).into(), 1)
    );
    assert!(w.attempts().values().all(|&attempt| attempt == 0));
}

/// Open MPI 5 ends with 0 when a worker is killed.
#[test]
fn a_launcher_without_its_workers_has_not_succeeded() {
    for what in ["exits", "vanishes", "stops"] {
        let mut w = running("OnFailure", "2:OnFailure");
        match what {
            "exits" => w.pod("worker-1").exits(137),
            "vanishes" => w.pod("worker-1").vanishes(),
            _ => w.pod("worker-1").deleted_by_user(),
        }
        w.pod("launcher").succeeds();
        w.reconcile().finish_deletions().reconcile();
        assert!(
            !w.state().contains(&"Succeeded".to_owned()),
            "{what}: {:?}",
            w.state()
        );
        w.finish_deletions().reconcile();
        w.all_running();
        w.all_running();
        w.pod("launcher").succeeds();
        assert_eq!(w.reconcile().state(), ["Created", "Succeeded"], "{what}");
    }
}

#[test]
fn a_failure_under_never_is_told_of_an_mpijob() {
    let mut w = running("Never", "2:Never");
    w.pod("worker-1").exits(1);
    assert_eq!(w.reconcile().state(), ["Created", "Failed"]);
    assert_eq!(
        w.told("Failed"),
        "MPIJob job is failed because 1 Worker replica(s) failed."
    );
    assert_eq!(w.status().conditions.last().unwrap().reason, "MPIJobFailed");
}
