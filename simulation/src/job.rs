//! Reads and makes the JSON of jobs and their children.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use kube_memory::Object;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use training_job::api::labels;
use training_job::{Settings, TrainingJob, validate};
use training_job_mxnet::MXJob;
use training_job_tensorflow::TFJob;
use training_job_testing::ToyJob;
use training_job_xgboost::XGBoostJob;

/// An object as JSON, stored in the cluster or sent to it.
pub trait Json {
    /// A member, null if there is none.
    fn member(&self, key: &str) -> &Value;
    /// A member of its metadata, null if there is none.
    fn meta(&self, key: &str) -> &Value;
    /// The whole object.
    fn whole(&self) -> &Value;
}

impl Json for Value {
    fn member(&self, key: &str) -> &Value {
        &self[key]
    }

    fn meta(&self, key: &str) -> &Value {
        &self["metadata"][key]
    }

    fn whole(&self) -> &Value {
        self
    }
}

impl Json for Object {
    fn member(&self, key: &str) -> &Value {
        &self[key]
    }

    fn meta(&self, key: &str) -> &Value {
        Self::meta(self, key).unwrap_or(&Value::Null)
    }

    fn whole(&self) -> &Value {
        self.value()
    }
}

impl<T: Json> Json for &T {
    fn member(&self, key: &str) -> &Value {
        (**self).member(key)
    }

    fn meta(&self, key: &str) -> &Value {
        (**self).meta(key)
    }

    fn whole(&self) -> &Value {
        (**self).whole()
    }
}

/// A type of job: its kind, and the mode of an MXJob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobType {
    /// An MXJob that trains.
    Train,
    /// An MXJob that tunes with TVM.
    Tune,
    /// An XGBoostJob.
    XgBoost,
    /// A TFJob.
    TensorFlow,
    /// A job of no framework, for tests of the controller.
    Toy,
}

impl JobType {
    /// Its kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Train | Self::Tune => "MXJob",
            Self::XgBoost => "XGBoostJob",
            Self::TensorFlow => "TFJob",
            Self::Toy => "ToyJob",
        }
    }

    /// The plural of its kind.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Train | Self::Tune => "mxjobs",
            Self::XgBoost => "xgboostjobs",
            Self::TensorFlow => "tfjobs",
            Self::Toy => "toyjobs",
        }
    }

    /// The field of its replica specs.
    pub fn replica_specs_field(self) -> &'static str {
        match self {
            Self::Train | Self::Tune => "mxReplicaSpecs",
            Self::XgBoost => "xgbReplicaSpecs",
            Self::TensorFlow => "tfReplicaSpecs",
            Self::Toy => "replicaSpecs",
        }
    }

    /// The name of its container.
    pub fn container(self) -> &'static str {
        match self {
            Self::Train | Self::Tune => "mxnet",
            Self::XgBoost => "xgboost",
            Self::TensorFlow => "tensorflow",
            Self::Toy => "toy",
        }
    }
}

/// The plurals of all kinds.
pub const PLURALS: [&str; 4] = ["mxjobs", "xgboostjobs", "tfjobs", "toyjobs"];

/// A job with so many replicas of each role, all of this restart policy.
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
        JobType::XgBoost | JobType::TensorFlow | JobType::Toy => {}
    }
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": job_type.kind(),
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    })
}

/// The replica specs of a stored job.
fn specs(job: &impl Json) -> Option<&serde_json::Map<String, Value>> {
    let fields = [
        "mxReplicaSpecs",
        "xgbReplicaSpecs",
        "tfReplicaSpecs",
        "replicaSpecs",
    ];
    fields
        .iter()
        .find_map(|field| job.member("spec")[field].as_object())
}

/// The roles of a job and their replicas.
pub fn roles(job: &impl Json) -> BTreeMap<String, i64> {
    let replicas = |spec: &Value| spec["replicas"].as_i64().unwrap_or(1);
    let specs = specs(job).into_iter().flatten();
    specs.map(|(role, spec)| (role.clone(), replicas(spec))).collect()
}

/// The names of the pods that the spec of a job asks for.
pub fn names(job: &impl Json) -> BTreeSet<String> {
    let name = job.meta("name").as_str().unwrap_or_default();
    let of_role = |(role, n): (String, i64)| {
        let role = role.to_lowercase();
        (0..n.clamp(0, 4_000)).map(move |index| format!("{name}-{role}-{index}"))
    };
    roles(job).into_iter().flat_map(of_role).collect()
}

/// Whether the pods of a job have one service, and share what is long in their environments.
pub fn is_compact(job: &impl Json) -> bool {
    job.member("spec")["runPolicy"]["layout"] == "Compact"
}

/// The names of the services that the spec of a job asks for.
pub fn service_names(job: &impl Json) -> BTreeSet<String> {
    if is_compact(job) {
        let name = job.meta("name").as_str().unwrap_or_default();
        BTreeSet::from([format!("{name}-hosts")])
    } else {
        names(job)
    }
}

/// Whether a ConfigMap of this name is one in which the pods of a job share what is long in their environments.
pub fn is_shared_environment(job: &impl Json, map: &str) -> bool {
    let name = job.meta("name").as_str().unwrap_or_default();
    let rest = map.strip_prefix(name).and_then(|rest| rest.strip_prefix("-env-"));
    is_compact(job) && rest.is_some_and(|hash| hash.len() == 16)
}

/// The ConfigMaps from which the containers of a pod take their environment.
pub fn shared_environments(pod: &impl Json) -> impl Iterator<Item = &str> {
    let containers = pod.member("spec")["containers"].as_array().into_iter().flatten();
    let sources = containers.flat_map(|container| container["envFrom"].as_array().into_iter().flatten());
    sources.filter_map(|source| source["configMapRef"]["name"].as_str())
}

/// Whether a condition of a job is True.
pub fn is(job: &impl Json, condition: &str) -> bool {
    conditions(job).any(|c| c["type"] == condition && c["status"] == "True")
}

/// The conditions of a job.
pub fn conditions(job: &impl Json) -> impl Iterator<Item = &Value> {
    job.member("status")["conditions"]
        .as_array()
        .into_iter()
        .flatten()
}

/// How a job finished, if it did.
pub fn end(job: &impl Json) -> Option<&'static str> {
    ["Succeeded", "Failed"].into_iter().find(|end| is(job, end))
}

/// Whether the operator found a job invalid when it last reconciled it.
pub fn was_found_invalid(job: &impl Json) -> bool {
    conditions(job).any(|c| {
        c["reason"]
            .as_str()
            .is_some_and(|r| r.ends_with("FailedValidation"))
    })
}

/// The jobs of a name that were validated: their kinds, their specs, and whether they are invalid.
type Validated = Vec<(Value, Value, bool)>;

/// Whether the library's rules refuse a job.
pub fn is_invalid(job: &impl Json) -> bool {
    thread_local! {
        // The same few jobs are asked about again and again.
        static VALIDATED: RefCell<BTreeMap<String, Validated>> = const { RefCell::new(BTreeMap::new()) };
    }
    let (kind, spec) = (job.member("kind"), job.member("spec"));
    let name = job.meta("name").as_str().unwrap_or_default();
    VALIDATED.with_borrow_mut(|names| {
        if names.len() > 1_000 {
            names.clear();
        }
        let known = names.entry(name.to_owned()).or_default();
        if let Some((.., invalid)) = known.iter().find(|(k, s, _)| k == kind && s == spec) {
            return *invalid;
        }
        if known.len() > 10 {
            known.clear();
        }
        let invalid = fails_validation(job.whole());
        known.push((kind.clone(), spec.clone(), invalid));
        invalid
    })
}

fn fails_validation(job: &Value) -> bool {
    fn check<J: TrainingJob + DeserializeOwned>(job: &Value) -> bool {
        let read = J::deserialize(job);
        read.is_ok_and(|job| validate(&job, &Settings::default()).is_err())
    }
    match job.member("kind").as_str() {
        Some("MXJob") => check::<MXJob>(job),
        Some("XGBoostJob") => check::<XGBoostJob>(job),
        Some("ToyJob") => check::<ToyJob>(job),
        _ => check::<TFJob>(job),
    }
}

/// Whether a job is to have no pods for now.
pub fn is_suspended(job: &impl Json) -> bool {
    job.member("spec")["runPolicy"]["suspend"] == true
}

/// The attempt that the status gives to the pod of this name.
pub fn attempt(job: &impl Json, child: &str) -> i64 {
    let recovery = &job.member("status")["recovery"];
    let number = |value: &Value| value.as_i64().unwrap_or(0).max(0);
    let name = job.meta("name").as_str().unwrap_or_default();
    let key = child
        .strip_prefix(name)
        .map_or("", |rest| rest.trim_start_matches('-'));
    let role = key.rsplit_once('-').map_or("", |(role, _)| role);
    let of_role = recovery["roles"].as_object().into_iter().flatten();
    let of_role: i64 = of_role
        .filter(|(name, _)| name.to_lowercase() == role)
        .map(|(_, n)| number(n))
        .sum();
    number(&recovery["job"]) + of_role + number(&recovery["replicas"][key])
}

/// Whether the status says that the replica of this name has succeeded.
pub fn is_complete(job: &impl Json, child: &str) -> bool {
    let name = job.meta("name").as_str().unwrap_or_default();
    let key = child
        .strip_prefix(name)
        .map_or("", |rest| rest.trim_start_matches('-'));
    let Some((role, index)) = key.rsplit_once('-') else {
        return false;
    };
    let index: i64 = index.parse().unwrap_or(-1);
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

/// The plurals of the children that operators make for the jobs here.
pub const CHILDREN: [&str; 3] = ["pods", "services", "configmaps"];

/// A pod or service with this metadata, which no operator made.
pub fn foreign(plural: &str, metadata: &Value) -> Value {
    let (kind, spec) = if plural == "pods" {
        ("Pod", json!({"containers": [{"name": "c", "image": "i"}]}))
    } else {
        ("Service", json!({"clusterIP": "None"}))
    };
    json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec})
}

/// The UID of the object's controller.
pub fn controller(object: &impl Json) -> Option<&str> {
    let owners = object.meta("ownerReferences").as_array()?;
    let owner = owners.iter().find(|o| o["controller"] == true)?;
    owner["uid"].as_str()
}

/// Whether an object is being deleted.
pub fn is_deleting(object: &impl Json) -> bool {
    !object.meta("deletionTimestamp").is_null()
}

/// The phase of a pod.
pub fn phase(pod: &impl Json) -> &str {
    pod.member("status")["phase"].as_str().unwrap_or("Pending")
}

/// Whether a pod has succeeded or failed.
pub fn has_ended(pod: &impl Json) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether an object has the label by which operators watch.
pub fn is_labelled(object: &impl Json) -> bool {
    let label = &object.meta("labels")[labels::OPERATOR_NAME];
    label.as_str().is_some_and(|l| l.ends_with("job-controller"))
}
