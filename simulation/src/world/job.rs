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
    let mut spec = json!({});
    if job_type != JobType::Steps {
        let specs = roles.iter().map(|(role, n)| ((*role).to_owned(), replica(n)));
        spec[job_type.replica_specs_field()] = specs.collect();
    }
    match job_type {
        JobType::Steps => {
            spec["launcher"] = replica(&1)["template"].take();
            for (role, n) in roles {
                let mut of_role = replica(n);
                of_role["name"] = json!(role);
                match list_of(role) {
                    None => spec[role.to_lowercase()] = replica(n),
                    Some(("steps", number)) => push(&mut spec["steps"], json!({"name": role, number: n})),
                    Some((list, number)) => {
                        of_role[number] = of_role["replicas"].take();
                        push(&mut spec[list], of_role);
                    }
                }
            }
        }
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
        "apiVersion": format!("{}/v1", job_type.group()), "kind": job_type.kind(),
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    })
}

fn push(list: &mut Value, item: Value) {
    match list.as_array_mut() {
        Some(list) => list.push(item),
        None => *list = json!([item]),
    }
}

/// Returns the list of this role of a StepJob, and the field of its number; `None` for a role in a field.
pub fn list_of(role: &str) -> Option<(&'static str, &'static str)> {
    match role {
        "Database" | "Controller" => None,
        step if step.starts_with("step-") => Some(("steps", "tasks")),
        _ => Some(("partitions", "nodes")),
    }
}

/// Sets the CPU request of each pod of the job to one CPU.
pub fn ask_for_cpus(job: &mut Value, job_type: JobType) {
    let ask = |template: &mut Value| {
        template["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    };
    let spec = &mut job["spec"];
    let specs = match job_type {
        JobType::Steps => {
            ask(&mut spec["launcher"]);
            let partitions = spec["partitions"].as_array_mut();
            partitions
                .into_iter()
                .flatten()
                .for_each(|of| ask(&mut of["template"]));
            let fields = spec.as_object_mut().into_iter().flatten();
            let in_fields = fields.filter(|(name, _)| ["database", "controller"].contains(&&***name));
            in_fields.map(|(_, role)| role).collect()
        }
        _ => {
            let specs = spec[job_type.replica_specs_field()].as_object_mut();
            specs.map_or_else(Vec::new, |specs| specs.values_mut().collect())
        }
    };
    specs.into_iter().for_each(|of| ask(&mut of["template"]));
}

/// Returns the pod templates of a stored job.
pub fn templates(job: &impl Json) -> Vec<&Value> {
    let spec = job.member("spec");
    let of_roles: Vec<&Value> = match JobType::of(job) {
        None => Vec::new(),
        Some(JobType::Steps) => {
            let fields = ["database", "controller"].map(|field| &spec[field]);
            let partitions = spec["partitions"].as_array().into_iter().flatten();
            fields.into_iter().chain(partitions).collect()
        }
        Some(job_type) => {
            let specs = spec[job_type.replica_specs_field()].as_object();
            specs.map_or_else(Vec::new, |specs| specs.values().collect())
        }
    };
    let of_roles = of_roles.into_iter().map(|spec| &spec["template"]);
    of_roles
        .chain([&spec["launcher"]])
        .filter(|template| template.is_object())
        .collect()
}

/// Returns the roles of a job and their numbers of replicas.
pub fn roles(job: &impl Json) -> BTreeMap<String, i64> {
    let number = |spec: &Value, field: &str| spec[field].as_i64().unwrap_or(1);
    let spec = job.member("spec");
    match JobType::of(job) {
        None => BTreeMap::new(),
        Some(JobType::Steps) => {
            let fields = ["Database", "Controller"].map(|role| (role, &spec[role.to_lowercase()]));
            let fields = fields.into_iter().filter(|(_, of)| of.is_object());
            let fields = fields.map(|(role, of)| (role.to_owned(), number(of, "replicas")));
            let lists = [("partitions", "nodes"), ("steps", "tasks")].into_iter();
            let items = lists.flat_map(|(list, field)| {
                let items = spec[list].as_array().into_iter().flatten();
                items.map(move |of| {
                    (
                        of["name"].as_str().unwrap_or_default().to_owned(),
                        number(of, field),
                    )
                })
            });
            fields.chain(items).collect()
        }
        Some(job_type) => {
            let specs = spec[job_type.replica_specs_field()]
                .as_object()
                .into_iter()
                .flatten();
            specs
                .map(|(role, of)| (role.clone(), number(of, "replicas")))
                .collect()
        }
    }
}

/// Returns the pods of the job for which this one waits before it is created, each with true if it must have succeeded and
/// false if it must have started.
pub fn waits_for(job: &impl Json, pod: &str) -> Vec<(String, bool)> {
    let all = |role: &str, must_succeed: bool| {
        let names = names_of_role(job, role).into_iter();
        names.map(|name| (name, must_succeed)).collect::<Vec<_>>()
    };
    match JobType::of(job) {
        Some(JobType::Mpi) if names_of_role(job, "Launcher").contains(pod) => all("Worker", false),
        Some(JobType::Steps) => {
            let roles = roles(job);
            let Some(role) = roles.keys().find(|role| names_of_role(job, role).contains(pod)) else {
                return Vec::new();
            };
            match (&**role, list_of(role)) {
                ("Database", _) => Vec::new(),
                (_, None) => all("Database", false),
                (_, Some(("steps", _))) => {
                    // Their names are in the order of the alphabet.
                    let earlier = roles
                        .keys()
                        .filter(|other| other.starts_with("step-") && *other < role);
                    let steps = earlier.flat_map(|step| all(step, true));
                    all("Controller", false).into_iter().chain(steps).collect()
                }
                _ => all("Controller", false),
            }
        }
        _ => Vec::new(),
    }
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
    } else if JobType::of(job) == Some(JobType::Steps) && !is_compact(job) {
        let with_service = roles(job).into_keys().filter(|role| !role.starts_with("step-"));
        with_service.flat_map(|role| names_of_role(job, &role)).collect()
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
        (JobType::Steps, "secrets") => Some(format!("{name}-key")),
        (JobType::Steps, "persistentvolumeclaims") => {
            let has_database = roles(job).get("Database").is_some_and(|n| *n > 0);
            has_database.then(|| format!("{name}-state"))
        }
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
pub const CHILDREN: [&str; 10] = [
    "pods",
    "services",
    "configmaps",
    "serviceaccounts",
    "roles",
    "rolebindings",
    AUTOSCALERS,
    GROUPS,
    "secrets",
    "persistentvolumeclaims",
];

/// The children of jobs other than StepJobs. The draws from them are part of the seed version.
pub const CHILDREN_WITHOUT_STEPS: &[&str] = CHILDREN.split_at(8).0;

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
