//! Jobs as the API server holds them, readable or not.

use std::any::TypeId;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube_schema::Schema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::api::JobStatus;
use crate::controller::merge_patch::difference;
use crate::job::{Settings, Topology, TrainingJob};
use crate::plan::observed::Observed;
use crate::plan::{self, Plan, PlannedPod, StatusChange};
use crate::validate::{ValidJob, schema, validate, validate_again};

/// A job, or an object of its kind that does not decode: one such object must not hide the others in a list.
#[derive(Clone, Debug)]
pub(crate) enum StoredJob<J> {
    /// A job.
    Job {
        /// The job.
        job: Box<J>,
        /// Its JSON, by which it is cached: decoded it takes ten times as much memory.
        text: Arc<str>,
        /// Set once it is known to be valid.
        valid: Arc<OnceLock<()>>,
    },
    /// An object that is not a job of this kind, whatever it says.
    Unreadable {
        /// Its metadata.
        meta: Box<ObjectMeta>,
        /// Its status, as far as it decodes.
        status: Box<JobStatus>,
        /// Why it is not a job.
        error: String,
    },
}

impl<'de, J: TrainingJob> Deserialize<'de> for StoredJob<J> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        // Derived code would read a list of fields without their names as well.
        let Some(object) = value.as_object_mut() else {
            return Err(D::Error::custom("it is no object"));
        };
        if object.get("spec").is_none_or(Value::is_null) {
            // What it lacks is then told as a mistake in its fields.
            object.insert("spec".to_owned(), Value::Object(Map::new()));
        }
        match J::deserialize(&value) {
            Ok(job) => {
                if let Some(Value::Object(meta)) = value.get_mut("metadata") {
                    meta.remove(MANAGED_FIELDS);
                }
                Ok(Self::of(job, value.to_string()))
            }
            Err(error) => {
                let part = |name| value.get(name).cloned().unwrap_or_default();
                Ok(Self::Unreadable {
                    meta: serde_json::from_value(part("metadata")).map_err(D::Error::custom)?,
                    status: serde_json::from_value(part("status")).unwrap_or_default(),
                    error: mistakes::<J>(&value).unwrap_or_else(|| error.to_string()),
                })
            }
        }
    }
}

impl<J: TrainingJob> StoredJob<J> {
    /// Decodes a job from its text.
    ///
    /// # Errors
    /// It is not JSON, or has no metadata that could be decoded.
    pub(crate) fn read(text: &str) -> serde_json::Result<Self> {
        // Nearly all are jobs, and are decoded without a tree of all their fields first.
        match serde_json::from_str(text) {
            Ok(job) if text.trim_start().starts_with('{') => Ok(Self::of(job, without_managed_fields(text)?)),
            _ => serde_json::from_str(text),
        }
    }

    /// Decodes a job again that was decoded from this text before.
    ///
    /// # Errors
    /// None, unless the kind decodes the same text once so and once otherwise.
    pub(crate) fn decode_again(text: &Arc<str>, valid: &Arc<OnceLock<()>>) -> serde_json::Result<Self> {
        Ok(Self::Job {
            job: Box::new(serde_json::from_str(text)?),
            text: text.clone(),
            valid: valid.clone(),
        })
    }

    /// A job of which it is not known whether it is valid.
    fn of(job: J, text: String) -> Self {
        Self::Job {
            job: Box::new(job),
            text: text.into(),
            valid: Arc::default(),
        }
    }

    /// Its status.
    pub(crate) fn status(&self) -> JobStatus {
        match self {
            Self::Job { job, .. } => job.status().cloned().unwrap_or_default(),
            Self::Unreadable { status, .. } => (**status).clone(),
        }
    }

    /// Whether its status says anything yet.
    pub(crate) fn has_begun(&self) -> bool {
        match self {
            Self::Job { job, .. } => job.status().is_some_and(|status| !status.conditions.is_empty()),
            Self::Unreadable { status, .. } => !status.conditions.is_empty(),
        }
    }

    /// Takes over from an earlier version that it is valid, if its author has not changed it since: `author_wrote` is what
    /// that version's [`author_wrote`](Self::author_wrote) was. A version from before an etcd was restored is not an
    /// earlier one.
    pub(crate) fn inherit_validity(&self, known: &OnceLock<()>, author_wrote: u64) {
        if let Self::Job { valid, .. } = self
            && known.get().is_some()
            && self.meta().generation.is_some()
            && self.author_wrote() == author_wrote
        {
            valid.get_or_init(|| ());
        }
    }

    /// A number that differs if its author has changed it, or if it is another job.
    pub(crate) fn author_wrote(&self) -> u64 {
        let meta = self.meta();
        let mut hasher = DefaultHasher::new();
        (&meta.uid, meta.generation, &meta.labels, &meta.annotations).hash(&mut hasher);
        hasher.finish()
    }

    /// The merge patch that makes `next` of the stored status `old`.
    ///
    /// # Errors
    /// A status is no JSON.
    pub(crate) fn status_change(
        &self,
        old: &JobStatus,
        next: &JobStatus,
        topology: Option<&Topology<'_>>,
    ) -> serde_json::Result<Value> {
        let shared = serde_json::to_value(old)?;
        let Self::Job { job, text, .. } = self else {
            return Ok(difference(&shared, serde_json::to_value(next)?));
        };
        let next = job.encode_status(next, topology)?;
        let mut stored = match job.status() {
            Some(_) => job.encode_status(old, topology)?,
            None => shared.clone(),
        };
        // Of what only the kind's own status has, the server has what is stored, by whomever.
        if let (Some(fields), Some(next)) = (stored.as_object_mut(), next.as_object()) {
            fields.retain(|field, _| shared.get(field).is_some());
            let mut as_stored =
                StoredStatus::deserialize(&mut serde_json::Deserializer::from_str(text))?.status;
            for field in next.keys().filter(|field| shared.get(field).is_none()) {
                let value = as_stored.as_mut().and_then(|status| status.remove(field));
                fields.extend(value.map(|value| (field.clone(), value)));
            }
        }
        Ok(difference(&stored, next))
    }

    /// Validates it. What takes the replicas' environments, and what only the kind knows, is asked once for each version
    /// of the spec.
    pub(crate) fn validate(&self, settings: &Settings) -> Validated<'_, J> {
        if self.meta().deletion_timestamp.is_some() {
            let status = self.status();
            let change = self.status_change(&status, &status, None);
            return Validated::LeftAlone {
                news: change.is_ok_and(|change| change.as_object().is_some_and(|change| !change.is_empty())),
            };
        }
        let name = self.meta().name.as_deref().unwrap_or_default();
        let (job, valid) = match self {
            Self::Job { job, valid, .. } => (job, valid),
            Self::Unreadable { error, .. } => {
                return Validated::Invalid {
                    name,
                    ttl: None,
                    problem: error.clone(),
                };
            }
        };
        // The settings stay as they are as long as the process lives.
        let checked = match valid.get() {
            None => validate(&**job, settings),
            Some(()) => validate_again(&**job, settings),
        };
        match checked {
            Ok(checked) => {
                valid.get_or_init(|| ());
                Validated::Valid(Box::new(checked))
            }
            Err(_) if job.run_policy().is_for_another_controller() => Validated::LeftAlone { news: false },
            Err(errors) => Validated::Invalid {
                name,
                ttl: job.run_policy().ttl_seconds_after_finished.map(i64::from),
                problem: errors.to_string(),
            },
        }
    }
}

/// An object's status, whatever is in it.
#[derive(Deserialize)]
struct StoredStatus {
    #[serde(default)]
    status: Option<Map<String, Value>>,
}

/// Who wrote which field: a third of a job's text, and never read.
const MANAGED_FIELDS: &str = "managedFields";

/// The text of an object as short as it can be said.
fn without_managed_fields(object: &str) -> serde_json::Result<String> {
    type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;
    let mut members: Members<'_> = serde_json::from_str(object)?;
    let Some(meta) = members.get("metadata") else {
        return Ok(object.to_owned());
    };
    let mut meta: Members<'_> = serde_json::from_str(meta.get())?;
    meta.remove(MANAGED_FIELDS);
    let meta = serde_json::value::to_raw_value(&meta)?;
    members.insert("metadata".into(), &meta);
    serde_json::to_string(&members)
}

/// A job as validation found it.
pub(crate) enum Validated<'a, J> {
    /// It is another controller's; or it is being deleted, and the garbage collector deletes its children. `news` is whether
    /// its kind has another status for it then.
    LeftAlone { news: bool },
    /// It can be run.
    Valid(Box<ValidJob<'a, J>>),
    /// It cannot be run as it is.
    Invalid {
        name: &'a str,
        /// The seconds from its end to its deletion, if that much could be read.
        ttl: Option<i64>,
        problem: String,
    },
}

impl<J: TrainingJob> Validated<'_, J> {
    /// Who is in the job, if it can be run.
    pub(crate) fn topology(&self) -> Option<&Topology<'_>> {
        match self {
            Self::Valid(job) => Some(&job.topology),
            Self::LeftAlone { .. } | Self::Invalid { .. } => None,
        }
    }

    /// The pod that a plan for it creates. Only a job that can be run has any.
    pub(crate) fn render(&self, pod: &PlannedPod) -> Option<Pod> {
        match self {
            Self::Valid(job) => pod.render(job),
            Self::LeftAlone { .. } | Self::Invalid { .. } => None,
        }
    }

    /// Plans for it. `status` is the job's stored status.
    pub(crate) fn plan(&self, status: &JobStatus, observed: &Observed, now: Timestamp) -> Plan {
        match self {
            Self::LeftAlone { news } => Plan {
                status: news.then(|| StatusChange {
                    status: status.clone(),
                    urgent: true,
                }),
                ..Plan::default()
            },
            Self::Valid(job) => plan::plan(job, observed, now),
            Self::Invalid { name, ttl, problem } => {
                plan::invalid(&J::kind(&()), name, status, *ttl, problem, now)
            }
        }
    }
}

/// What is wrong with an object that does not decode, with the names of its fields.
fn mistakes<J: TrainingJob>(object: &Value) -> Option<String> {
    // Made for the first such object: it takes a while.
    static SHAPES: Mutex<BTreeMap<TypeId, Arc<Schema>>> = Mutex::new(BTreeMap::new());
    let mut shapes = SHAPES.lock().unwrap_or_else(PoisonError::into_inner);
    let shape = match shapes.get(&TypeId::of::<J>()) {
        Some(shape) => shape.clone(),
        None => {
            let stored = J::definition().spec.versions.into_iter().find(|v| v.storage)?;
            let shape = Arc::new(schema::read(&stored.schema?.open_api_v3_schema?));
            shapes.insert(TypeId::of::<J>(), shape.clone());
            shape
        }
    };
    drop(shapes);
    let errors = schema::check(&shape, &json!({ "spec": object.get("spec") }));
    (!errors.is_empty()).then(|| errors.to_string())
}

impl<J: TrainingJob> Resource for StoredJob<J> {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        J::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        J::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        J::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        J::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Job { job, .. } => job.meta(),
            Self::Unreadable { meta, .. } => meta,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Job { job, .. } => job.meta_mut(),
            Self::Unreadable { meta, .. } => meta,
        }
    }
}
