//! Tests of open roles.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use training_job::{Settings, render, validate};
use training_job_testbed::{GroupJob, PlanHarness};
use training_job_testing::{Story, check_definition};

const JOB: &str = include_str!("groups/jobs/good.yaml");

#[test]
fn the_definition_has_the_messages_of_validation() {
    let uncovered = check_definition::<GroupJob>(env!("CARGO_MANIFEST_DIR"), "tests/contract/groups/jobs");
    assert_eq!(uncovered, [""; 0]);
}

/// The errors name the fields that users wrote: the field of the only head, and the items of the list of groups.
#[test]
fn errors_have_the_paths_of_the_job() {
    let documents = kube_manifest::parse(include_str!("groups/jobs/bad.yaml")).unwrap();
    let errors = documents.iter().map(|document| {
        let job: GroupJob = serde_json::from_value(document.to_json()).unwrap();
        let errors = validate(&job, &Settings::default()).unwrap_err();
        format!("{}\n{errors}\n", job.metadata.name.unwrap())
    });
    insta::assert_snapshot!(errors.collect::<String>(), @r#"
    names
    spec.workerGroups[0].groupName: must be a valid name of a role (is Big); use lower-case letters, digits and '-', starting with a letter
    spec.workerGroups[1].groupName: another role of the job has the name head (case is ignored); choose another name
    twice
    spec.workerGroups[1].groupName: another role of the job has the name small (case is ignored); choose another name
    containers
    spec.head.template.spec.containers: must have a container named "head"; name the container that runs the training "head"
    spec.workerGroups[0].template.spec.containers: must have a container; add one named "worker"
    spec.submitter.replicas: must be at most 1 (is 2)
    spec.submitter.template.spec.containers[0].image: must be set; name the image to run
    no-head
    spec.head: must have exactly 1 replica of Head; add Head with 1 replica
    always
    spec.workerGroups[0].restartPolicy: restartPolicy must not be Always if failurePolicy has rules, because the operator then restarts only failed replicas; use OnFailure
    caches
    spec.caches.empty.replicas: must be at least 1 (is 0)
    spec.caches.large.replicas: must be at most 3 (is 4)
    spec.caches.other.template.spec.containers: must have a container named "cache"; name the container that runs the training "cache"
    cache-names
    spec.caches.Big: must be a valid name of a role (is Big); use lower-case letters, digits and '-', starting with a letter
    spec.caches.small: another role of the job has the name small (case is ignored); choose another name
    "#);
}

#[test]
fn the_groups_run_before_the_submitter_starts_and_end_with_it() {
    let mut story = Story::<GroupJob>::new(JOB);
    let workers = [
        "two-groups-gpu-large-0",
        "two-groups-small-0",
        "two-groups-small-1",
    ];
    let first: Vec<_> = [workers[0], "two-groups-head-0", workers[1], workers[2]].into();
    assert_eq!(story.pods(), first);
    story.all_run();
    assert_eq!(story.pods().len(), 5);
    let submitter = "two-groups-submitter-0";
    let env = story
        .pod(workers[0])
        .spec
        .unwrap()
        .containers
        .remove(0)
        .env
        .unwrap();
    let env: Vec<_> = env.into_iter().map(|v| (v.name, v.value.unwrap())).collect();
    assert_eq!(
        env,
        [
            ("HEAD".to_owned(), "two-groups-head-0:6379".to_owned()),
            ("GROUP".to_owned(), "gpu-large".to_owned())
        ]
    );
    story.runs(submitter).exits(submitter, 0);
    assert_eq!(story.conditions(), ["Created", "Succeeded"]);
}

/// The head has no work of its own to complete, so its end is a failure, whatever the exit code.
#[test]
fn a_restart_policy_that_an_always_replaced_role_ignores_is_warned_of() {
    let warned = |policy: &str| {
        let mut job = kube_manifest::parse(JOB).unwrap()[0].to_json();
        job["spec"]["head"]["restartPolicy"] = policy.into();
        let job: GroupJob = serde_json::from_value(job).unwrap();
        render::warnings(&validate(&job, &Settings::default()).unwrap()).to_string()
    };
    let expected = "spec.head.restartPolicy: Never has no effect, because replicas of this role are replaced whenever they \
                    end; remove it; set runPolicy.backoffLimit to bound the restarts";
    assert_eq!(warned("Never"), expected);
    assert_eq!(warned("OnFailure"), "");
}

#[test]
fn a_role_that_is_always_replaced_never_succeeds() {
    for code in [0, 1, 137] {
        let mut story = Story::<GroupJob>::new(JOB);
        story.all_run();
        let head = "two-groups-head-0";
        let before = story.pod(head).metadata.uid;
        story.exits(head, code);
        assert_eq!(story.restarted(), [head], "{code}");
        assert_ne!(story.pod(head).metadata.uid, before);
        assert_eq!(story.status().restart_count, 1);
        assert_eq!(story.pod(head).spec.unwrap().restart_policy.unwrap(), "Never");
    }
}

#[test]
fn the_submitter_waits_until_all_others_are_ready() {
    let mut story = Story::<GroupJob>::new(JOB);
    let submitter = "two-groups-submitter-0";
    let first = story.pods();
    for pod in &first {
        story.starts(pod);
    }
    assert_eq!(story.conditions(), ["Created"]);
    let ready = |story: &Story<GroupJob>| -> Vec<i32> {
        let counts = story.status().replica_statuses.into_values();
        counts.map(|count| count.ready.unwrap()).collect()
    };
    assert!(ready(&story).iter().all(|ready| *ready == 0));
    for pod in &first {
        assert_eq!(story.pods(), first, "before {pod} is ready");
        story.runs(pod);
    }
    assert_eq!(ready(&story).iter().sum::<i32>(), 4);
    assert!(story.pods().contains(&submitter.to_owned()));
    // A pod that is not ready for a while stops no other.
    story.runs(submitter).starts(&first[0]);
    assert_eq!(story.conditions(), ["Created", "Running"]);
}

/// Restarts are recorded by the names of the groups, so what one group went through is not another's.
#[test]
fn a_group_that_is_removed_takes_only_its_own_pods() {
    let mut story = Story::<GroupJob>::new(JOB);
    story.all_run();
    story.exits("two-groups-small-0", 1).runs("two-groups-small-0");
    let gpu = story.pod("two-groups-gpu-large-0").metadata.uid;
    let left = story.job().unwrap().spec.worker_groups.remove(1);
    story.patch(&json!({"spec": {"workerGroups": [left]}}));
    assert_eq!(
        story.pods(),
        [
            "two-groups-gpu-large-0",
            "two-groups-head-0",
            "two-groups-submitter-0"
        ]
    );
    assert_eq!(story.pod("two-groups-gpu-large-0").metadata.uid, gpu);
}

/// The counts, labels and ports are those of each role.
#[test]
fn a_group_has_labels_counts_and_ports_of_its_own() {
    let mut story = Story::<GroupJob>::new(JOB);
    story.all_run();
    let counts = story.status().replica_statuses;
    let active: Vec<_> = counts
        .iter()
        .map(|(role, count)| (&**role, count.active))
        .collect();
    assert_eq!(
        active,
        [("Head", 1), ("Submitter", 0), ("gpu-large", 1), ("small", 2)]
    );
    let pod = story.pod("two-groups-gpu-large-0");
    assert_eq!(
        pod.metadata.labels.unwrap()["training.kubeflow.org/replica-type"],
        "gpu-large"
    );
    assert!(pod.spec.unwrap().containers[0].ports.is_none());
    let head = story.pod("two-groups-head-0").spec.unwrap().containers.remove(0);
    let ports: Vec<_> = head
        .ports
        .unwrap()
        .into_iter()
        .map(|port| port.container_port)
        .collect();
    assert_eq!(ports, [6379, 8265]);
}

/// The submitter has retries of its own. They are not the job's, and the job's are not its.
#[test]
fn the_retries_of_a_role_are_its_own() {
    let mut story = Story::<GroupJob>::new(JOB);
    story.patch(
        &json!({"spec": {"runPolicy": {"backoffLimit": 1}, "submitter": {"restartPolicy": "ExitCode"}}}),
    );
    story.all_run();
    let submitter = "two-groups-submitter-0";
    story.runs(submitter).exits(submitter, 137);
    assert_eq!(story.status().restart_count, 0);
    story.deleted("two-groups-small-0");
    story.all_run();
    story.runs(submitter).exits(submitter, 137);
    assert_eq!(story.conditions(), ["Created", "Failed"]);
    let failure = story.status().failure.unwrap();
    assert_eq!(failure.reason, "BackoffLimitExceeded");
    assert!(
        failure
            .message
            .starts_with("the limit of 1 restarts of Submitter is used up; the last failure: "),
        "{}",
        failure.message
    );
    // The failure that is one too many begins no restart.
    assert_eq!(story.status().recovery.replicas["submitter-0"], 1);
}

#[test]
fn restarts_by_the_kubelet_count_against_the_retries_of_the_role() {
    let mut story = Story::<GroupJob>::new(JOB);
    story.all_run();
    let submitter = "two-groups-submitter-0";
    story.runs(submitter);
    let mut restarts = |count: i32| {
        let container = json!({"name": "submitter", "image": "i", "imageID": "", "ready": true, "restartCount": count,
            "state": {"running": {}}});
        let status = json!({"status": {"containerStatuses": [container]}});
        story.by_hand(async |client| {
            let pods = kube::Api::<Pod>::default_namespaced(client);
            let patch = Patch::Strategic(status);
            let params = PatchParams::default();
            pods.patch_status(submitter, &params, &patch).await.unwrap();
        });
        (story.conditions(), story.status().restart_count)
    };
    let [created, running, failed] = ["Created", "Running", "Failed"].map(str::to_owned);
    assert_eq!(restarts(1), (vec![created.clone(), running], 0));
    assert_eq!(restarts(2), (vec![created, failed], 0));
}

#[test]
fn a_mounted_object_is_in_the_containers_that_mount_nothing_else_there() {
    let mut job = kube_manifest::parse(JOB).unwrap()[0].to_json();
    job["spec"]["head"]["template"]["spec"]["volumes"] = json!([{"name": "own", "emptyDir": {}}]);
    job["spec"]["head"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "own", "mountPath": "/etc/cluster"}]);
    let job: GroupJob = serde_json::from_value(job).unwrap();
    let valid = validate(&job, &Settings::default()).unwrap();
    let mounts = |role: &str| {
        let replica = valid.topology.role(role).unwrap().all().next().unwrap();
        let spec = render::pod(&valid, &replica, 0).spec.unwrap();
        json!([spec.volumes, spec.containers[0].volume_mounts])
    };
    assert_eq!(
        mounts("small"),
        json!([
            [{"name": "job-cluster", "configMap": {"name": "two-groups-cluster"}}],
            [{"name": "job-cluster", "mountPath": "/etc/cluster", "readOnly": true}],
        ])
    );
    assert_eq!(
        mounts("Head"),
        json!([[{"name": "own", "emptyDir": {}}], [{"name": "own", "mountPath": "/etc/cluster"}]])
    );
}

/// An API server rejects a definition with a default that breaks a rule.
#[test]
fn objects_with_rules_have_no_defaults() {
    let definition = training_job::admission::definition::<GroupJob>().unwrap();
    let definition = serde_json::to_value(definition).unwrap();
    let spec =
        &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    assert!(spec["runPolicy"]["properties"]["backoffLimit"].is_object());
    assert_eq!(spec["runPolicy"].get("default"), None);
    assert_eq!(spec["workerGroups"].get("default"), None);
}

#[test]
#[should_panic(
    expected = "no pod two-groups-head-0 (has none); GroupJobFailedValidation: GroupJob two-groups failed validation: \
                spec.head.replicas: must be at most 1 (is 2)"
)]
fn a_story_of_a_rejected_job_has_the_reason() {
    let two = JOB.replacen("head: {", "head: {replicas: 2, ", 1);
    assert_ne!(two, JOB);
    let _ = Story::<GroupJob>::new(&two).pod("two-groups-head-0");
}

/// Hooks see conditions that others set, such as a sidecar or a readiness gate, and what a process said at its end.
#[test]
fn a_hook_sees_the_conditions_and_the_last_words_of_pods() {
    let mut story = Story::<GroupJob>::new(JOB);
    let data = |story: &Story<GroupJob>| {
        let mut config = story.object("configmaps", "two-groups-cluster").unwrap();
        config["data"].as_object_mut().unwrap().remove("hosts");
        config["data"].take()
    };
    story.all_run();
    assert_eq!(data(&story), json!({"joined": "", "message": ""}));
    let conditions = json!({"status": {"conditions": [{"type": "example.com/Joined", "status": "True"}]}});
    story.by_hand(async |client| {
        let pods = kube::Api::<Pod>::default_namespaced(client);
        let patch = Patch::Strategic(conditions);
        pods.patch_status("two-groups-small-1", &PatchParams::default(), &patch)
            .await
            .unwrap();
    });
    assert_eq!(
        data(&story),
        json!({"joined": "two-groups-small-1", "message": ""})
    );
    story.exits_saying("two-groups-gpu-large-0", 0, "loss 0.1");
    let expected = json!({"joined": "two-groups-small-1", "message": "loss 0.1"});
    assert_eq!(data(&story), expected);
    // The pod of the next attempt has said nothing yet.
    story.exits_saying("two-groups-small-1", 137, "killed");
    assert_eq!(data(&story), json!({"joined": "", "message": "loss 0.1"}));
}

/// The Submitter waits until the Head is ready, and the gang has a place for it from then on.
#[test]
fn a_gang_grows_when_the_first_role_is_ready() {
    let job = "
        apiVersion: example.com/v1
        kind: GroupJob
        metadata: {name: job}
        spec:
          workerGroups: []
          head: {template: {spec: {containers: [{name: head, image: i}]}}}
          submitter: {template: {spec: {containers: [{name: submitter, image: i}]}}}";
    let mut w = PlanHarness::<GroupJob>::from_yaml(job).with_gangs("volcano");
    let members = |w: &mut PlanHarness<GroupJob>| w.group().unwrap()["spec"]["minMember"].clone();
    w.reconcile();
    assert_eq!(members(&mut w), 1);
    assert_eq!(w.phase("Inqueue").pod_names(), ["head-0"]);
    w.pod("head-0").running();
    let set_ready = |w: &mut PlanHarness<GroupJob>, ready: &str| {
        let status = w.pod("head-0").object().status.as_mut().unwrap();
        let is_ready = |condition: &&mut PodCondition| condition.type_ == "Ready";
        let condition = status.conditions.iter_mut().flatten().find(is_ready);
        condition.unwrap().status = ready.to_owned();
        w.reconcile();
    };
    set_ready(&mut w, "False");
    assert_eq!(members(&mut w), json!(1));
    assert_eq!(w.pod_names(), ["head-0"]);
    set_ready(&mut w, "True");
    assert_eq!((members(&mut w), w.pod_names().len()), (json!(2), 2));
}

/// A Head serves the others until they are done, so none of its ends is good or final.
#[test]
fn a_role_that_is_always_replaced_restarts_after_every_end() {
    let job = |policy: &str| {
        format!(
            "{{apiVersion: example.com/v1, kind: GroupJob, metadata: {{name: job}}, spec: {{workerGroups: [], head: \
             {{restartPolicy: {policy}, template: {{spec: {{containers: [{{name: head, image: i}}]}}}}}}}}}}"
        )
    };
    for policy in ["Never", "OnFailure"] {
        for end in ["exit code 0", "exit code 3", "no containers"] {
            let mut w = PlanHarness::<GroupJob>::from_yaml(&job(policy)).started();
            match end {
                "exit code 0" => w.pod("head-0").exits_in("head", 0),
                "exit code 3" => w.pod("head-0").exits_in("head", 3),
                _ => w.pod("head-0").taken("Succeeded", "", ""),
            }
            .reconcile();
            assert_eq!(w.state(), "Created Restarting", "{policy}, {end}");
            w.finish_deletions().reconcile();
            assert_eq!(w.pod_names(), ["head-0"], "{policy}, {end}");
        }
    }
}
