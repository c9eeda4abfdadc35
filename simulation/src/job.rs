//! Jobs as their JSON tells of them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use kube_memory::Object;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use training_job::api::labels;
use training_job::{Settings, TrainingJob, validate};
use training_job_mxnet::MXJob;
use training_job_tensorflow::TFJob;
use training_job_xgboost::XGBoostJob;

/// What is read as JSON, as it is stored or as it is sent.
pub trait Json {
    /// A member, null if there is none.
    fn member(&self, key: &str) -> &Value;
    /// A member of its metadata, null if there is none.
    fn meta(&self, key: &str) -> &Value;
    /// All of it.
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

/// A kind of job, in a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Training with MXNet.
    Train,
    /// Tuning with TVM.
    Tune,
    /// XGBoost.
    Boost,
    /// TensorFlow.
    Flow,
}

impl Kind {
    /// The kind on the wire, its plural, the field of its replica specs, the container.
    pub fn words(self) -> [&'static str; 4] {
        match self {
            Self::Train | Self::Tune => ["MXJob", "mxjobs", "mxReplicaSpecs", "mxnet"],
            Self::Boost => ["XGBoostJob", "xgboostjobs", "xgbReplicaSpecs", "xgboost"],
            Self::Flow => ["TFJob", "tfjobs", "tfReplicaSpecs", "tensorflow"],
        }
    }

    /// The plural.
    pub fn plural(self) -> &'static str {
        self.words()[1]
    }
}

/// The plurals of all kinds.
pub const PLURALS: [&str; 3] = ["mxjobs", "xgboostjobs", "tfjobs"];

/// A job with so many replicas of each role, all of this restart policy.
pub fn of(kind: Kind, name: &str, roles: &[(&str, i32)], restart: &str) -> Value {
    let [kind_name, _, field, container] = kind.words();
    let replica = |n: &i32| {
        json!({
            "replicas": n, "restartPolicy": restart,
            "template": {"spec": {"containers": [{"name": container, "image": "i"}]}},
        })
    };
    let specs: serde_json::Map<String, Value> = roles
        .iter()
        .map(|(role, n)| ((*role).to_owned(), replica(n)))
        .collect();
    let mut spec = json!({});
    spec[field] = Value::Object(specs);
    match kind {
        Kind::Train => spec["jobMode"] = json!("MXTrain"),
        Kind::Tune => spec["jobMode"] = json!("MXTune"),
        Kind::Boost | Kind::Flow => {}
    }
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": kind_name,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    })
}

/// The replica specs of a stored job.
fn specs(job: &impl Json) -> Option<&serde_json::Map<String, Value>> {
    let fields = ["mxReplicaSpecs", "xgbReplicaSpecs", "tfReplicaSpecs"];
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

/// The names of the children that a job is to have.
pub fn names(job: &impl Json) -> BTreeSet<String> {
    let name = job.meta("name").as_str().unwrap_or_default();
    let of_role = |(role, n): (String, i64)| {
        let role = role.to_lowercase();
        (0..n.clamp(0, 1_000)).map(move |index| format!("{name}-{role}-{index}"))
    };
    roles(job).into_iter().flat_map(of_role).collect()
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

/// How a job ended, if it did.
pub fn end(job: &impl Json) -> Option<&'static str> {
    ["Succeeded", "Failed"].into_iter().find(|end| is(job, end))
}

/// Whether a job is taken for invalid, or was and has not been looked at since.
pub fn is_refused(job: &impl Json) -> bool {
    conditions(job).any(|c| {
        c["reason"]
            .as_str()
            .is_some_and(|r| r.ends_with("FailedValidation"))
    })
}

/// What is known of the jobs of a name: their kinds, their specs, and whether they cannot be run.
type Known = Vec<(Value, Value, bool)>;

/// Whether a job cannot be run.
pub fn is_invalid(job: &impl Json) -> bool {
    thread_local! {
        // The same few jobs are asked about again and again.
        static KNOWN: RefCell<BTreeMap<String, Known>> = const { RefCell::new(BTreeMap::new()) };
    }
    let (kind, spec) = (job.member("kind"), job.member("spec"));
    let name = job.meta("name").as_str().unwrap_or_default();
    KNOWN.with_borrow_mut(|names| {
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
        let invalid = is_refused_by_rules(job.whole());
        known.push((kind.clone(), spec.clone(), invalid));
        invalid
    })
}

fn is_refused_by_rules(job: &Value) -> bool {
    fn check<J: TrainingJob + DeserializeOwned>(job: &Value) -> bool {
        let read = J::deserialize(job);
        read.is_ok_and(|job| validate(&job, &Settings::default()).is_err())
    }
    match job.member("kind").as_str() {
        Some("MXJob") => check::<MXJob>(job),
        Some("XGBoostJob") => check::<XGBoostJob>(job),
        _ => check::<TFJob>(job),
    }
}

/// Whether a job is to have no pods for now.
pub fn is_suspended(job: &impl Json) -> bool {
    job.member("spec")["runPolicy"]["suspend"] == true
}

/// The attempt that the pod of this name must be of, by the job's status.
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

/// Whether the status remembers that the replica of this name has ended well.
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

/// Whether a pod has ended.
pub fn has_ended(pod: &impl Json) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether an object has the label by which operators watch.
pub fn is_labelled(object: &impl Json) -> bool {
    let label = &object.meta("labels")[labels::OPERATOR_NAME];
    label.as_str().is_some_and(|l| l.ends_with("job-controller"))
}
