//! The objects of a job beside pods and services. They are created before them, maintained as the kind defines, and
//! deleted at the right time.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use training_job::{Settings, render, validate};
use training_job_testing::Story;

use super::object;
use training_job_testbed::ListJob;

const HOSTS: &str = "job-hosts";

/// Returns a job of a client and two workers, with these fields in its spec.
fn story(fields: &Value) -> Story<ListJob> {
    let mut new = object(&[("CLIENT", 1), ("WORKER", 2)]);
    new["metadata"]["uid"].take();
    for (name, value) in fields.as_object().unwrap() {
        new["spec"][name] = value.clone();
    }
    Story::new(&new.to_string())
}

fn running(story: &Story<ListJob>) -> String {
    let hosts = story.object("configmaps", HOSTS).unwrap();
    hosts["data"]["running"].as_str().unwrap().to_owned()
}

/// Returns the events that start with this text.
fn events(story: &Story<ListJob>, beginning: &str) -> Vec<String> {
    let events = story.events().into_iter();
    events.filter(|event| event.starts_with(beginning)).collect()
}

async fn patch_hosts(client: kube::Client, patch: Value) {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let params = PatchParams::default();
    maps.patch(HOSTS, &params, &Patch::Merge(patch)).await.unwrap();
}

#[test]
fn objects_are_rendered_first_and_belong_to_the_job() {
    let job: ListJob = serde_json::from_value(object(&[("CLIENT", 1), ("WORKER", 2)])).unwrap();
    let settings = Settings::default();
    let rendered = render::all(&validate(&job, &settings).unwrap());
    let values = rendered.values().unwrap();
    let kinds: Vec<_> = values
        .iter()
        .map(|value| value["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds[..3], ["ConfigMap", "Turn", "Service"]);
    let metadata = json!({
        "name": "job",
        "namespace": "default",
        "labels": {
            "training.kubeflow.org/operator-name": "listjob-controller",
            "training.kubeflow.org/job-name": "job",
        },
        "ownerReferences": [{
            "apiVersion": "example.com/v1", "kind": "ListJob", "name": "job", "uid": "uid",
            "controller": true, "blockOwnerDeletion": true,
        }],
    });
    assert_eq!(values[1]["metadata"], metadata);
    assert_eq!(values[1]["apiVersion"], "example.com/v1");
    assert_eq!(values[1]["spec"]["members"], 3);
    assert_eq!(values[0]["data"], json!({"running": ""}), "nobody runs yet");
}

#[test]
fn objects_are_made_first_and_follow_the_replicas() {
    let mut story = story(&json!({}));
    let version = |plural: &str, name: &str| -> u64 {
        let object = story.object(plural, name).unwrap();
        object["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    };
    let made = [
        ("configmaps", HOSTS),
        ("turns", "job"),
        ("services", "job-worker-x1-0"),
        ("pods", "job-worker-x1-0"),
    ];
    assert!(made.map(|(plural, name)| version(plural, name)).is_sorted());
    let told: Vec<_> = events(&story, "SuccessfulCreate");
    let reasons = told.iter().map(|event| event.split(':').next().unwrap());
    assert!(
        reasons.eq(["SuccessfulCreateService", "SuccessfulCreatePod"]),
        "{told:#?}"
    );
    assert_eq!(running(&story), "");
    story.all_run();
    assert_eq!(running(&story), "job-worker-x1-0\njob-worker-x1-1\n");
    story.exits("job-worker-x1-0", 0);
    assert_eq!(running(&story), "job-worker-x1-1\n");
    assert_eq!(events(&story, "Failed"), [""; 0]);
}

#[test]
fn edited_and_deleted_objects_are_restored_and_added_fields_stay() {
    let mut story = story(&json!({}));
    story.all_run().by_hand(async |client| {
        let edit =
            json!({"data": {"running": "nobody", "note": "keep"}, "metadata": {"labels": {"mine": "1"}}});
        patch_hosts(client, edit).await;
    });
    assert_eq!(running(&story), "job-worker-x1-0\njob-worker-x1-1\n");
    let hosts = story.object("configmaps", HOSTS).unwrap();
    assert_eq!(&hosts["data"]["note"], &json!("keep"));
    assert_eq!(&hosts["metadata"]["labels"]["mine"], &json!("1"));

    story.by_hand(async |client| {
        let maps = Api::<ConfigMap>::default_namespaced(client);
        maps.delete(HOSTS, &DeleteParams::default()).await.unwrap();
    });
    let again = story.object("configmaps", HOSTS).unwrap();
    assert_ne!(again["metadata"]["uid"], hosts["metadata"]["uid"]);
    // Without the label that operators select, the object is not watched. It is found when its name is taken.
    story.by_hand(async |client| {
        let label = json!({"metadata": {"labels": {"training.kubeflow.org/operator-name": null}}});
        patch_hosts(client, label).await;
    });
    let labelled = story.object("configmaps", HOSTS).unwrap();
    assert_eq!(labelled["metadata"]["uid"], again["metadata"]["uid"]);
    assert_eq!(
        labelled["metadata"]["labels"]["training.kubeflow.org/operator-name"],
        "listjob-controller"
    );
}

#[test]
fn a_foreign_object_is_not_changed_and_the_job_waits_for_its_name() {
    let mut story = story(&json!({"suspend": true}));
    assert_eq!(
        story.object("configmaps", HOSTS),
        None,
        "a suspended job gets nothing"
    );
    story.by_hand(async |client| {
        let theirs =
            serde_json::from_value(json!({"metadata": {"name": HOSTS}, "data": {"running": "theirs"}}));
        let maps = Api::<ConfigMap>::default_namespaced(client);
        maps.create(&PostParams::default(), &theirs.unwrap())
            .await
            .unwrap();
    });
    story.patch(&json!({"spec": {"suspend": false}}));
    assert_eq!(running(&story), "theirs");
    assert_eq!(story.pods(), [""; 0], "they may need what the job does not have");
    let taken = "FailedCreateConfigMap: Error creating: ConfigMap job-hosts: \
                 the name is taken by an object that this job does not control (it has no controller)";
    assert_eq!(events(&story, "Failed"), [taken]);
    assert_eq!(
        story.object("turns", "job"),
        None,
        "it would refer to what is theirs"
    );

    story.by_hand(async |client| {
        let maps = Api::<ConfigMap>::default_namespaced(client);
        maps.delete(HOSTS, &DeleteParams::default()).await.unwrap();
    });
    story.after(Duration::from_secs(60));
    assert_eq!(story.pods().len(), 3);
    assert!(story.object("turns", "job").is_some());

    story.by_hand(async |client| {
        patch_hosts(client, json!({"metadata": {"ownerReferences": null}})).await;
    });
    assert_eq!(
        story.object("turns", "job"),
        None,
        "it would refer to what is not the job's any more"
    );
    assert_eq!(story.pods().len(), 3, "what runs goes on");
}

#[test]
fn objects_for_active_jobs_are_deleted_after_the_last_running_pod() {
    let finalizers = |names: Value| {
        async move |client: kube::Client| {
            let pods = Api::<Pod>::default_namespaced(client);
            let patch = Patch::Merge(json!({"metadata": {"finalizers": names}}));
            let params = PatchParams::default();
            pods.patch("job-worker-x1-0", &params, &patch).await.unwrap();
        }
    };
    let mut story = story(&json!({}));
    story.all_run().by_hand(finalizers(json!(["example.com/keep"])));
    story.patch(&json!({"spec": {"suspend": true}}));
    assert!(story.object("turns", "job").is_some(), "{:?}", story.pods());
    story.by_hand(finalizers(Value::Null));
    assert_eq!(story.pods(), [""; 0]);
    assert_eq!(story.object("turns", "job"), None);
    assert_eq!(running(&story), "", "what stays says what is true");

    story.patch(&json!({"spec": {"suspend": false}}));
    assert!(story.object("turns", "job").is_some(), "its turn comes again");
    story.all_run().exits("job-worker-x1-0", 0);
    assert_eq!(running(&story), "job-worker-x1-1\n");
    story.exits("job-worker-x1-1", 0);
    assert_eq!(story.conditions(), ["Created", "Succeeded"]);
    assert_eq!(story.object("turns", "job"), None);
    assert_eq!(running(&story), "");
}

#[test]
fn objects_that_are_no_longer_returned_are_deleted() {
    let mut story = story(&json!({}));
    assert!(story.object("turns", "job").is_some());
    story.all_run().patch(&json!({"spec": {"detached": true}}));
    assert_eq!(story.object("turns", "job"), None);
    assert_eq!(story.pods().len(), 3);
}

#[test]
fn a_field_that_the_server_drops_is_patched_with_a_backoff_and_reported_once() {
    let mut story = story(&json!({}));
    story.by_hand(async |client| {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "turns.example.com"},
            "spec": {
                "group": "example.com",
                "names": {"kind": "Turn", "plural": "turns"},
                "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": {"members": {"type": "integer"}}}},
                }}}],
            },
        });
        let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
        let definitions = Api::all(client.clone());
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let jobs = ApiResource::erase::<ListJob>(&());
        let jobs = Api::<DynamicObject>::default_namespaced_with(client, &jobs);
        let colour = json!({"metadata": {"annotations": {"colour": "red"}}});
        let params = PatchParams::default();
        jobs.patch("job", &params, &Patch::Merge(colour)).await.unwrap();
    });
    story.all_run();
    let told = "FailedPatchTurn: Error patching: Turn job: \
                the API server accepted the change but stored something else; look for an admission webhook or policy \
                that changes it back, or a definition without the field";
    assert_eq!(events(&story, "FailedPatch"), [told]);
    assert_eq!(
        running(&story),
        "job-worker-x1-0\njob-worker-x1-1\n",
        "all else is kept"
    );
    assert_eq!(story.conditions(), ["Created", "Running"]);
}

/// The watch delivers each edit at once.
#[test]
fn repeated_edits_of_an_object_are_corrected_with_a_backoff() {
    let mut story = story(&json!({}));
    let mut undone = 0;
    story.all_run().by_hand(async |client| {
        let maps = Api::<ConfigMap>::default_namespaced(client.clone());
        for _ in 0..400 {
            patch_hosts(client.clone(), json!({"data": {"running": "nobody"}})).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            let data = maps.get(HOSTS).await.unwrap().data.unwrap();
            undone += i32::from(data["running"] != "nobody");
        }
    });
    // One repair per second.
    assert!((30..=45).contains(&undone), "{undone} of 400 in 40 s");
    assert_eq!(running(&story), "job-worker-x1-0\njob-worker-x1-1\n");
}

#[test]
fn an_undeclared_kind_is_found_by_the_first_job() {
    let mut new = object(&[("CLIENT", 1), ("WORKER", 2)]);
    new["metadata"]["annotations"] = json!({"undeclared": "yes"});
    let job: ListJob = serde_json::from_value(new).unwrap();
    let errors = validate(&job, &Settings::default()).unwrap_err().to_string();
    let expected = "the job's Other \"job\" is of a kind that ListJob does not declare";
    assert!(errors.contains(expected), "{errors}");
}

/// The API server drops fields that it does not know, so an object would be another than its author means.
#[test]
fn an_object_that_does_not_fit_its_kind_is_found_by_the_first_job() {
    let errors = |field: &str| {
        let mut new = object(&[("CLIENT", 1), ("WORKER", 2)]);
        new["metadata"]["annotations"] = json!({"board": "board", "board-field": field});
        let job: ListJob = serde_json::from_value(new).unwrap();
        let errors = validate(&job, &Settings::default()).unwrap_err();
        errors.to_string()
    };
    assert_eq!(
        errors("port"),
        "spec: the job's Service \"board\" is invalid: spec.ports[0].port: must be an integer (is \"eighty\"); \
         this is a mistake in the operator: correct the hook objects"
    );
    let unknown = errors("prot");
    assert!(unknown.contains("spec.ports[0].prot: unknown field"), "{unknown}");
    assert!(unknown.contains("did you mean port"), "{unknown}");
}
