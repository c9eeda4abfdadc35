//! Jobs as stored in the API server, decodable or not.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::merge_patch::difference;
use training_job::api::{JobStatus, STATUS_FIELDS, Salvaged};
use training_job::job::{AnyJob, FieldErrors, Framework, Kind, Topology};
use training_job::validate::{annotations, undecodable};

/// The field with the managers of all fields: a third of a job's text, and never read.
const MANAGED_FIELDS: &str = "managedFields";

/// The members of an object, each as text.
type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// A job, or an object of its kind that cannot be decoded: one such object must not hide the others in a list.
#[derive(Debug)]
pub(crate) enum StoredJob {
    Job {
        kind: Arc<Kind>,
        job: Box<dyn AnyJob>,
        /// The JSON of the job. The cache keeps this form, because the decoded job takes ten times as much memory.
        text: Arc<str>,
        /// Set when the job is known to be valid.
        valid: Arc<OnceLock<()>>,
        /// The status fields with invalid values; the job was decoded without them.
        unsound: Vec<&'static str>,
    },
    /// An object that cannot be decoded as a job of this kind.
    Unreadable {
        kind: Arc<Kind>,
        meta: Box<ObjectMeta>,
        /// Its status, as far as it can be decoded.
        status: Box<JobStatus>,
        stored: Box<Value>,
        /// The status fields with invalid values.
        unsound: Vec<&'static str>,
        /// The reason why it is not a job.
        error: String,
    },
}

/// An object from a watch or a response, which is decoded with its kind.
#[derive(Clone, Debug)]
pub(crate) struct RawJob {
    pub(crate) metadata: ObjectMeta,
    /// Its JSON without its managed fields.
    text: String,
    /// True if its status is unset or an object. Derived code also decodes an array as a status.
    has_status_object: bool,
}

impl<'de> Deserialize<'de> for RawJob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = Members::deserialize(deserializer)?;
        Self::of(members).map_err(D::Error::custom)
    }
}

impl RawJob {
    fn of(members: Members<'_>) -> serde_json::Result<Self> {
        let stored = members.get("metadata").map_or("null", |metadata| metadata.get());
        let mut metadata = Cow::Borrowed(stored);
        if stored.contains(MANAGED_FIELDS) {
            let mut fields: Members<'_> = serde_json::from_str(stored)?;
            fields.remove(MANAGED_FIELDS);
            metadata = serde_json::to_string(&fields)?.into();
        }
        let has_status_object = is_object(members.get("status").copied());
        let trimmed: &RawValue = serde_json::from_str(&metadata)?;
        let mut members: Members<'_> = members;
        members.insert("metadata".into(), trimmed);
        Ok(Self {
            metadata: serde_json::from_str(&metadata)?,
            text: serde_json::to_string(&members)?,
            has_status_object,
        })
    }
}

/// Returns true if a status is unset or an object.
fn is_object(status: Option<&RawValue>) -> bool {
    status.is_none_or(|status| status.get().starts_with('{') || status.get() == "null")
}

impl Resource for RawJob {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.kind).into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.group).into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.version).into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.plural).into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Decodes a job whose status another writer may have damaged. Returns the job and the status fields that were
/// dropped or repaired. The value is unchanged afterwards.
fn decode_value(kind: &Kind, value: &mut Value) -> serde_json::Result<(Box<dyn AnyJob>, Vec<&'static str>)> {
    let strict = decode_strictly(kind, value);
    let stored = match (&strict, value.get_mut("status")) {
        (Ok(_), _) | (_, None) => return strict.map(|job| (job, Vec::new())),
        (Err(_), Some(status)) => status.take(),
    };
    let Salvaged { status, mut unsound } = JobStatus::salvage(&stored);
    // The kind's own status fields are kept if they can be decoded.
    let shared = serde_json::to_value(status)?;
    let tries = [with_other_fields(&stored, &shared), shared, Value::Null];
    let mut salvaged = tries.into_iter().filter_map(|status| {
        value["status"] = status;
        decode_strictly(kind, value).ok()
    });
    let job = salvaged.next();
    drop(salvaged);
    value["status"] = stored;
    if unsound.is_empty() {
        unsound.push("status");
    }
    match job {
        Some(job) => Ok((job, unsound)),
        None => strict.map(|job| (job, Vec::new())),
    }
}

/// Decodes a job whose status is an object with valid values.
fn decode_strictly(kind: &Kind, value: &Value) -> serde_json::Result<Box<dyn AnyJob>> {
    let status = &value["status"];
    if !status.is_null() && !status.is_object() {
        return Err(serde_json::Error::custom("status: must be an object"));
    }
    let job = kind.decode(value)?;
    match job.status().is_none_or(JobStatus::is_sound) {
        true => Ok(job),
        false => Err(serde_json::Error::custom(
            "status: must not contain invalid values",
        )),
    }
}

/// Returns an encoded status, extended with the stored fields that are specific to the kind.
fn with_other_fields(stored: &Value, encoded: &Value) -> Value {
    let mut status = encoded.clone();
    let others = stored.as_object().into_iter().flatten();
    let others = others.filter(|(field, value)| !STATUS_FIELDS.contains(&field.as_str()) && !value.is_null());
    if let Some(fields) = status.as_object_mut() {
        for (field, value) in others {
            fields.entry(field.clone()).or_insert_with(|| value.clone());
        }
    }
    status
}

impl StoredJob {
    /// Decodes a job of `kind`.
    pub(crate) fn of(kind: &Arc<Kind>, raw: RawJob) -> Self {
        // Nearly all objects are jobs, and are decoded without building a tree of all fields first.
        if raw.has_status_object
            && let Some(job) = decode_text(kind, &raw.text)
        {
            return Self::new(kind, job, raw.text, Vec::new());
        }
        // The text was JSON before.
        let mut value: Value = serde_json::from_str(&raw.text).unwrap_or_default();
        if value["spec"].is_null() {
            // The missing fields are then reported as errors of the spec.
            value["spec"] = Value::Object(Map::new());
        }
        match decode_value(kind, &mut value) {
            Ok((job, unsound)) => Self::new(kind, job, value.to_string(), unsound),
            Err(error) => {
                let stored = value.get("status").cloned().unwrap_or_default();
                let salvaged = JobStatus::salvage(&stored);
                Self::Unreadable {
                    kind: kind.clone(),
                    meta: Box::new(raw.metadata),
                    status: Box::new(salvaged.status),
                    stored: Box::new(stored),
                    unsound: salvaged.unsound,
                    error: undecodable(kind, &value)
                        .map_or_else(|| error.to_string(), |errors| errors.to_string()),
                }
            }
        }
    }

    /// Decodes a job again from a text that was decoded before.
    ///
    /// # Errors
    /// Only if the kind's decoder is not deterministic.
    pub(crate) fn decode_again(
        kind: &Arc<Kind>,
        text: &Arc<str>,
        valid: &Arc<OnceLock<()>>,
    ) -> serde_json::Result<Self> {
        let StoredStatus { status } = serde_json::from_str(text)?;
        let job = decode_text(kind, text).filter(|_| is_object(status));
        let (job, unsound) = match job {
            Some(job) => (job, Vec::new()),
            None => decode_value(kind, &mut serde_json::from_str(text)?)?,
        };
        Ok(Self::Job {
            kind: kind.clone(),
            job,
            text: text.clone(),
            valid: valid.clone(),
            unsound,
        })
    }

    /// Creates a job that has not been validated yet.
    fn new(kind: &Arc<Kind>, job: Box<dyn AnyJob>, text: String, unsound: Vec<&'static str>) -> Self {
        Self::Job {
            kind: kind.clone(),
            job,
            text: text.into(),
            valid: Arc::default(),
            unsound,
        }
    }

    pub(crate) fn kind(&self) -> &Arc<Kind> {
        match self {
            Self::Job { kind, .. } | Self::Unreadable { kind, .. } => kind,
        }
    }

    /// Returns the declarations that apply to the job. An unreadable job has those of its kind.
    pub(crate) fn framework(&self) -> &Framework {
        match self {
            Self::Job { job, .. } => job.framework(),
            Self::Unreadable { kind, .. } => &kind.framework,
        }
    }

    pub(crate) fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Job { job, .. } => job.meta(),
            Self::Unreadable { meta, .. } => meta,
        }
    }

    /// Returns the status fields with invalid values, which another writer stored.
    pub(crate) fn unsound(&self) -> &[&'static str] {
        match self {
            Self::Job { unsound, .. } | Self::Unreadable { unsound, .. } => unsound,
        }
    }

    pub(crate) fn status(&self) -> JobStatus {
        self.status_ref().cloned().unwrap_or_default()
    }

    /// Returns its status without a copy, if it has one.
    pub(crate) fn status_ref(&self) -> Option<&JobStatus> {
        match self {
            Self::Job { job, .. } => job.status(),
            Self::Unreadable { status, .. } => Some(status),
        }
    }

    /// Returns true if its status has any conditions.
    pub(crate) fn has_begun(&self) -> bool {
        self.status_ref()
            .is_some_and(|status| !status.conditions.is_empty())
    }

    /// Marks the job as valid if an earlier version was valid and its author has not changed it since. `spec_fingerprint`
    /// is the value of [`spec_fingerprint`](Self::spec_fingerprint) for that version. A version from before a restore of etcd
    /// does not count as an earlier version.
    pub(crate) fn inherit_validity(&self, known: &OnceLock<()>, spec_fingerprint: u64) {
        if let Self::Job { valid, .. } = self
            && known.get().is_some()
            && self.meta().generation.is_some()
            && self.spec_fingerprint() == spec_fingerprint
        {
            valid.get_or_init(|| ());
        }
    }

    /// Returns a fingerprint that changes if the author changes the job, and differs between jobs.
    pub(crate) fn spec_fingerprint(&self) -> u64 {
        let meta = self.meta();
        let mut hasher = DefaultHasher::new();
        (&meta.uid, meta.generation, &meta.labels, &meta.annotations).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the merge patch that turns the stored status `old` into `next`.
    ///
    /// The patch is as small as possible. If the result would not decode as `next`, the patch replaces the whole
    /// status.
    ///
    /// # Errors
    /// A status cannot be converted to JSON.
    pub(crate) fn status_change(
        &self,
        old: &JobStatus,
        next: &JobStatus,
        topology: Option<&Topology<'_>>,
    ) -> serde_json::Result<Value> {
        let stored = self.stored_status()?;
        if self.unsound().is_empty() {
            let change = self.least_change(old, next, topology, &stored)?;
            let mut after = stored.clone();
            json_patch::merge(&mut after, &change);
            if stored.is_null() || self.would_read(&after, next) {
                return Ok(change);
            }
        }
        let encoded = match self {
            Self::Job { job, .. } => job.encode_status(next, topology)?,
            Self::Unreadable { .. } => serde_json::to_value(next)?,
        };
        let with_others = with_other_fields(&stored, &encoded);
        let wanted = match self.would_read(&with_others, next) {
            true => with_others,
            false => encoded,
        };
        Ok(difference(&stored, wanted))
    }

    /// Returns the difference between two encoded statuses; the kind's own fields are compared with the stored ones.
    fn least_change(
        &self,
        old: &JobStatus,
        next: &JobStatus,
        topology: Option<&Topology<'_>>,
        stored: &Value,
    ) -> serde_json::Result<Value> {
        let shared = serde_json::to_value(old)?;
        let Self::Job { kind, job, .. } = self else {
            return Ok(difference(&shared, serde_json::to_value(next)?));
        };
        // Validation reports the errors in the annotations.
        let annotated = annotations::apply(kind, &**job, &mut FieldErrors::default());
        let job = &*annotated.job;
        let next = job.encode_status(next, topology)?;
        let mut before = match job.status() {
            Some(_) => job.encode_status(old, topology)?,
            None => shared.clone(),
        };
        // The previous values of the kind's own fields are the stored ones, whoever wrote them.
        if let (Some(fields), Some(next)) = (before.as_object_mut(), next.as_object()) {
            fields.retain(|field, _| shared.get(field).is_some());
            for field in next.keys().filter(|field| shared.get(field).is_none()) {
                let value = stored.get(field).cloned();
                fields.extend(value.map(|value| (field.clone(), value)));
            }
        }
        Ok(difference(&before, next))
    }

    fn stored_status(&self) -> serde_json::Result<Value> {
        match self {
            Self::Job { text, .. } => match serde_json::from_str::<StoredStatus<'_>>(text)?.status {
                Some(status) => serde_json::from_str(status.get()),
                None => Ok(Value::Null),
            },
            Self::Unreadable { stored, .. } => Ok((**stored).clone()),
        }
    }

    /// Returns true if this status would decode as `next`, without invalid values.
    fn would_read(&self, status: &Value, next: &JobStatus) -> bool {
        let same = |read: &JobStatus| serde_json::to_value(read).ok() == serde_json::to_value(next).ok();
        match self {
            Self::Job { kind, text, .. } => {
                let Ok(mut value) = serde_json::from_str::<Value>(text) else {
                    return false;
                };
                value["status"] = status.clone();
                decode_strictly(kind, &value).is_ok_and(|job| job.status().is_some_and(same))
            }
            Self::Unreadable { .. } => {
                let salvaged = JobStatus::salvage(status);
                salvaged.unsound.is_empty() && same(&salvaged.status)
            }
        }
    }
}

/// The raw status of an object.
#[derive(Deserialize)]
struct StoredStatus<'a> {
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

/// Decodes a job from the text of a [`RawJob`] with an object as its status. Returns `None` if its status is one that no
/// controller writes.
fn decode_text(kind: &Kind, text: &str) -> Option<Box<dyn AnyJob>> {
    let job = kind.decode_text(text).ok()?;
    job.status().is_none_or(JobStatus::is_sound).then_some(job)
}
