//! Scenarios of MPIJobs. The launcher starts last and decides the job's end.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodSpec, PodTemplateSpec};
use k8s_openapi::api::rbac::v1::Role;
use serde_json::{Value, json};
use training_job::{GangScheduler, ObjectKind, Settings, render, validate};
use training_job_mpi::MPIJob;
use training_job_testbed::PlanHarness;

fn harness(launcher: &str, workers: &str) -> PlanHarness<MPIJob> {
    PlanHarness::with(&format!("Launcher=1:{launcher} Worker={workers}"), "")
}

fn running(launcher: &str, workers: &str) -> PlanHarness<MPIJob> {
    let mut w = harness(launcher, workers);
    w.reconcile().all_running().all_running();
    w
}

#[test]
fn the_launcher_starts_when_all_workers_run_and_decides() {
    let mut w = harness("Never", "2:Never");
    assert_eq!(w.reconcile().pod_names(), ["worker-0", "worker-1"]);
    w.pod("worker-0").running();
    assert_eq!(w.reconcile().pod_names().len(), 2, "one is not all");
    w.pod("worker-1").running();
    assert_eq!(w.reconcile().pod_names(), ["launcher", "worker-0", "worker-1"]);
    assert_eq!(w.state(), "Created");
    w.pod("launcher").running();
    assert_eq!(w.reconcile().state(), "Created Running");
    assert!(w.service_names().is_empty(), "nobody looks for them by name");
    w.pod("launcher").succeeds().reconcile();
    assert_eq!(w.state(), "Created Succeeded");
    assert_eq!(w.message_of("Succeeded"), "MPIJob job is successfully completed.");
    assert_eq!(
        w.finish_deletions().reconcile().pod_names(),
        ["launcher"],
        "workers would sleep for a year"
    );
}

/// The gang must reserve capacity for the launcher from the start.
#[test]
fn the_launcher_is_a_member_of_a_gang_when_it_is_due() {
    let mut w = harness("Never", "2:Never").with_gangs("volcano");
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
    let mut settings = Settings::default();
    settings.gang_scheduler = GangScheduler::named("volcano");
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
fn the_launcher_starts_with_the_workers_if_requested() {
    let mut w = PlanHarness::<MPIJob>::with("Launcher=1 Worker=2", "launcherCreationPolicy: AtStartup");
    assert_eq!(w.reconcile().pod_names(), ["launcher", "worker-0", "worker-1"]);
}

#[test]
fn unset_replicas_of_workers_mean_none() {
    let mut w = PlanHarness::<MPIJob>::from_yaml(
        "{apiVersion: kubeflow.org/v1, kind: MPIJob, metadata: {name: job, namespace: team, uid: u}, spec: {mpiReplicaSpecs: {\
         Launcher: {template: {spec: {containers: [{name: a, image: i}]}}}, \
         Worker: {template: {spec: {containers: [{name: a, image: i}]}}}}}}",
    );
    assert_eq!(w.reconcile().pod_names(), ["launcher"]);
}

#[test]
fn a_lost_worker_restarts_the_whole_job() {
    let mut w = running("OnFailure", "2:OnFailure");
    assert_eq!(w.state(), "Created Running");
    w.pod("worker-1").evicted();
    assert_eq!(w.reconcile().state(), "Created Restarting");
    assert_eq!(
        w.message_of("Restarting"),
        "job job is restarting because Worker replica(s) failed."
    );
    w.finish_deletions().reconcile();
    assert_eq!(
        w.pod_names(),
        ["worker-0", "worker-1"],
        "the launcher waits for them again"
    );
    assert_eq!(w.all_running().all_running().state(), "Created Running");
    assert!(w.attempts().values().all(|&attempt| attempt == 1));
}

/// The Go operator ignores them.
#[test]
fn exit_codes_matter() {
    for (code, state) in [(137, "Restarting"), (1, "Failed")] {
        let mut w = running("ExitCode", "2:ExitCode");
        w.pod("launcher").exits(code);
        assert_eq!(w.reconcile().state(), format!("Created {state}"), "{code}");
    }
}

#[test]
fn a_launcher_that_its_kubelet_restarts_finds_the_workers_as_they_were() {
    let mut w = running("OnFailure", "2:OnFailure");
    w.pod("launcher").restarts_in_place(9).reconcile();
    assert_eq!(w.state(), "Created Running");
    assert_eq!(w.status().restart_count, 1);
    assert!(w.attempts().values().all(|&attempt| attempt == 0));
}

/// The launcher of Open MPI 5 ends with exit code 0 when a worker is killed.
#[test]
fn a_launcher_without_its_workers_has_not_succeeded() {
    for what in ["exits", "vanishes", "stops"] {
        let mut w = running("OnFailure", "2:OnFailure");
        match what {
            "exits" => w.pod("worker-1").exits(137),
            "vanishes" => w.pod("worker-1").vanishes(),
            _ => w.pod("worker-1").deleted_by_user(),
        };
        w.pod("launcher").succeeds();
        w.reconcile().finish_deletions().reconcile();
        assert!(!w.state().contains("Succeeded"), "{what}: {:?}", w.state());
        w.all_replaced().all_running().pod("launcher").succeeds();
        assert_eq!(w.reconcile().state(), "Created Succeeded", "{what}");
    }
}

#[test]
fn the_message_of_a_failure_under_never_names_an_mpijob() {
    let mut w = running("Never", "2:Never");
    w.pod("worker-1").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
    assert_eq!(
        w.message_of("Failed"),
        "MPIJob job is failed because 1 Worker replica(s) failed."
    );
    assert_eq!(w.status().conditions.last().unwrap().reason, "MPIJobFailed");
}

/// Every intermediate plan is checked. A name must not be granted while a pod of another job may have it.
#[test]
fn the_role_names_existing_pods_only() {
    let mut w = harness("OnFailure", "3:OnFailure");
    let mut largest = 0;
    let mut check = |w: &mut PlanHarness<MPIJob>| {
        for _ in 0..8 {
            w.reconcile_once();
            let granted = granted(w);
            largest = largest.max(granted.len());
            for name in &granted {
                let pod = w.pods.get(name);
                assert!(
                    pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_none()),
                    "{name}"
                );
            }
        }
    };
    check(&mut w);
    w.all_running();
    check(&mut w);
    w.scale("Worker", 2);
    check(&mut w);
    w.pod("worker-0").deleted_by_user();
    // The restart is stored before any other action. The pod still exists, so its name is not free.
    w.reconcile_once();
    check(&mut w);
    w.finish_deletions();
    check(&mut w);
    w.finish_deletions();
    check(&mut w);
    w.all_running().all_running().suspend(true);
    check(&mut w);
    assert_eq!(largest, 3);
    assert_eq!(granted(&w), [""; 0]);
}

/// Returns the names of the pods in which the launcher may start processes.
fn granted(w: &PlanHarness<MPIJob>) -> Vec<String> {
    let roles = w.objects.get(&ObjectKind::of::<Role>());
    let role = roles.and_then(|roles| roles.get("job-launcher"));
    let rules = role
        .iter()
        .flat_map(|role| role.content["rules"].as_array().unwrap());
    let names = rules
        .filter_map(|rule| rule["resourceNames"].as_array())
        .flatten();
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn templates(w: &mut PlanHarness<MPIJob>) -> impl Iterator<Item = &mut PodTemplateSpec> {
    let roles = w.job.spec.mpi_replica_specs.values_mut().flatten();
    roles.map(|role| &mut role.template)
}

fn set_launcher_command(w: &mut PlanHarness<MPIJob>, words: &Value) {
    let launcher = w
        .job
        .spec
        .mpi_replica_specs
        .get_mut("Launcher")
        .unwrap()
        .as_mut()
        .unwrap();
    let container = &mut launcher.template.spec.as_mut().unwrap().containers[0];
    container.command = serde_json::from_value(words["command"].clone()).unwrap();
    container.args = serde_json::from_value(words["args"].clone()).unwrap();
}

/// Returns the hosts that the job's script prints.
fn discovered(w: &PlanHarness<MPIJob>) -> Vec<String> {
    let config = &w.objects[&ObjectKind::of::<ConfigMap>()]["job-config"];
    let script = config.content["data"]["discover_hosts.sh"].as_str().unwrap();
    script
        .lines()
        .filter_map(|line| line.strip_prefix("echo "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_discovery_script_prints_the_workers_that_run_with_their_slots() {
    let mut w = harness("OnFailure", "2:OnFailure");
    w.edit(|job| job.spec.slots_per_worker = Some(4));
    set_launcher_command(
        &mut w,
        &json!({"command": ["horovodrun", "--host-discovery-script", "x"]}),
    );
    w.reconcile().all_running().all_running();
    assert_eq!(discovered(&w), ["job-worker-0:4", "job-worker-1:4"]);
    w.pod("worker-1").vanishes().reconcile();
    assert_eq!(discovered(&w), ["job-worker-0:4"], "the new pod does not run yet");
    w.all_running().reconcile();
    assert_eq!(
        discovered(&w),
        ["job-worker-0:4", "job-worker-1:4"],
        "under the same name"
    );
    let launcher = w.pods["job-launcher"].metadata.uid.clone();
    w.scale("Worker", 3).reconcile().all_running().reconcile();
    assert_eq!(
        discovered(&w),
        ["job-worker-0:4", "job-worker-1:4", "job-worker-2:4"]
    );
    assert_eq!(w.pods["job-launcher"].metadata.uid, launcher);
}

/// A worker that is deleted is replaced under each policy.
#[test]
fn a_worker_of_elastic_horovod_that_never_restarts_fails_the_job_when_its_container_fails() {
    let mut w = harness("OnFailure", "2:Never");
    set_launcher_command(
        &mut w,
        &json!({"command": ["horovodrun", "--host-discovery-script", "x"]}),
    );
    w.reconcile().all_running().all_running();
    w.pod("worker-1").vanishes();
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(w.pod_names(), ["launcher", "worker-0", "worker-1"]);
    w.all_running().pod("worker-1").exits(1).reconcile();
    assert!(w.state().contains("Failed"), "{:?}", w.state());
}

/// `horovodrun` adds new workers and continues without lost ones.
#[test]
fn elastic_horovod_continues_without_a_lost_worker() {
    for words in [
        json!({"command": ["horovodrun", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "python3"]}),
        json!({"command": ["sh", "-c"], "args": ["horovodrun -np 2 --host-discovery-script=/etc/mpi/discover_hosts.sh x"]}),
    ] {
        let mut w = harness("OnFailure", "2:OnFailure");
        set_launcher_command(&mut w, &words);
        w.reconcile().all_running().all_running();
        assert_eq!(w.state(), "Created Running");
        let launcher = w.pods["job-launcher"].metadata.uid.clone();
        for lost in ["evicted", "vanishes", "exits"] {
            match lost {
                "evicted" => w.pod("worker-1").evicted(),
                "vanishes" => w.pod("worker-1").vanishes(),
                _ => w.pod("worker-1").exits(137),
            }
            .reconcile()
            .finish_deletions()
            .reconcile();
            assert_eq!(w.pod_names(), ["launcher", "worker-0", "worker-1"], "{lost}");
            assert_eq!(w.pods["job-launcher"].metadata.uid, launcher, "{lost}");
            w.all_running();
        }
        w.pod("worker-1").vanishes().pod("launcher").succeeds();
        w.reconcile();
        assert!(w.state().contains("Succeeded"), "{:?}", w.state());
    }
}

/// A scheduler that binds all pods of a job together would never bind the workers if the launcher waited for them.
#[test]
fn the_launcher_comes_with_the_workers_where_a_foreign_scheduler_counts_all_pods() {
    let foreign = |change: fn(&mut PodTemplateSpec), policy: &str| {
        let mut w = PlanHarness::<MPIJob>::with("Launcher=1 Worker=2", policy);
        templates(&mut w).for_each(change);
        w
    };
    let scheduler = |template: &mut PodTemplateSpec| {
        template.spec.as_mut().unwrap().scheduler_name = Some("kai-scheduler".to_owned());
    };
    let labels = |template: &mut PodTemplateSpec| {
        let labels = [("pod-group.scheduling.sigs.k8s.io/name".to_owned(), "g".to_owned())];
        template.metadata.get_or_insert_default().labels = Some(labels.into());
    };
    let annotations = |template: &mut PodTemplateSpec| {
        let annotations = [(
            "gang.scheduling.koordinator.sh/min-available".to_owned(),
            "3".to_owned(),
        )];
        template.metadata.get_or_insert_default().annotations = Some(annotations.into());
    };
    for change in [scheduler, labels, annotations] {
        let all = ["launcher", "worker-0", "worker-1"];
        assert_eq!(foreign(change, "").reconcile().pod_names(), all);
        let waits = "launcherCreationPolicy: WaitForWorkersReady";
        assert_eq!(foreign(change, waits).reconcile().pod_names(), all[1..]);
    }
    let usual = |template: &mut PodTemplateSpec| {
        template.spec.as_mut().unwrap().scheduler_name = Some("default-scheduler".to_owned());
    };
    assert_eq!(foreign(usual, "").reconcile().pod_names().len(), 2);
}

/// Renders a job that has these containers in both roles.
fn rendered(fields: &str, containers: &Value) -> (Vec<Pod>, String) {
    let mut w = PlanHarness::<MPIJob>::with("Launcher=1 Worker=1", fields);
    for template in templates(&mut w) {
        template.spec = Some(PodSpec {
            containers: serde_json::from_value(containers.clone()).unwrap(),
            ..PodSpec::default()
        });
    }
    let rendered = render::all(&validate(&w.job, &Settings::default()).unwrap());
    let config = rendered
        .objects
        .iter()
        .find(|o| o.kind.kind == "ConfigMap")
        .unwrap();
    (
        rendered.pods,
        config.content["data"]["kubexec.sh"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn the_named_container_is_the_main_one_in_everything() {
    let containers = json!([
        {"name": "proxy", "image": "i", "env": [{"name": "I_MPI_HYDRA_BOOTSTRAP", "value": "ssh"}]},
        {"name": "mpi", "image": "i"},
        {"name": "other", "image": "i"},
    ]);
    for (fields, main) in [("", 1), ("mainContainer: other", 2), ("mainContainer: mpi", 1)] {
        let (pods, shell) = rendered(fields, &containers);
        let name = containers[main]["name"].as_str().unwrap();
        assert!(shell.contains(&format!(" --container {name} ")), "{shell}");
        for pod in &pods {
            for (n, container) in pod.spec.as_ref().unwrap().containers.iter().enumerate() {
                let is_main = n == main;
                let place = format!("{fields}: {}", container.name);
                assert_eq!(container.volume_mounts.is_some(), is_main, "{place}");
                assert_eq!(container.termination_message_policy.is_some(), is_main, "{place}");
                let is_launcher = pod.metadata.name.as_deref() == Some("job-launcher");
                assert_eq!(container.command.is_some(), is_main && !is_launcher, "{place}");
                let names = container.env.iter().flatten().map(|variable| &*variable.name);
                let names: Vec<_> = names.collect();
                assert_eq!(
                    names.contains(&"OMPI_MCA_plm_rsh_agent"),
                    is_main && is_launcher,
                    "{place}"
                );
                assert!(
                    !is_main || !is_launcher || names.contains(&"I_MPI_HYDRA_BOOTSTRAP"),
                    "{place}"
                );
            }
        }
    }
    let (_, shell) = rendered(
        "",
        &json!([{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]),
    );
    assert!(
        !shell.contains("--container"),
        "the first one needs no name: {shell}"
    );
}

#[test]
fn a_finished_job_gives_its_objects_back_when_no_pod_runs() {
    for (policy, left) in [("Running", 0), ("None", 4), ("All", 0)] {
        let fields = format!("runPolicy: {{cleanPodPolicy: {policy}}}");
        let mut w = PlanHarness::<MPIJob>::with("Launcher=1 Worker=2", &fields);
        w.reconcile().all_running().all_running();
        let count = |w: &PlanHarness<MPIJob>| w.objects.values().map(|records| records.len()).sum::<usize>();
        assert_eq!(count(&w), 4, "{policy}");
        w.pod("launcher").succeeds();
        w.reconcile().finish_deletions().reconcile();
        assert_eq!(count(&w), left, "{policy}: workers may run on");
    }
}
