//! Compact jobs: one service, and one ConfigMap for the common part of all pods' environments.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod};
use serde_json::{Value, json};
use training_job::{ObjectKind, Settings, render, validate};
use training_job_testbed::{ConfigMaps, ToyJob, config_maps, environment};

use crate::harness::{PlanHarness, Stories};

const CONFIG_MAP: ObjectKind = ObjectKind::of::<ConfigMap>();

/// Returns the names of the existing ConfigMaps.
fn maps(harness: &PlanHarness) -> Vec<String> {
    let maps = harness.objects.get(&CONFIG_MAP).into_iter().flatten();
    maps.map(|(name, _)| name.clone()).collect()
}

/// Returns the name of the ConfigMap from which a pod takes variables.
fn taken(pod: &Pod) -> Option<String> {
    let from = pod.spec.as_ref().unwrap().containers[0].env_from.as_ref()?;
    Some(from[0].config_map_ref.as_ref().unwrap().name.clone())
}

fn names(pods: &BTreeMap<String, Pod>) -> Vec<Option<String>> {
    pods.values().map(taken).collect()
}

#[test]
fn a_job_of_many_has_one_service_and_one_config_map() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=100", "layout: Compact");
    assert_eq!(w.reconcile().service_names(), ["hosts"]);
    assert_eq!(w.pods.len(), 101);
    let there = maps(&w);
    assert_eq!(there.len(), 1, "{there:?}");
    assert!(
        names(&w.pods)
            .iter()
            .all(|taken| taken.as_ref() == Some(&there[0]))
    );
    w.all_running().reconcile();
    assert!(w.plan().is_idle());
}

#[test]
fn a_plain_job_has_none_and_a_small_one_needs_none() {
    for (roles, layout, services) in [
        ("Worker=100", "Plain", 100),
        ("Worker=100", "''", 100),
        ("Worker=3", "Compact", 1),
        ("Worker=1", "Compact", 1),
    ] {
        let mut w = PlanHarness::train(roles, &format!("layout: {layout}"));
        w.reconcile();
        assert_eq!(w.services.len(), services, "{roles} {layout}");
        assert_eq!(maps(&w).len(), 0, "{roles} {layout}");
        assert!(names(&w.pods).iter().all(Option::is_none));
    }
}

#[test]
fn pods_keep_their_config_map_when_the_job_is_scaled() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=100", "layout: Compact")
        .elastic()
        .started();
    let first = maps(&w);
    w.scale("Worker", 120).reconcile();
    let both = maps(&w);
    assert_eq!(both.len(), 2);
    assert!(both.contains(&first[0]));
    let of = |harness: &PlanHarness, pod: &str| taken(&harness.pods[pod]).unwrap();
    assert_eq!(of(&w, "job-worker-99"), first[0]);
    assert_ne!(of(&w, "job-worker-100"), first[0]);
    w.all_running().scale("Worker", 100).reconcile();
    w.finish_deletions().reconcile();
    assert_eq!((maps(&w), w.service_names()), (both, vec!["hosts".to_owned()]));
}

#[test]
fn the_config_map_is_deleted_after_the_last_running_pod() {
    let mut w =
        PlanHarness::train("Scheduler=1 Worker=100", "layout: Compact, cleanPodPolicy: None").started();
    w.pod("scheduler-0").succeeds().reconcile().after(1).reconcile();
    assert_eq!(w.state(), "Created Succeeded");
    assert_eq!(maps(&w).len(), 1, "a container may be restarted");
    for worker in 0..100 {
        w.pod(&format!("worker-{worker}")).succeeds();
    }
    w.reconcile();
    assert_eq!((maps(&w).len(), w.services.len(), w.pods.len()), (0, 1, 101));
}

#[test]
fn the_service_goes_with_the_last_pod() {
    for (policy, services) in [("Running", vec!["hosts"]), ("All", vec![])] {
        let mut w = PlanHarness::train(
            "Scheduler=1 Worker=2",
            &format!("layout: Compact, cleanPodPolicy: {policy}"),
        );
        w.reconcile().all_running().pod("worker-0").succeeds();
        w.pod("scheduler-0").succeeds().reconcile().after(1).reconcile();
        w.finish_deletions().reconcile();
        assert_eq!(w.service_names(), services, "{policy}");
    }
}

#[test]
fn a_suspended_job_has_nothing_and_gets_it_again() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=100", "layout: Compact").started();
    let before = maps(&w);
    w.suspend(true).reconcile().finish_deletions().reconcile();
    assert_eq!((maps(&w).len(), w.services.len(), w.pods.len()), (0, 0, 0));
    w.suspend(false).reconcile();
    assert_eq!((maps(&w), w.service_names()), (before, vec!["hosts".to_owned()]));
}

/// Returns a worker's pod of a job of 100 workers, and the job's ConfigMaps. `container` has fields of the main
/// container, and `pod` has fields of the pod's spec.
fn worker(container: &Value, pod: &Value, layout: &str) -> (Pod, ConfigMaps) {
    let mut spec = pod.clone();
    let mut main = json!({"name": "toy", "image": "i"});
    for (name, value) in container.as_object().unwrap() {
        main[name] = value.clone();
    }
    spec["containers"] = json!([main, {"name": "aside", "image": "i"}]);
    let role = json!({"replicas": 100, "template": {"spec": spec}});
    let object = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "ToyJob", "metadata": {"name": "job", "namespace": "team"},
        "spec": {"runPolicy": {"layout": layout}, "replicaSpecs": {"Worker": role}},
    });
    let job: ToyJob = serde_json::from_value(object).unwrap();
    let mut settings = Settings::default();
    settings.cluster_domain = "example.org".to_owned();
    let rendered = render::all(&validate(&job, &settings).unwrap());
    (rendered.pods[7].clone(), config_maps(&rendered.objects))
}

fn containers(pod: &Pod) -> &[Container] {
    &pod.spec.as_ref().unwrap().containers
}

/// Users' variables beside the framework's may refer to them, or have the same names.
#[test]
fn whatever_the_user_has_the_process_sees_the_same() {
    let own = |value: &str| json!({"env": [{"name": "OWN", "value": value}]});
    let from = |name: &str| json!({"envFrom": [{"configMapRef": {"name": name}}]});
    for (container, takes) in [
        (json!({}), true),
        (own("$(TOY_ROLE)"), true),
        (own("$$(TOY_ROLE)"), true),
        (json!({"env": [{"name": "TOY_CONFIG", "value": "mine"}]}), true),
        // The variable comes before the framework's, so that name is not defined yet.
        (own("$(TOY_CONFIG)"), false),
        (own("$$(TOY_CONFIG)"), false),
        (from("theirs"), true),
    ] {
        let theirs = [("TOY_CONFIG", "theirs"), ("OTHER", "$(TOY_ROLE)")];
        let theirs = theirs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (plain, mut maps) = worker(&container, &json!({}), "Plain");
        maps.insert("theirs".to_owned(), theirs.clone().into());
        let (compact, mut shared) = worker(&container, &json!({}), "Compact");
        shared.insert("theirs".to_owned(), theirs.into());
        let ours = |from: &k8s_openapi::api::core::v1::EnvFromSource| {
            from.config_map_ref
                .as_ref()
                .is_some_and(|map| map.name.starts_with("job-env-"))
        };
        for (n, (plain, compact)) in containers(&plain).iter().zip(containers(&compact)).enumerate() {
            assert_eq!(
                environment(plain, &maps),
                environment(compact, &shared),
                "{container}"
            );
            let taken = compact
                .env_from
                .iter()
                .flatten()
                .filter(|from| ours(from))
                .count();
            assert_eq!(taken, usize::from(takes || n == 1), "{container}");
        }
    }
}

#[test]
fn dns_searches_of_the_user_follow_the_domain_of_the_job() {
    let searches = |pod: &Value| {
        let (pod, _) = worker(&json!({}), pod, "Compact");
        pod.spec.unwrap().dns_config.unwrap()
    };
    let own = "job-hosts.team.svc.example.org";
    let found =
        searches(&json!({"dnsConfig": {"searches": ["corp.example", own], "nameservers": ["10.0.0.1"]}}));
    assert_eq!(
        found.searches,
        Some(vec![own.to_owned(), "corp.example".to_owned()])
    );
    assert_eq!(found.nameservers, Some(vec!["10.0.0.1".to_owned()]));
    assert_eq!(searches(&json!({})).searches, Some(vec![own.to_owned()]));
}

/// The ports of all roles in one service. Each number appears once, and names are unique.
#[test]
fn the_one_service_has_the_ports_of_all_roles() {
    let role = |ports: Value| json!({"template": {"spec": {"containers": [{"name": "toy", "image": "i", "ports": ports}]}}});
    let object = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "ToyJob", "metadata": {"name": "job"},
        "spec": {"runPolicy": {"layout": "Compact"}, "replicaSpecs": {
            "Scheduler": role(json!([{"name": "toy-port", "containerPort": 1}, {"name": "web", "containerPort": 2}])),
            "Server": {"replicas": 0, "template": role(json!([{"containerPort": 9}]))["template"]},
            "Worker": role(json!([{"name": "web", "containerPort": 3}, {"containerPort": 2, "protocol": "UDP"}])),
        }},
    });
    let job: ToyJob = serde_json::from_value(object).unwrap();
    let rendered = render::all(&validate(&job, &Settings::default()).unwrap());
    assert_eq!(rendered.services.len(), 1);
    let ports = rendered.services[0]
        .spec
        .as_ref()
        .unwrap()
        .ports
        .as_ref()
        .unwrap();
    let ports: Vec<_> = ports
        .iter()
        .map(|p| (p.name.as_deref().unwrap(), p.port))
        .collect();
    let expected = [
        ("toy-port", 1),
        ("web", 2),
        ("port-3", 3),
        ("port-2-udp", 2),
        ("port-4000", 4000),
    ];
    assert_eq!(ports, expected);
}
