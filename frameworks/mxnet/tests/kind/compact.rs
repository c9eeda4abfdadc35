//! A compact job has one service, and one ConfigMap for the common part of the environment. Its processes see the
//! same variables as those of a plain job.

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use training_job::render::{Rendered, all};
use training_job::{Settings, validate};
use training_job_mxnet::MXJob;
use training_job_testbed::{config_maps, environment};
use training_job_testing::Story;

fn render(workers: u32, layout: &str) -> Rendered {
    let role = |replicas: u32| {
        let containers =
            json!([{"name": "mxnet", "image": "i", "env": [{"name": "MINE", "value": "$(DMLC_ROLE)"}]}]);
        json!({"replicas": replicas, "template": {"spec": {"containers": containers}}})
    };
    let object = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MXJob",
        "metadata": {"name": "spirals", "namespace": "team", "uid": "u"},
        "spec": {
            "jobMode": "MXTrain",
            "runPolicy": {"layout": layout},
            "mxReplicaSpecs": {"Scheduler": role(1), "Server": role(2), "Worker": role(workers)},
        },
    });
    let job: MXJob = serde_json::from_value(object).unwrap();
    all(&validate(&job, &Settings::default()).unwrap())
}

fn bytes(rendered: &Rendered) -> usize {
    let values = rendered.values().unwrap();
    values.iter().map(|value| value.to_string().len()).sum()
}

#[test]
fn processes_of_a_compact_job_get_the_environment_of_a_plain_job() {
    let (plain, compact) = (render(100, "Plain"), render(100, "Compact"));
    let maps = config_maps(&compact.objects);
    assert_eq!((maps.len(), plain.objects.len()), (1, 0));
    assert_eq!(plain.pods.len(), compact.pods.len());
    for (plain, compact) in plain.pods.iter().zip(&compact.pods) {
        assert_eq!(plain.metadata, compact.metadata);
        let container =
            |pod: &k8s_openapi::api::core::v1::Pod| pod.spec.as_ref().unwrap().containers[0].clone();
        let (plain, compact) = (container(plain), container(compact));
        assert_ne!(plain.env, compact.env);
        assert_eq!(environment(&plain, &maps), environment(&compact, &maps));
    }
}

#[test]
fn bytes_grow_with_the_replicas_and_not_with_their_square() {
    let per_replica = |workers: u32| bytes(&render(workers, "Compact")) / workers as usize;
    assert!(
        per_replica(1_000) <= per_replica(100),
        "{} {}",
        per_replica(1_000),
        per_replica(100)
    );
    let plain = bytes(&render(1_000, "Plain"));
    let compact = bytes(&render(1_000, "Compact"));
    assert!(compact * 20 < plain, "{compact} of {plain}");
}

#[test]
fn pods_find_each_other_by_one_service() {
    let compact = render(2, "Compact");
    assert_eq!(compact.objects, [], "what is short is in the pods");
    let service = serde_json::to_value(&compact.services).unwrap();
    assert_eq!(service.as_array().map(Vec::len), Some(1));
    assert_eq!(service[0]["metadata"]["name"], "spirals-hosts");
    let selector: Value = json!({
        "training.kubeflow.org/operator-name": "mxjob-controller",
        "training.kubeflow.org/job-name": "spirals",
    });
    let spec = json!({
        "clusterIP": "None", "publishNotReadyAddresses": true, "selector": selector,
        "ports": [{"name": "mxjob-port", "port": 9091}],
    });
    assert_eq!(service[0]["spec"], spec);
    for pod in &compact.pods {
        let spec = pod.spec.as_ref().unwrap();
        assert_eq!(spec.hostname, pod.metadata.name);
        assert_eq!(spec.subdomain.as_deref(), Some("spirals-hosts"));
        let searches = spec.dns_config.as_ref().unwrap().searches.as_ref().unwrap();
        assert_eq!(*searches, ["spirals-hosts.team.svc.cluster.local"]);
    }
}

/// Returns a job of 60 workers, which together have names of sufficient length.
fn story() -> Story<MXJob> {
    let container = json!({"name": "mxnet", "image": "i"});
    let role = |replicas: u32| json!({"replicas": replicas, "restartPolicy": "ExitCode", "template": {"spec": {"containers": [container]}}});
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": "spirals"},
        "spec": {
            "jobMode": "MXTrain", "runPolicy": {"layout": "Compact"},
            "mxReplicaSpecs": {"Scheduler": role(1), "Worker": role(60)},
        },
    });
    Story::new(&job.to_string())
}

/// Returns the name of the ConfigMap that a pod refers to.
fn map_of(story: &Story<MXJob>, pod: &str) -> String {
    let from = story.pod(pod).spec.unwrap().containers[0]
        .env_from
        .clone()
        .unwrap();
    from[0].config_map_ref.as_ref().unwrap().name.clone()
}

fn reasons(story: &Story<MXJob>) -> Vec<String> {
    let events = story.events().into_iter();
    events
        .map(|event| event.split(':').next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_config_map_exists_before_the_pods_and_through_all_restarts() {
    let mut story = story();
    let map = map_of(&story, "spirals-worker-7");
    let made = [
        ("configmaps", &*map),
        ("services", "spirals-hosts"),
        ("pods", "spirals-worker-7"),
    ];
    let versions = made.map(|(plural, name)| -> u64 {
        let object = story.object(plural, name).unwrap();
        object["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    });
    assert!(versions.is_sorted(), "{versions:?}");
    let created = ["Service", "Pod"].map(|kind| format!("SuccessfulCreate{kind}"));
    let told: Vec<_> = reasons(&story)
        .into_iter()
        .filter(|r| r.starts_with("SuccessfulCreate"))
        .collect();
    assert_eq!(told, created);
    story.all_run();
    assert!(story.object("services", "spirals-hosts").is_some());

    story.exits("spirals-worker-7", 137).all_run();
    assert_eq!(story.restarted().len(), 61);
    assert_eq!(map_of(&story, "spirals-worker-7"), map);
    let before = story.object("configmaps", &map).unwrap();
    let gone = map.clone();
    story.by_hand(async |client| {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        maps.delete(&gone, &DeleteParams::default()).await.unwrap();
        let services: Api<Service> = Api::default_namespaced(client);
        services
            .delete("spirals-hosts", &DeleteParams::default())
            .await
            .unwrap();
    });
    let after = story.object("configmaps", &map).unwrap();
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(&before["data"], &after["data"]);
    assert_eq!(&before["immutable"], &json!(true));
    assert!(story.object("services", "spirals-hosts").is_some());
    for worker in 0..60 {
        story.exits(&format!("spirals-worker-{worker}"), 0);
    }
    story.exits("spirals-scheduler-0", 0);
    assert_eq!(story.conditions(), ["Created", "Succeeded"]);
    assert_eq!(story.object("configmaps", &map), None);
}

/// The operator must not create pods that would need its own ConfigMap.
#[test]
fn a_foreign_config_map_is_not_changed() {
    let name = map_of(&story(), "spirals-worker-0");
    let mut story = story();
    let theirs = name.clone();
    story
        .patch(&json!({"spec": {"runPolicy": {"suspend": true}}}))
        .by_hand(async |client| {
            let maps: Api<ConfigMap> = Api::default_namespaced(client);
            let map = serde_json::from_value(json!({"metadata": {"name": theirs}})).unwrap();
            maps.create(&PostParams::default(), &map).await.unwrap();
        });
    story.patch(&json!({"spec": {"runPolicy": {"suspend": false}}}));
    assert_eq!(story.pods(), [""; 0]);
    assert_eq!(story.object("configmaps", &name).unwrap()["data"], Value::Null);
    assert_eq!(
        reasons(&story).last().map(String::as_str),
        Some("FailedCreateConfigMap")
    );
}
