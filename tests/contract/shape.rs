//! The roles from a list, the names of replicas, and the error messages.

use std::sync::Arc;

use training_job::{Settings, render, validate};

use super::{job, object};
use training_job_testbed::list_job::{GREETING, ListJob};

fn errors(job: &ListJob) -> String {
    validate(job, &Settings::default()).unwrap_err().to_string()
}

#[test]
fn replicas_of_a_list_have_the_kinds_own_names_labels_and_images() {
    let job = job(&[("HEAD", 1), ("worker", 2)]);
    let valid = validate(&job, &Settings::default()).unwrap();
    let render::Rendered { services, pods, .. } = render::all(&valid);
    let names = |name: Option<String>| name.unwrap();
    let pod_names: Vec<_> = pods.iter().map(|p| names(p.metadata.name.clone())).collect();
    assert_eq!(pod_names, ["job-boss", "job-worker-x1-0", "job-worker-x1-1"]);
    let service_names: Vec<_> = services.iter().map(|s| names(s.metadata.name.clone())).collect();
    assert_eq!(service_names, pod_names);
    for (pod, service) in pods.iter().zip(&services) {
        let labels = pod.metadata.labels.as_ref().unwrap();
        assert!(labels.contains_key("member_type"));
        assert_eq!(labels["training.kubeflow.org/job-name"], "job");
        assert_eq!(service.metadata.labels.as_ref(), Some(labels));
        let container = &pod.spec.as_ref().unwrap().containers[0];
        assert_eq!(container.image.as_deref(), Some("example.com/list:1"));
        let env = container.env.as_ref().unwrap();
        assert_eq!(env[1].value, pod.metadata.name);
    }
}

#[test]
fn settings_of_the_operator_reach_the_environment() {
    let job = job(&[("CLIENT", 1), ("WORKER", 2)]);
    let greeting = |settings: &Settings| {
        let valid = validate(&job, settings).unwrap();
        let pods = render::all(&valid).pods;
        let env = pods[0].spec.as_ref().unwrap().containers[0].env.clone().unwrap();
        env[0].value.clone().unwrap()
    };
    assert_eq!(greeting(&Settings::default()), GREETING.default);
    let mut settings = Settings::default();
    settings.values = Arc::new([(GREETING.name.to_owned(), "good day".to_owned())].into());
    assert_eq!(greeting(&settings), "good day");
}

#[test]
fn errors_name_the_item_of_the_list() {
    assert_eq!(
        errors(&job(&[("WORKER", 2), ("WORKR", 1), ("worker", 1)])),
        "spec.members[1]: ListJob has no role WORKR; did you mean WORKER? use one of HEAD, CLIENT, WORKER, NOTEBOOK\n\
         spec.members[2]: duplicate role WORKER (case is ignored); keep one of them"
    );
    let mut nameless = object(&[("HEAD", 2), ("WORKER", 2)]);
    nameless["spec"]["image"] = serde_json::Value::Null;
    assert_eq!(
        errors(&serde_json::from_value(nameless).unwrap()),
        "spec.members[0].replicas: must be at most 1 (is 2)\n\
         spec.members[0].template.spec.containers[0].image: must be set; name the image to run\n\
         spec.members[1].template.spec.containers[0].image: must be set; name the image to run"
    );
}

/// A kind's author sees these with the first job.
#[test]
fn mistakes_in_the_hooks_of_roles_are_errors() {
    let mistaken = |annotation: &str, value: &str, roles: &[(&str, i32)]| {
        let mut object = object(roles);
        object["metadata"]["annotations"][annotation] = value.into();
        let errors = errors(&serde_json::from_value(object).unwrap());
        let lines = errors
            .lines()
            .map(|line| line.split(';').next().unwrap().to_owned());
        lines.collect::<Vec<_>>()
    };
    let two = "two replicas would have the name job-one";
    let of_worker = [format!("spec.members[0]: {two}")];
    assert_eq!(mistaken("one-name", "", &[("WORKER", 2), ("HEAD", 0)]), of_worker);
    let absent = mistaken("one-name", "", &[("HEAD", 1), ("CLIENT", 0), ("WORKER", 2)]);
    assert_eq!(absent, [format!("spec.members[2]: {two}")]);
    let of_notebook = [
        format!("spec.members[0]: {two}"),
        format!("spec.members[1]: {two}"),
    ];
    assert_eq!(
        mistaken("one-name", "", &[("WORKER", 2), ("NOTEBOOK", 1)]),
        of_notebook
    );
    let of_client = [
        "spec.members[1]: two replicas would have a service of the name job-one".to_owned(),
        format!("spec.members[0]: {two}"),
    ];
    assert_eq!(
        mistaken("one-name", "", &[("WORKER", 2), ("CLIENT", 1)])[..],
        of_client
    );
    let unknown = mistaken("waits", "nobody", &[("WORKER", 2)]);
    assert_eq!(
        unknown,
        ["spec.members[0]: role WORKER must not start after NOBODY"]
    );
    let itself = mistaken("waits", "itself", &[("WORKER", 2), ("HEAD", 1)]);
    assert_eq!(
        itself,
        ["spec.members[0]: role WORKER must not start after WORKER"]
    );
}

#[test]
fn bounds_and_requirements_have_the_same_wording() {
    assert_eq!(
        errors(&job(&[("HEAD", 1), ("WORKER", 1)])),
        "spec.members: must have at least 2 replicas of WORKER; set the replicas of WORKER to 2 or more"
    );
    assert_eq!(
        errors(&job(&[("HEAD", 0), ("WORKER", 2)])),
        "spec.members: nobody hands out work; add a HEAD"
    );
    let mut detached = object(&[("WORKER", 2)]);
    detached["spec"]["detached"] = true.into();
    let detached: ListJob = serde_json::from_value(detached).unwrap();
    assert!(validate(&detached, &Settings::default()).is_ok());
}

#[test]
fn a_role_may_have_to_have_more_replicas_in_some_jobs() {
    let refusal = |workers: i32, limit: i32| {
        let mut job = object(&[("CLIENT", 1), ("WORKER", workers)]);
        job["spec"]["backoffLimit"] = limit.into();
        let job: ListJob = serde_json::from_value(job).unwrap();
        validate(&job, &Settings::default())
            .err()
            .map(|errors| errors.to_string())
    };
    let expected = "spec.members: so many restarts are for more workers; use 3 or more";
    assert_eq!(refusal(2, 6).as_deref(), Some(expected));
    assert_eq!((refusal(3, 6), refusal(2, 5)), (None, None));
}
