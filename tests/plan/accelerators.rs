//! Additions for containers that request a device, and the job's own settings that take precedence.

use std::sync::Arc;

use serde_json::{Value, json};
use training_job::plan::observed::Observed;
use training_job::render::{pod, warnings};
use training_job::{Accelerator, HostVolume, Replica, Settings, plan, validate};
use training_job_testbed::ToyJob;

const GPU: &str = "example.com/gpu";

fn volume(name: &str, host_path: &str, mount_path: &str) -> HostVolume {
    HostVolume {
        name: name.to_owned(),
        host_path: host_path.to_owned(),
        mount_path: mount_path.to_owned(),
    }
}

fn settings() -> Settings {
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let gpu = Accelerator {
        volumes: vec![
            volume("lib", "/opt/gpu/lib", "/lib/gpu"),
            volume("lib", "/opt/gpu/lib", "/lib64/gpu"),
        ],
        variables: vec![variable("GPU_PATH", "/lib/gpu"), variable("ROLE", "gpu")],
    };
    let fpga = Accelerator {
        volumes: vec![
            volume("lib", "/opt/gpu/lib", "/lib/gpu"),
            volume("bits", "/opt/bits", "/bits"),
        ],
        variables: vec![variable("GPU_PATH", "/bits")],
    };
    let mut settings = Settings::default();
    settings.accelerators = Arc::new([(GPU.to_owned(), gpu), ("example.com/fpga".to_owned(), fpga)].into());
    settings
}

/// Returns a job with one worker. Its container has these fields, its pod has these volumes, and a helper container
/// requests a device as well.
fn job(container: Value, volumes: Value) -> ToyJob {
    let mut own = json!({"name": "toy", "image": "a"});
    for (field, value) in container.as_object().unwrap() {
        own[field] = value.clone();
    }
    let helper = json!({"name": "helper", "image": "a", "resources": {"limits": {GPU: "1"}}});
    let job = json!({
        "apiVersion": "example.com/v1", "kind": "ToyJob", "metadata": {"name": "job"},
        "spec": {"replicaSpecs": {"Worker": {"template": {"spec": {
            "containers": [own, helper], "volumes": volumes}}}}},
    });
    serde_json::from_value(job).unwrap()
}

/// Returns the volumes of the worker's pod, and the mounts and variables of its container.
fn made(job: &ToyJob) -> (Value, Value, Value) {
    let valid = validate(job, &settings()).unwrap();
    let replica = Replica {
        role: &valid.topology.roles[0],
        index: 0,
    };
    let spec = serde_json::to_value(pod(&valid, &replica, 0)).unwrap()["spec"].clone();
    let helper = &spec["containers"][1];
    assert_eq!(helper["volumeMounts"], Value::Null, "{helper}");
    let own = &spec["containers"][0];
    (
        spec["volumes"].clone(),
        own["volumeMounts"].clone(),
        own["env"].clone(),
    )
}

fn notices(job: &ToyJob) -> Vec<String> {
    let valid = validate(job, &settings()).unwrap();
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let plan = plan(&valid, &Observed::default(), now);
    let notices = plan.notices.into_iter();
    notices.map(|n| format!("{}: {}", n.reason, n.message)).collect()
}

fn warned(job: &ToyJob) -> Vec<String> {
    let valid = validate(job, &settings()).unwrap();
    warnings(&valid).iter().map(ToString::to_string).collect()
}

#[test]
fn a_container_that_requests_a_device_gets_its_additions_once() {
    let lib = json!({"name": "lib", "hostPath": {"path": "/opt/gpu/lib"}});
    let mounts =
        json!([{"name": "lib", "mountPath": "/lib/gpu"}, {"name": "lib", "mountPath": "/lib64/gpu"}]);
    for resources in [
        json!({"limits": {GPU: "1"}}),
        json!({"requests": {GPU: "2"}}),
        json!({"limits": {GPU: "1"}, "requests": {GPU: "1"}}),
    ] {
        let job = job(json!({"resources": resources}), json!([]));
        let (volumes, mounted, variables) = made(&job);
        assert_eq!((volumes, mounted), (json!([lib]), mounts.clone()), "{resources}");
        assert_eq!(variables[0], json!({"name": "GPU_PATH", "value": "/lib/gpu"}));
        assert_eq!((notices(&job), warned(&job)), (vec![], vec![]));
    }
    // Common parts of the two devices are added once.
    let both = json!({"limits": {GPU: "1", "example.com/fpga": "1"}});
    let (volumes, mounted, variables) = made(&job(json!({"resources": both}), json!([])));
    let names = |list: &Value, key: &str| -> Vec<String> {
        let items = list.as_array().unwrap().iter();
        items.map(|item| item[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&volumes, "name"), ["lib", "bits"]);
    assert_eq!(names(&mounted, "mountPath"), ["/lib/gpu", "/bits", "/lib64/gpu"]);
    assert_eq!(
        names(&variables, "name")
            .iter()
            .filter(|name| *name == "GPU_PATH")
            .count(),
        1
    );
}

#[test]
fn a_container_without_a_device_gets_no_additions() {
    for resources in [
        json!({}),
        json!({"limits": {"cpu": "1"}}),
        json!({"limits": {GPU: "0"}}),
    ] {
        let (volumes, mounts, variables) = made(&job(json!({"resources": resources}), Value::Null));
        assert_eq!((volumes, mounts), (Value::Null, Value::Null), "{resources}");
        assert!(!variables.to_string().contains("GPU_PATH"), "{variables}");
    }
}

#[test]
fn volumes_and_variables_of_the_job_stay_with_a_warning() {
    let resources = json!({"limits": {GPU: "1"}});
    let own = job(
        json!({
            "resources": resources, "env": [{"name": "GPU_PATH", "value": "mine"}],
            "volumeMounts": [{"name": "lib", "mountPath": "/mine"}],
        }),
        json!([{"name": "lib", "emptyDir": {}}]),
    );
    let (volumes, mounts, variables) = made(&own);
    assert_eq!(volumes, json!([{"name": "lib", "emptyDir": {}}]));
    assert_eq!(mounts, json!([{"name": "lib", "mountPath": "/mine"}]));
    assert_eq!(variables[0], json!({"name": "GPU_PATH", "value": "mine"}));
    let stays =
        |what: &str| format!("the job's own {what} is kept, so that of accelerator {GPU} is not added");
    let (lib, path) = (stays("volume lib"), stays("variable GPU_PATH"));
    // Each mount of a volume needs the volume, and the notice names it once.
    assert_eq!(
        notices(&own),
        [format!("AcceleratorNotAdded: Worker: {lib}; Worker: {path}")]
    );
    let at = "spec.replicaSpecs.Worker.template.spec";
    let remedy = "remove it, or use another name or path";
    assert_eq!(
        warned(&own),
        [
            format!("{at}.volumes[0].name: {lib}; {remedy}"),
            format!("{at}.containers[0].env[0].name: {path}; {remedy}"),
        ]
    );

    let mounted = job(
        json!({"resources": resources, "volumeMounts": [{"name": "data", "mountPath": "/lib/gpu"}]}),
        json!([{"name": "data", "emptyDir": {}}]),
    );
    let mount = stays("mount at /lib/gpu");
    assert_eq!(
        notices(&mounted),
        [format!("AcceleratorNotAdded: Worker: {mount}")]
    );
    assert_eq!(
        warned(&mounted),
        [format!(
            "{at}.containers[0].volumeMounts[0].mountPath: {mount}; {remedy}"
        )]
    );
}

#[test]
fn equal_volumes_and_variables_of_the_job_cause_no_warning() {
    let same = job(
        json!({
            "resources": {"limits": {GPU: "1"}}, "env": [{"name": "GPU_PATH", "value": "/lib/gpu"}],
            "volumeMounts": [{"name": "lib", "mountPath": "/lib/gpu"}],
        }),
        json!([{"name": "lib", "hostPath": {"path": "/opt/gpu/lib"}}]),
    );
    let (volumes, mounts, _) = made(&same);
    assert_eq!(volumes.as_array().map(Vec::len), Some(1));
    assert_eq!(mounts.as_array().map(Vec::len), Some(2));
    assert_eq!((notices(&same), warned(&same)), (vec![], vec![]));
}
