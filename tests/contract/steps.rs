//! Tests of a kind whose steps run one after the other, and that answers failures itself.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use training_job::api::{MAX_RESTARTS_IN_WINDOW, RestartScope};
use training_job::{
    GangScheduler, JobObject, ObjectKind, ReplicaState, Replicas, Settings, render, validate,
};
use training_job_testbed::step_job::{AGAIN, LOST_CONTROLLER};
use training_job_testbed::{PlanHarness, StepJob, steps};
use training_job_testing::check_definition;

const JOB: &str = include_str!("steps/jobs/good.yaml");

#[test]
fn the_definition_has_the_messages_of_validation() {
    let uncovered = check_definition::<StepJob>(env!("CARGO_MANIFEST_DIR"), "tests/contract/steps/jobs");
    assert_eq!(uncovered, [""; 0]);
}

/// Errors of the shared template and of the numbers of replicas name the fields that users wrote.
#[test]
fn errors_have_the_paths_of_the_job() {
    let documents = kube_manifest::parse(include_str!("steps/jobs/bad.yaml")).unwrap();
    let errors = documents.iter().map(|document| {
        let job: StepJob = serde_json::from_value(document.to_json()).unwrap();
        let errors = validate(&job, &Settings::default()).unwrap_err();
        format!("{}\n{errors}\n", job.metadata.name.unwrap())
    });
    insta::assert_snapshot!(errors.collect::<String>(), @r#"
    numbers
    spec.partitions[0].nodes: must be at least 0 (is -1)
    spec.partitions[1].nodes: must be at most 10000 (is 20000)
    spec.steps[0].tasks: must be at least 0 (is -2)
    launcher
    spec.launcher.spec.containers: must have a container named "steps"; name the container that runs the training "steps"
    image
    spec.launcher.spec.containers[0].image: must be set; name the image to run
    empty
    spec.launcher.spec.containers: must have a container; add one named "steps"
    twice
    spec.steps[0].name: another role of the job has the name train (case is ignored); choose another name
    spec.steps[1].name: must be a valid name of a role (is Train); use lower-case letters, digits and '-', starting with a letter
    a-name-that-leaves-no-room-for-steps
    metadata.name: must have at most 40 characters together with the longest name of a step; shorten it
    "#);
}

/// Returns the job with the controller, the nodes and the first step running.
fn started() -> PlanHarness<StepJob> {
    let mut w = PlanHarness::from_yaml(JOB);
    w.reconcile().all_running();
    w.reconcile().all_running();
    w.reconcile();
    w
}

/// Lets the steps before the last one succeed.
fn at_the_last_step() -> PlanHarness<StepJob> {
    let mut w = started();
    w.pod("prepare-0").succeeds();
    w.reconcile().all_running();
    for name in ["train-0", "train-1"] {
        w.pod(name).succeeds();
    }
    w.reconcile().all_running();
    w.reconcile();
    w
}

fn created(w: &mut PlanHarness<StepJob>) -> Vec<String> {
    let mut names = std::mem::take(&mut w.created);
    names.sort();
    names
}

#[test]
fn each_step_starts_when_the_one_before_it_has_succeeded() {
    let mut w = PlanHarness::<StepJob>::from_yaml(JOB);
    w.reconcile();
    assert_eq!(created(&mut w), ["job-controller-0"]);
    w.all_running();
    w.reconcile();
    assert_eq!(created(&mut w), ["job-cpu-0", "job-cpu-1", "job-prepare-0"]);
    w.all_running();
    w.reconcile();
    assert!(created(&mut w).is_empty());
    w.pod("prepare-0").succeeds();
    w.reconcile();
    assert_eq!(created(&mut w), ["job-train-0", "job-train-1"]);
    w.all_running();
    w.pod("train-0").succeeds();
    w.reconcile();
    assert!(created(&mut w).is_empty(), "one of two has succeeded");
    w.pod("train-1").succeeds();
    w.reconcile();
    assert_eq!(created(&mut w), ["job-report-0"]);
    w.all_running();
    w.pod("report-0").succeeds();
    w.reconcile();
    assert!(w.state().ends_with("Succeeded"), "{}", w.state());
}

#[test]
fn a_step_that_hangs_stalls_the_job_although_later_steps_have_no_pods() {
    let policy = json!({"stalledAfterSeconds": 60, "watch": "All"});
    let mut w = started();
    w.job.spec.run_policy.progress = Some(serde_json::from_value(policy).unwrap());
    w.reconcile();
    for replica in ["controller-0", "cpu-0", "cpu-1", "prepare-0"] {
        assert!(!w.state().contains("Stalled"));
        w.reads(replica, "2026-01-01T00:00:10Z step 1\n", 60);
    }
    assert!(w.state().contains("Stalled"), "{}", w.state());
}

#[test]
fn a_step_that_is_done_stays_done_when_the_job_restarts() {
    for (gone, remade) in [(&[][..], 1), (&["prepare-0", "train-0"], 1)] {
        let mut w = at_the_last_step().with_scope(RestartScope::Job);
        // The pods of steps that are done may go.
        for name in gone {
            w.pod(name).vanishes();
        }
        w.created.clear();
        w.pod("report-0").exits(1);
        w.reconcile().finish_deletions().reconcile().all_running();
        w.reconcile().all_running();
        w.reconcile();
        let all = ["job-controller-0", "job-cpu-0", "job-cpu-1", "job-report-0"];
        assert_eq!(created(&mut w), all, "{gone:?}");
        assert_eq!((w.status().restart_count, w.counts("train").1), (remade, 2));
        w.restart_operator();
        w.pod("report-0").succeeds();
        w.reconcile();
        assert!(w.state().ends_with("Succeeded"), "{}", w.state());
    }
}

#[test]
fn a_step_that_is_done_stays_done_over_a_suspension() {
    let mut w = at_the_last_step();
    w.suspend(true).reconcile().finish_deletions().reconcile();
    assert!(w.pods.is_empty());
    w.created.clear();
    w.suspend(false).reconcile().all_running();
    w.reconcile().all_running();
    w.reconcile();
    assert_eq!(
        created(&mut w),
        ["job-controller-0", "job-cpu-0", "job-cpu-1", "job-report-0"]
    );
}

/// A step is done when all of its replicas have succeeded.
#[test]
fn a_step_that_was_interrupted_runs_again() {
    let mut w = started();
    w.pod("prepare-0").succeeds();
    w.reconcile().all_running();
    w.pod("train-0").succeeds();
    w.reconcile();
    w.suspend(true).reconcile().finish_deletions().reconcile();
    w.created.clear();
    w.suspend(false).reconcile().all_running();
    w.reconcile();
    assert_eq!(
        created(&mut w),
        [
            "job-controller-0",
            "job-cpu-0",
            "job-cpu-1",
            "job-train-0",
            "job-train-1"
        ]
    );
}

#[test]
fn the_kind_names_the_roles_that_restart() {
    let mut w = at_the_last_step();
    w.created.clear();
    w.pod("report-0").exits(LOST_CONTROLLER);
    w.reconcile();
    for name in ["cpu-1", "controller-0"] {
        w.pod(name).vanishes();
        w.reconcile();
        assert!(w.created.is_empty(), "the pods of all these roles are gone first");
    }
    w.finish_deletions().reconcile().all_running();
    w.reconcile();
    assert_eq!(
        created(&mut w),
        ["job-controller-0", "job-cpu-0", "job-cpu-1", "job-report-0"]
    );
    assert_eq!(w.status().restart_count, 1);
    assert_eq!(w.status().recovery.job, 0);
}

#[test]
fn an_uncounted_restart_has_its_pause_and_its_own_limit_in_an_hour() {
    let mut w = started();
    for round in 0..2 {
        w.created.clear();
        let failed_at = w.now;
        w.pod("prepare-0").exits(AGAIN);
        // The harness waits for the end of a pause.
        w.reconcile().finish_deletions().reconcile();
        assert_eq!(w.now.duration_since(failed_at).as_secs(), 30);
        assert_eq!(created(&mut w), ["job-prepare-0"], "{round}");
        w.all_running();
        w.reconcile();
    }
    assert_eq!(
        (
            w.status().restart_count,
            w.status().recovery.uncounted["prepare"].len()
        ),
        (0, 2)
    );
    let mut later = w.clone();
    later.after(3600);
    later.pod("prepare-0").exits(AGAIN);
    later.reconcile();
    assert_eq!(later.state(), "Created Restarting");
    assert_eq!(later.status().recovery.uncounted["prepare"].len(), 1);
    w.pod("prepare-0").exits(AGAIN);
    w.reconcile();
    let failure = w.status().failure.unwrap();
    assert_eq!(failure.summary, "prepare-0: exit 75 (BackoffLimitExceeded)");
    assert_eq!(
        failure.message,
        "the limit of 2 uncounted restarts of prepare in an hour is used up; the last failure: Error"
    );
}

/// A status that was edited is bounded too.
#[test]
fn the_record_of_uncounted_restarts_stays_short() {
    let mut w = started();
    w.pod("prepare-0").exits(AGAIN);
    w.reconcile();
    let stored = w.status().recovery.uncounted["prepare"][0].clone();
    w.edit(|job| {
        let status = job.status.as_mut().unwrap();
        status
            .recovery
            .uncounted
            .insert("prepare".to_owned(), vec![stored; 500]);
    });
    w.finish_deletions().after(3000).reconcile().all_running();
    w.after(700).reconcile();
    w.pod("prepare-0").exits(AGAIN);
    w.reconcile();
    let most = usize::try_from(MAX_RESTARTS_IN_WINDOW).unwrap();
    assert!(w.status().recovery.uncounted["prepare"].len() <= most);
}

#[test]
fn a_users_rule_goes_before_the_answer_of_the_kind() {
    let rule = "runPolicy: {failurePolicy: {rules: [{action: FailJob, onExitCodes: {values: [75]}}]}}\n  controller:";
    let mut w = PlanHarness::<StepJob>::from_yaml(&JOB.replacen("controller:", rule, 1));
    w.reconcile().all_running();
    w.reconcile().all_running();
    w.reconcile();
    w.pod("prepare-0").exits(AGAIN);
    w.reconcile();
    assert!(w.state().ends_with("Failed"), "{}", w.state());
}

/// A key is drawn when it is created. What a user changes in it stays.
#[test]
fn an_object_that_is_created_once_is_never_patched() {
    let mut w = started();
    let job = w.job.clone();
    let valid = validate(&job, &Settings::default()).unwrap();
    let of_objects = |object: &JobObject| {
        (
            object.random_bytes(),
            object.content.clone(),
            object.drawn(&[1, 2]).content,
        )
    };
    let states = Replicas::new(&valid.topology, |_, _| ReplicaState::Pending);
    let objects = render::objects(&valid, &states);
    assert_eq!(
        of_objects(&objects[0]),
        (
            32,
            json!({"type": "Opaque"}),
            json!({"type": "Opaque", "data": {"key": "AQI="}})
        )
    );
    let secrets = w.objects.get_mut(&ObjectKind::of::<Secret>()).unwrap();
    let key = Arc::make_mut(secrets.get_mut("job-key").unwrap());
    key.content = Arc::new(json!({"type": "Opaque", "data": {"key": "other"}}));
    let plan = w.plan();
    assert!(plan.is_idle(), "{plan:?}");
    w.objects.get_mut(&ObjectKind::of::<Secret>()).unwrap().clear();
    let plan = w.plan();
    assert_eq!(
        plan.create_objects
            .iter()
            .map(JobObject::name)
            .collect::<Vec<_>>(),
        ["job-key"]
    );
}

/// The pods need what the copy contains.
#[test]
fn pods_wait_for_a_copy_and_its_content_is_in_their_environment() {
    let mut w =
        PlanHarness::<StepJob>::from_yaml(&JOB.replacen("controller:", "settings: team\n  controller:", 1));
    let plan = w.plan();
    let names: Vec<_> = plan.create_objects.iter().map(JobObject::name).collect();
    assert_eq!(
        (names, plan.create_pods.len()),
        (vec!["job-key", "job-settings"], 0)
    );
    for step in steps(&plan) {
        w.carry_out(&step);
    }
    let maps = w.objects.get_mut(&ObjectKind::of::<ConfigMap>()).unwrap();
    let copy = Arc::make_mut(maps.get_mut("job-settings").unwrap());
    copy.content = Arc::new(json!({"data": {"trace": "debug"}}));
    w.reconcile();
    let controller = &w.pods["job-controller-0"].spec.as_ref().unwrap().containers[0];
    let variables = controller.env.as_ref().unwrap();
    let trace = variables.iter().find(|variable| variable.name == "TRACE");
    assert_eq!(
        trace.and_then(|variable| variable.value.as_deref()),
        Some("debug")
    );
}

const DATABASE: &str =
    "database: {template: {spec: {containers: [{name: steps, image: db:1}]}}}\n  controller:";

/// The claim is the database's, and all pods have the key.
#[test]
fn objects_are_mounted_in_the_roles_that_the_kind_names() {
    let database = format!("data: sets\n  {DATABASE}");
    let mut w = PlanHarness::<StepJob>::from_yaml(&JOB.replacen("controller:", &database, 1));
    w.reconcile().all_running();
    w.reconcile().all_running();
    w.reconcile().all_running();
    let mounts = |pod: &str| -> Vec<String> {
        let spec = w.pods[pod].spec.as_ref().unwrap();
        let mounts = spec.containers[0].volume_mounts.iter().flatten();
        mounts
            .map(|mount| format!("{} {:?}", mount.mount_path, mount.read_only))
            .collect()
    };
    assert_eq!(
        mounts("job-database-0"),
        ["/etc/key Some(true)", "/var/lib/steps None"]
    );
    assert_eq!(mounts("job-controller-0"), ["/etc/key Some(true)"]);
    assert_eq!(mounts("job-prepare-0"), ["/etc/key Some(true)", "/data None"]);
    let spec = w.pods["job-database-0"].spec.as_ref().unwrap();
    let mut volumes = spec.volumes.iter().flatten();
    let claim = volumes.find_map(|volume| volume.persistent_volume_claim.as_ref());
    assert_eq!(claim.unwrap().claim_name, "job-state");
}

#[test]
fn a_gang_leaves_out_the_roles_that_the_kind_names() {
    let mut w =
        PlanHarness::<StepJob>::from_yaml(&JOB.replacen("controller:", DATABASE, 1)).with_gangs("volcano");
    w.reconcile().phase("Inqueue");
    w.reconcile().all_running();
    w.reconcile();
    let scheduler =
        |w: &PlanHarness<StepJob>, pod: &str| w.pods[pod].spec.as_ref().unwrap().scheduler_name.clone();
    assert_eq!(scheduler(&w, "job-database-0"), None);
    assert_eq!(scheduler(&w, "job-controller-0").as_deref(), Some("volcano"));
    assert_eq!(w.group().unwrap()["spec"]["minMember"], 1);
    let mut settings = Settings::default();
    settings.gang_scheduler = GangScheduler::named("volcano");
    let rendered = render::all(&validate(&w.job, &settings).unwrap());
    assert_eq!(rendered.objects[0].content["spec"]["minMember"], 1);
    assert!(!w.event_reasons().contains(&"SetPodTemplateSchedulerName"));
}

/// A gang has the pods that run at the same time.
#[test]
fn a_gang_counts_the_steps_that_are_due() {
    let mut w = PlanHarness::<StepJob>::from_yaml(JOB).with_gangs("volcano");
    let members = |w: &mut PlanHarness<StepJob>| w.group().unwrap()["spec"]["minMember"].clone();
    w.reconcile().phase("Inqueue");
    assert_eq!(members(&mut w), 1);
    w.reconcile().all_running();
    w.reconcile().all_running();
    w.reconcile();
    assert_eq!(members(&mut w), 4);
    w.pod("prepare-0").succeeds();
    w.reconcile();
    assert_eq!(members(&mut w), 5);
}

/// The pods of a step that is done are there during and after a restart of the job, which needs a new group.
#[test]
fn a_gang_whose_first_step_is_done_restarts() {
    let policy = "runPolicy: {restartScope: Job}\n  controller:";
    let mut w =
        PlanHarness::<StepJob>::from_yaml(&JOB.replacen("controller:", policy, 1)).with_gangs("volcano");
    w.reconcile().phase("Inqueue");
    w.reconcile().all_running();
    w.reconcile().all_running();
    w.reconcile();
    w.pod("prepare-0").succeeds();
    w.reconcile().all_running();
    w.pod("controller-0").exits(1);
    w.reconcile().finish_deletions().reconcile();
    assert!(w.pods.contains_key("job-prepare-0"), "{:?}", w.pods.keys());
    w.phase("Inqueue").reconcile();
    assert!(w.pods.contains_key("job-controller-0"), "{:?}", w.pods.keys());
}

/// No environment has the number of the nodes of a partition.
#[test]
fn a_list_that_loses_a_role_restarts_no_other() {
    let mut w = started();
    w.created.clear();
    w.edit(|job| job.spec.partitions.clear());
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(w.state(), "Created Running");
    assert_eq!(created(&mut w), [""; 0]);
    assert!(!w.pods.contains_key("job-cpu-0"), "{:?}", w.pods.keys());
}

#[test]
fn names_that_no_object_can_have_are_refused() {
    let names = "settings: Team_A\n  data: My_Data\n  controller:";
    let documents = kube_manifest::parse(&JOB.replacen("controller:", names, 1)).unwrap();
    let job: StepJob = serde_json::from_value(documents[0].to_json()).unwrap();
    let errors = validate(&job, &Settings::default()).unwrap_err();
    insta::assert_snapshot!(errors, @r#"
    spec: the job's ConfigMap "job-settings" is a copy of "Team_A", which no object can be named; correct the field with the name
    spec: pods of prepare mount PersistentVolumeClaim "My_Data", which no object can be named; correct the field with the name
    spec: pods of train mount PersistentVolumeClaim "My_Data", which no object can be named; correct the field with the name
    spec: pods of report mount PersistentVolumeClaim "My_Data", which no object can be named; correct the field with the name
    "#);
}
