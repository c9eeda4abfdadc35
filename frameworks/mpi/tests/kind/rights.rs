//! The launcher's permissions: no object of an MPIJob refers to an object that the job does not control.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use training_job_mpi::MPIJob;
use training_job_testing::Story;

const TAKEN: &str = "the name is taken by an object that this job does not control (it has no controller)";

/// An object that a job named `job` would create: its API group, kind, plural and name.
struct Named {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    name: &'static str,
}

const RBAC: &str = "rbac.authorization.k8s.io";
const ROLE: Named = Named {
    group: RBAC,
    kind: "Role",
    plural: "roles",
    name: "job-launcher",
};
const BINDING: Named = Named {
    group: RBAC,
    kind: "RoleBinding",
    plural: "rolebindings",
    name: "job-launcher",
};
const ACCOUNT: Named = Named {
    group: "",
    kind: "ServiceAccount",
    plural: "serviceaccounts",
    name: "job-launcher",
};
const CONFIG: Named = Named {
    group: "",
    kind: "ConfigMap",
    plural: "configmaps",
    name: "job-config",
};

impl Named {
    fn api(&self, client: kube::Client) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(self.group, "v1", self.kind);
        Api::default_namespaced_with(client, &ApiResource::from_gvk_with_plural(&kind, self.plural))
    }

    /// Returns an object of this name that no job controls.
    fn foreign(&self) -> DynamicObject {
        let object = json!({
            "apiVersion": format!("{}{}v1", self.group, if self.group.is_empty() { "" } else { "/" }),
            "kind": self.kind,
            "metadata": {"name": self.name, "labels": {"mine": "1"}},
        });
        serde_json::from_value(object).unwrap()
    }

    fn of(&self, story: &Story<MPIJob>) -> Option<Value> {
        story.object(self.plural, self.name)
    }

    /// Returns true if the object exists and the job owns it.
    fn is_own(&self, story: &Story<MPIJob>) -> bool {
        self.of(story)
            .is_some_and(|object| object["metadata"]["ownerReferences"][0]["kind"] == "MPIJob")
    }
}

/// Returns a suspended job of a launcher and two workers, with these fields in the launcher's pod.
fn suspended(launcher: &Value) -> Story<MPIJob> {
    let mut pod = json!({"containers": [{"name": "mpi", "image": "i"}]});
    let role = |replicas: u32, pod: &Value| json!({"replicas": replicas, "template": {"spec": pod}});
    let worker = role(2, &pod);
    for (field, value) in launcher.as_object().unwrap() {
        pod[field] = value.clone();
    }
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": "job"},
        "spec": {
            "runPolicy": {"suspend": true, "cleanPodPolicy": "None"},
            "mpiReplicaSpecs": {"Launcher": role(1, &pod), "Worker": worker},
        },
    });
    Story::new(&job.to_string())
}

fn resume(story: &mut Story<MPIJob>) {
    story.patch(&json!({"spec": {"runPolicy": {"suspend": false}}}));
}

fn running() -> Story<MPIJob> {
    let mut story = suspended(&json!({}));
    resume(&mut story);
    story.all_run().all_run();
    assert_eq!(story.conditions(), ["Created", "Running"]);
    story
}

/// Returns the names of the pods in which the launcher may start processes.
fn granted(story: &Story<MPIJob>) -> Vec<String> {
    let role = ROLE.of(story).unwrap();
    let rules = role["rules"].as_array().unwrap().iter();
    let exec = rules.filter(|rule| rule["resources"] == json!(["pods/exec"]));
    let names = exec.flat_map(|rule| rule["resourceNames"].as_array().unwrap());
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_job_waits_for_each_name_that_is_taken_and_nothing_refers_to_the_foreign_object() {
    for foreign in [ROLE, ACCOUNT, CONFIG, BINDING] {
        let kind = foreign.kind;
        let mut story = suspended(&json!({}));
        story.by_hand(async |client| {
            let api = foreign.api(client);
            api.create(&PostParams::default(), &foreign.foreign())
                .await
                .unwrap();
        });
        resume(&mut story);
        // The creation is retried in the meantime.
        story.after(Duration::from_secs(300));
        assert_eq!(story.pods(), [""; 0], "{kind}");
        assert_eq!(BINDING.is_own(&story), kind == "ConfigMap", "{kind}");
        assert!(!foreign.is_own(&story), "{kind}");
        let event = format!(
            "FailedCreate{kind}: Error creating: {kind} {}: {TAKEN}",
            foreign.name
        );
        assert!(story.events().contains(&event), "{:#?}", story.events());
        story.by_hand(async |client| {
            let api = foreign.api(client);
            api.delete(foreign.name, &DeleteParams::default()).await.unwrap();
        });
        story.after(Duration::from_secs(300)).all_run().all_run();
        assert_eq!(story.conditions(), ["Created", "Running"], "{kind}");
        for own in [ROLE, ACCOUNT, CONFIG, BINDING] {
            assert!(own.is_own(&story), "{kind}: {}", own.kind);
        }
    }
}

#[test]
fn the_service_account_of_the_template_gets_the_role_binding() {
    let mut story = suspended(&json!({"serviceAccountName": "mine"}));
    resume(&mut story);
    story.all_run().all_run();
    assert_eq!(story.conditions(), ["Created", "Running"]);
    assert_eq!(ACCOUNT.of(&story), None);
    assert_eq!(BINDING.of(&story).unwrap()["subjects"][0]["name"], "mine");
}

/// The binding must be deleted when the job no longer controls the Role or the ServiceAccount.
#[test]
fn a_role_binding_is_deleted_when_the_job_no_longer_needs_it() {
    for lost in [ROLE, ACCOUNT] {
        let mut story = running();
        assert!(BINDING.is_own(&story));
        story.by_hand(async |client| {
            let owners = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
            let api = lost.api(client);
            api.patch(lost.name, &PatchParams::default(), &owners)
                .await
                .unwrap();
        });
        assert_eq!(BINDING.of(&story), None, "{}", lost.kind);
    }
}

#[test]
fn a_job_that_is_suspended_or_has_ended_has_no_rights() {
    for ends in [false, true] {
        let mut story = running();
        story.patch(&json!({"spec": {"runPolicy": {"cleanPodPolicy": "Running"}}}));
        if ends {
            story.exits("job-launcher", 0);
        } else {
            story.patch(&json!({"spec": {"runPolicy": {"suspend": true}}}));
        }
        story.after(Duration::from_secs(300));
        let left = [BINDING, ROLE, ACCOUNT].map(|object| object.of(&story));
        assert_eq!(left, [None, None, None], "{ends}");
    }
}

#[test]
fn the_role_names_the_pods_that_the_job_controls_and_no_others() {
    let mut story = suspended(&json!({}));
    story.by_hand(async |client| {
        let theirs = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job-worker-1"},
            "spec": {"containers": [{"name": "other", "image": "i"}]},
        });
        let api = Api::<Pod>::default_namespaced(client);
        let theirs = serde_json::from_value(theirs).unwrap();
        api.create(&PostParams::default(), &theirs).await.unwrap();
    });
    resume(&mut story);
    assert_eq!(story.pods(), ["job-worker-0", "job-worker-1"]);
    assert_eq!(
        granted(&story),
        ["job-worker-0"],
        "the other one is not the job's"
    );
    story.deleted("job-worker-1").after(Duration::from_secs(300));
    assert_eq!(granted(&story), ["job-worker-0", "job-worker-1"]);
    story.all_run().all_run();
    assert_eq!(story.pods(), ["job-launcher", "job-worker-0", "job-worker-1"]);
    assert_eq!(
        granted(&story),
        ["job-worker-0", "job-worker-1"],
        "never the launcher itself"
    );
    story.patch(&json!({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}}));
    assert_eq!(granted(&story), ["job-worker-0"]);
    story.exits("job-launcher", 0);
    assert_eq!(story.conditions(), ["Created", "Succeeded"]);
    assert_eq!(story.pods().len(), 2, "they stay");
    assert_eq!(granted(&story), [""; 0], "no process is started after the end");
}
