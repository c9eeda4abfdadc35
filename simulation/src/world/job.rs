//! Reads and builds the JSON of jobs and their children.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use training_job::api::labels;

use crate::world::json::Json;

pub use crate::world::job_type::{JobType, PLURALS};

/// Returns a job with these roles and numbers of replicas, all with this restart policy.
pub fn new(job_type: JobType, name: &str, roles: &[(&str, i32)], restart: &str) -> Value {
    let replica = |n: &i32| {
        json!({
            "replicas": n, "restartPolicy": restart,
            "template": {"spec": {"containers": [{"name": job_type.container(), "image": "i"}]}},
        })
    };
    let specs: serde_json::Map<String, Value> = roles
        .iter()
        .map(|(role, n)| ((*role).to_owned(), replica(n)))
        .collect();
    let mut spec = json!({});
    spec[job_type.replica_specs_field()] = Value::Object(specs);
    match job_type {
        JobType::Train => spec["jobMode"] = json!("MXTrain"),
        JobType::Tune => spec["jobMode"] = json!("MXTune"),
        JobType::Elastic => {
            let metric = json!({"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}});
            spec["elasticPolicy"] = json!({"minReplicas": 1, "maxReplicas": 4, "metrics": [metric]});
        }
        _ => {}
    }
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": job_type.kind(),
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    })
}

/// Sets the CPU request of each pod of the job to one CPU.
pub fn ask_for_cpus(job: &mut Value, job_type: JobType) {
    let specs = job["spec"][job_type.replica_specs_field()].as_object_mut();
    for spec in specs.into_iter().flat_map(|specs| specs.values_mut()) {
        spec["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    }
}

/// Returns the replica specs of a stored job.
fn specs(job: &impl Json) -> Option<&serde_json::Map<String, Value>> {
    let field = JobType::of(job)?.replica_specs_field();
    job.member("spec")[field].as_object()
}

/// Returns the roles of a job and their numbers of replicas.
pub fn roles(job: &impl Json) -> BTreeMap<String, i64> {
    let replicas = |spec: &Value| spec["replicas"].as_i64().unwrap_or(1);
    let specs = specs(job).into_iter().flatten();
    specs.map(|(role, spec)| (role.clone(), replicas(spec))).collect()
}

/// Returns the names of the pods that the spec of a job requests.
pub fn names(job: &impl Json) -> BTreeSet<String> {
    let all = roles(job).into_keys();
    all.flat_map(|role| names_of_role(job, &role)).collect()
}

/// Returns the names of the pods of a role.
pub fn names_of_role(job: &impl Json, role: &str) -> BTreeSet<String> {
    let name = job.meta("name").as_str().unwrap_or_default();
    let (replicas, slug) = (roles(job).get(role).copied().unwrap_or(0), role.to_lowercase());
    let of_index = |index| match is_bare(role) {
        true => format!("{name}-{slug}"),
        false => format!("{name}-{slug}-{index}"),
    };
    (0..replicas.clamp(0, 4_000)).map(of_index).collect()
}

/// Returns true if the role's only pod has a name without an index.
fn is_bare(role: &str) -> bool {
    role == "Launcher"
}

/// Returns the role, in lower case, and the replica index of the pod of this name. The role is empty if the name is
/// not that of a replica.
fn replica<'n>(job: &impl Json, pod: &'n str) -> (&'n str, &'n str) {
    let name = job.meta("name").as_str().unwrap_or_default();
    let key = pod
        .strip_prefix(name)
        .map_or("", |rest| rest.trim_start_matches('-'));
    match key {
        "launcher" => (key, "0"),
        _ => key.rsplit_once('-').unwrap_or_default(),
    }
}

/// Returns a field of a job's run policy: the value of the field, or else of the annotation that replaces it.
pub fn policy(job: &impl Json, field: &str) -> Value {
    let annotation = &job.meta("annotations")[labels::Keys::DEFAULT.annotation_of(field)];
    match &job.member("spec")["runPolicy"][field] {
        Value::Null => annotation.as_str().map_or(Value::Null, |text| {
            serde_json::from_str(text).unwrap_or_else(|_| text.into())
        }),
        said => said.clone(),
    }
}

/// Returns true if the job is compact: its pods have one service, and share the long parts of their environments.
pub fn is_compact(job: &impl Json) -> bool {
    policy(job, "layout") == "Compact"
}

/// Returns the names of the services that the spec of a job requests.
pub fn service_names(job: &impl Json) -> BTreeSet<String> {
    if JobType::of(job) == Some(JobType::Mpi) {
        BTreeSet::new()
    } else if is_compact(job) {
        let name = job.meta("name").as_str().unwrap_or_default();
        BTreeSet::from([format!("{name}-hosts")])
    } else {
        names(job)
    }
}

/// Returns the name of the job's object of this plural. Pods, services and shared environments are excluded.
pub fn object_name(job: &impl Json, plural: &str) -> Option<String> {
    let name = job.meta("name").as_str().unwrap_or_default();
    match (JobType::of(job)?, plural) {
        (JobType::Mpi, "configmaps") => Some(format!("{name}-config")),
        (JobType::Mpi, "serviceaccounts" | "roles" | "rolebindings") => Some(format!("{name}-launcher")),
        (_, GROUPS) => Some(name.to_owned()),
        (_, AUTOSCALERS) => {
            let metrics = &job.member("spec")["elasticPolicy"]["metrics"];
            metrics.is_array().then(|| name.to_owned())
        }
        _ => None,
    }
}

/// Returns true if a ConfigMap of this name holds a shared environment of a job's pods.
pub fn is_shared_environment(job: &impl Json, map: &str) -> bool {
    let name = job.meta("name").as_str().unwrap_or_default();
    let rest = map.strip_prefix(name).and_then(|rest| rest.strip_prefix("-env-"));
    is_compact(job) && rest.is_some_and(|hash| hash.len() == 16)
}

/// Returns true if the job has this condition with status True.
pub fn is(job: &impl Json, condition: &str) -> bool {
    conditions(job).any(|c| c["type"] == condition && c["status"] == "True")
}

/// Returns the conditions of a job.
pub fn conditions(job: &impl Json) -> impl Iterator<Item = &Value> {
    job.member("status")["conditions"]
        .as_array()
        .into_iter()
        .flatten()
}

/// Returns the final condition of a job, if it has finished.
pub fn end(job: &impl Json) -> Option<&'static str> {
    ["Succeeded", "Failed"].into_iter().find(|end| is(job, end))
}

/// Returns true if the operator found the job invalid in its last reconcile.
pub fn was_found_invalid(job: &impl Json) -> bool {
    conditions(job).any(|c| {
        c["reason"]
            .as_str()
            .is_some_and(|r| r.ends_with("FailedValidation"))
    })
}

/// The validated jobs of a name: the inputs of the validation (kind, spec, annotations), and true if they are
/// invalid.
type Validated = Vec<([Value; 3], bool)>;

/// Returns true if the library's validation rejects a job.
pub fn is_invalid(job: &impl Json) -> bool {
    thread_local! {
        // The same few jobs are validated many times.
        static VALIDATED: RefCell<BTreeMap<String, Validated>> = const { RefCell::new(BTreeMap::new()) };
    }
    let judged = [job.member("kind"), job.member("spec"), job.meta("annotations")];
    let name = job.meta("name").as_str().unwrap_or_default();
    VALIDATED.with_borrow_mut(|names| {
        if names.len() > 1_000 {
            names.clear();
        }
        let known = names.entry(name.to_owned()).or_default();
        let is_same = |known: &[Value; 3]| known.iter().eq(judged);
        if let Some((_, invalid)) = known.iter().find(|(known, _)| is_same(known)) {
            return *invalid;
        }
        if known.len() > 10 {
            known.clear();
        }
        let invalid = JobType::of(job).is_some_and(|of| of.fails_validation(job.whole()));
        known.push((judged.map(Clone::clone), invalid));
        invalid
    })
}

/// Returns true if another controller manages the job.
pub fn is_left_alone(job: &impl Json) -> bool {
    let managed_by = job.member("spec")["runPolicy"]["managedBy"].as_str();
    managed_by.is_some_and(|by| by != "kubeflow.org/training-operator")
}

/// Returns true if the job is suspended.
pub fn is_suspended(job: &impl Json) -> bool {
    job.member("spec")["runPolicy"]["suspend"] == true
}

/// Returns the attempt that the status assigns to the pod of this name.
pub fn attempt(job: &impl Json, child: &str) -> i64 {
    let recovery = &job.member("status")["recovery"];
    let number = |value: &Value| value.as_i64().unwrap_or(0).max(0);
    let (role, index) = replica(job, child);
    let of_role = recovery["roles"].as_object().into_iter().flatten();
    let of_role: i64 = of_role
        .filter(|(name, _)| name.to_lowercase() == role)
        .map(|(_, n)| number(n))
        .sum();
    let of_replica = &recovery["replicas"][format!("{role}-{index}")];
    number(&recovery["job"]) + of_role + number(of_replica)
}

/// Returns true if the status lists the replica of this pod name as completed.
pub fn is_complete(job: &impl Json, child: &str) -> bool {
    let (role, index) = replica(job, child);
    let Ok(index) = index.parse::<i64>() else {
        return false;
    };
    let completed = job.member("status")["recovery"]["completed"].as_object();
    let within = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bounds = (first.parse::<i64>(), last.parse::<i64>());
        matches!(bounds, (Ok(first), Ok(last)) if (first..=last).contains(&index))
    };
    completed
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.to_lowercase() == role)
        .any(|(_, text)| text.as_str().is_some_and(|t| t.split(',').any(within)))
}

/// The plural of autoscalers, which jobs do not need in order to run.
pub const AUTOSCALERS: &str = "horizontalpodautoscalers";

/// The plural of the pod groups that jobs have in a cluster with a gang scheduler.
pub const GROUPS: &str = "podgroups";

/// The plurals of the children that operators create for the jobs of the simulation.
pub const CHILDREN: [&str; 8] = [
    "pods",
    "services",
    "configmaps",
    "serviceaccounts",
    "roles",
    "rolebindings",
    AUTOSCALERS,
    GROUPS,
];

/// Returns a pod or service with this metadata that no operator created.
pub fn foreign(plural: &str, metadata: &Value) -> Value {
    let (kind, spec) = if plural == "pods" {
        ("Pod", json!({"containers": [{"name": "c", "image": "i"}]}))
    } else {
        ("Service", json!({"clusterIP": "None"}))
    };
    json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec})
}

/// Returns the UID of the object's controller.
pub fn controller(object: &impl Json) -> Option<&str> {
    let owners = object.meta("ownerReferences").as_array()?;
    let owner = owners.iter().find(|o| o["controller"] == true)?;
    owner["uid"].as_str()
}

/// Returns true if the object is being deleted.
pub fn is_deleting(object: &impl Json) -> bool {
    !object.meta("deletionTimestamp").is_null()
}

/// Returns true if the object has the label that operators select in their watches.
pub fn is_labelled(object: &impl Json) -> bool {
    let label = &object.meta("labels")[labels::OPERATOR_NAME];
    label.as_str().is_some_and(|l| l.ends_with("job-controller"))
}
