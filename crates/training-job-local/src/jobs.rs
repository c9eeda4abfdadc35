//! The jobs to run, and their kinds.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tokio::sync::mpsc;

use kube_manifest::{Finding, Node as Document, Severity};
use kube_memory::{Builder, Cluster, Description};
use training_job::offline;
use training_job::validate::validate_any;
use training_job::{Accelerators, FieldErrors, Kind, ObjectKind, Settings, TrainingJob};
use training_job_controller::{FinishedJobs, Operator, Options};

use local_node::{AdjustEnv, Bind, Node, NodeConfig};

use crate::pods;
use crate::progress::{Progress, SIDECAR_GRACE_PERIOD, namespace_of};
use crate::run::{MAX_GRACE_PERIOD, Run, changes};
use crate::{RunError, ServerError};

/// The time that replicas have to end by themselves after the job has succeeded. A busy machine takes longer than a
/// cluster.
const SUCCESS_GRACE_PERIOD: Duration = Duration::from_secs(3);

/// The number of unread lines of output at which processes are slowed down.
pub(crate) const MAX_UNREAD_LINES: usize = 1_024;

/// The number of changes of each kind for watches that begin in the past. Clients that were away for longer list again.
const STORED_CHANGES: usize = 1_000;

/// The jobs to run on this machine, and their kinds.
#[derive(Debug, Default)]
pub struct Jobs {
    pub(crate) kinds: Vec<LocalKind>,
    /// The jobs, each with the index of its kind in `kinds`.
    jobs: Vec<(usize, DynamicObject)>,
    /// The ConfigMaps and Secrets.
    config: Vec<DynamicObject>,
    accelerators: Accelerators,
    finished_jobs: Option<Arc<dyn FinishedJobs>>,
}

#[derive(Debug)]
pub(crate) struct LocalKind {
    kind: Kind,
    adjust_env: AdjustEnv,
}

impl LocalKind {
    /// Returns true if the operator reads the output of the job.
    fn watches_output(&self, job: &DynamicObject) -> bool {
        let Ok(Ok(job)) = serde_json::to_value(job).map(|job| self.kind.decode(&job)) else {
            return false;
        };
        let valid = validate_any(&self.kind, &*job, &Settings::default());
        valid.is_ok_and(|valid| valid.policy.progress.is_some())
    }
}

impl Jobs {
    /// Adds the kind of job `J`.
    #[must_use]
    pub fn kind<J: TrainingJob>(self) -> Self {
        self.kind_with::<J>(|_, _| {})
    }

    /// Adds the kind of job `J`, whose processes need other variables on one machine: see [`AdjustEnv`]. `adjust_env`
    /// is called for the pods whose label [`OPERATOR_NAME_LABEL`](local_node::OPERATOR_NAME_LABEL) contains the name of the
    /// kind's controller.
    #[must_use]
    pub fn kind_with<J: TrainingJob>(self, adjust_env: AdjustEnv) -> Self {
        self.add_kind(Kind::of::<J>(), adjust_env)
    }

    /// Adds a kind of job as [`kind_with`](Self::kind_with) does.
    #[must_use]
    pub fn add_kind(mut self, kind: Kind, adjust_env: AdjustEnv) -> Self {
        self.kinds.push(LocalKind { kind, adjust_env });
        self
    }

    /// Adds the jobs, ConfigMaps and Secrets of all documents of a manifest. The kinds of the jobs must have been added
    /// before.
    ///
    /// # Errors
    /// [`RunError::Manifest`] with all errors: the text is not YAML, an object is not a valid job of an added kind, or
    /// a job is a duplicate.
    pub fn yaml(self, text: &str) -> Result<Self, RunError> {
        self.manifest("<yaml>", text)
    }

    /// Adds the jobs of the manifest `text`, as [`yaml`](Self::yaml) does. `file` is its name in errors.
    ///
    /// # Errors
    /// As for [`yaml`](Self::yaml).
    pub fn manifest(mut self, file: &str, text: &str) -> Result<Self, RunError> {
        let (documents, syntax_error) = kube_manifest::parse_until_error(text);
        let mut findings = Vec::new();
        for document in &documents {
            if let Err(error) = self.add(&document.to_json()) {
                findings.extend(locate(file, document, &error));
            }
        }
        findings.extend(syntax_error.map(|error| Finding::from_syntax_error(file, &error)));
        match findings.is_empty() {
            true => Ok(self),
            false => Err(RunError::Manifest(findings)),
        }
    }

    /// Adds a job, or a ConfigMap or Secret for jobs. Fields that only an API server sets are ignored, so that the object
    /// may come from a cluster.
    ///
    /// # Errors
    /// The object is not a valid job of an added kind or a ConfigMap or Secret, or another job, of any kind, has the
    /// same name. Their pods would have the same names.
    pub fn job(mut self, object: &Value) -> Result<Self, RunError> {
        self.add(object)?;
        Ok(self)
    }

    fn add(&mut self, object: &Value) -> Result<(), RunError> {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let kind = text("kind");
        if text("apiVersion") == "v1" && matches!(kind, "ConfigMap" | "Secret") {
            self.config.push(config(kind, object)?);
            return Ok(());
        }
        let group = text("apiVersion").split('/').next();
        let has_name = |k: &LocalKind| k.kind.name() == kind;
        let is_its = |k: &LocalKind| has_name(k) && Some(k.kind.resource.group.as_str()) == group;
        // For an object of another group whose kind has the same name, the check below reports a wrong API version.
        let place = self.kinds.iter().position(is_its);
        let Some(place) = place.or_else(|| self.kinds.iter().position(has_name)) else {
            return Err(RunError::Kind {
                kind: kind.to_owned(),
                known: self.known(),
            });
        };
        let job = check(&self.kinds[place].kind, object).map_err(|errors| RunError::Invalid {
            kind: kind.to_owned(),
            name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            errors,
        })?;
        let name = |job: &DynamicObject| (namespace_of(job), job.name_any());
        if self.jobs.iter().any(|(_, other)| name(other) == name(&job)) {
            return Err(RunError::Twice {
                kind: kind.to_owned(),
                name: job.name_any(),
            });
        }
        self.jobs.push((place, job));
        Ok(())
    }

    /// Sets the accelerators for containers that request a device. Processes get only their variables.
    #[must_use]
    pub fn accelerators(mut self, accelerators: Accelerators) -> Self {
        self.accelerators = accelerators;
        self
    }

    /// Sets what keeps the jobs that have finished.
    #[must_use]
    pub fn finished_jobs(mut self, finished_jobs: Arc<dyn FinishedJobs>) -> Self {
        self.finished_jobs = Some(finished_jobs);
        self
    }

    pub(crate) fn options(&self) -> Options {
        let mut options = Options::default();
        options.settings.success_grace_period = SUCCESS_GRACE_PERIOD;
        options.settings.sidecar_grace_seconds = SIDECAR_GRACE_PERIOD.as_secs().cast_signed();
        options.settings.accelerators = Arc::new(self.accelerators.clone());
        options.finished_jobs.clone_from(&self.finished_jobs);
        options
    }

    fn known(&self) -> String {
        let known: Vec<_> = self.kinds.iter().map(|k| k.kind.name()).collect();
        known.join(", ")
    }

    /// Starts the jobs on a node with this configuration. The functions of the kinds ([`kind_with`](Self::kind_with))
    /// are added to its `adjust_env`; its `bind` and `grace_cap` are replaced. Must be called within a tokio runtime
    /// that has I/O and time enabled.
    ///
    /// # Errors
    /// No job was added, the machine lacks something that the node needs, or the in-memory API rejects a job.
    pub async fn start(self, mut config: NodeConfig) -> Result<Run, RunError> {
        if self.jobs.is_empty() {
            return Err(RunError::Empty { known: self.known() });
        }
        let is_used = |place: usize| self.jobs.iter().any(|(of, _)| *of == place);
        let used = self.kinds.iter().enumerate().filter(|(place, _)| is_used(*place));
        let used: Vec<_> = used.map(|(_, kind)| kind).collect();
        let api = in_memory_api(Cluster::builder(), &used)?;
        // The jobs were checked before, so the definitions need no rules.
        let definition = Kind::definition_without_rules;
        let backend = Backend::new(&api, definition, &used, self.options(), &mut config).await?;
        let keys = used.iter().flat_map(|kind| {
            kind.kind
                .framework
                .controllers()
                .map(|name| (name, kind.kind.framework.keys()))
        });
        let progress = Progress::new(keys.collect());
        // The watches start before any object exists, so that no change is missed.
        let changes = changes(&backend.client, used.iter().map(|k| &k.kind));
        let (send, output) = mpsc::channel(MAX_UNREAD_LINES);
        config.keep_output |= self
            .jobs
            .iter()
            .any(|(place, job)| self.kinds[*place].watches_output(job));
        let node = Node::start(backend.client.clone(), config, send)?;
        pods::serve_logs(&api, node.containers());
        let Backend { client, operator, .. } = backend;
        let mut run = Run::new(client, progress, node, operator, changes, output);
        for object in &self.config {
            run.create_config(object).await?;
        }
        for (place, job) in &self.jobs {
            run.create_job(&self.kinds[*place].kind.resource, job).await?;
        }
        Ok(run)
    }
}

/// Creates an in-memory API that can have the objects of some kinds' jobs.
pub(crate) fn in_memory_api(builder: Builder, kinds: &[&LocalKind]) -> Result<Cluster, ServerError> {
    let cluster = builder
        .auto_namespaces()
        .history(STORED_CHANGES)
        .stored_kinds()
        // Processes that a killed cluster has left, and the stories of a history, which several clusters may share, are
        // recognized by UIDs.
        .seed(getrandom::u64().map_err(std::io::Error::from)?)
        .build();
    let declared = kinds.iter().flat_map(|kind| kind.kind.framework.all_objects());
    for ObjectKind {
        group,
        version,
        kind,
        plural,
        ..
    } in declared
    {
        cluster.install_missing(Description::new(group, version, kind, plural));
    }
    Ok(cluster)
}

/// An in-memory API with the definitions of some kinds, and an operator of these kinds.
pub(crate) struct Backend {
    pub(crate) client: Client,
    pub(crate) operator: Operator,
}

impl Backend {
    /// Adds the definitions of the kinds. Prepares the configuration of the only node.
    pub(crate) async fn new(
        cluster: &Cluster,
        definition: fn(&Kind) -> CustomResourceDefinition,
        kinds: &[&LocalKind],
        options: Options,
        config: &mut NodeConfig,
    ) -> Result<Self, RunError> {
        let client = cluster.client("default");
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        let mut operator = Operator::new(client.clone(), options);
        for LocalKind { kind, adjust_env } in kinds {
            define(&definitions, definition(kind))
                .await
                .map_err(|error| RunError::Refused {
                    what: kind.name().to_owned(),
                    error,
                })?;
            operator = operator.manage_kind(kind.clone());
            let names = kind.framework.controllers();
            config
                .adjust_env
                .extend(names.map(|name| (name.to_owned(), *adjust_env)));
        }
        config.bind = Bind::Any;
        config.grace_cap = Some(MAX_GRACE_PERIOD);
        Ok(Self { client, operator })
    }
}

/// Creates a definition, or replaces the one of an earlier cluster.
async fn define(
    definitions: &Api<CustomResourceDefinition>,
    mut definition: CustomResourceDefinition,
) -> kube::Result<()> {
    if let Some(known) = definitions.get_opt(&definition.name_any()).await? {
        definition.metadata.resource_version = known.metadata.resource_version;
        definition.metadata.finalizers = known.metadata.finalizers;
        let name = definition.name_any();
        definitions
            .replace(&name, &PostParams::default(), &definition)
            .await?;
        return Ok(());
    }
    definitions.create(&PostParams::default(), &definition).await?;
    Ok(())
}

/// Checks a job of a manifest, and returns it with the defaults of its API version.
fn check(kind: &Kind, object: &Value) -> Result<DynamicObject, FieldErrors> {
    let checked = offline::check(kind, object)?;
    if let Some((path, manager)) = checked.other_manager {
        let mut errors = FieldErrors::default();
        errors.push(
            path,
            format!("{manager} runs the job, and does not exist here"),
            "remove the field to run the job on this machine",
        );
        return Err(errors);
    }
    Ok(serde_json::from_value(as_new(checked.object))?)
}

/// Returns a ConfigMap or Secret of a manifest.
fn config(kind: &str, object: &Value) -> Result<DynamicObject, RunError> {
    let is_valid = match kind {
        "Secret" => serde_json::from_value::<Secret>(object.clone()).map(drop),
        _ => serde_json::from_value::<ConfigMap>(object.clone()).map(drop),
    };
    let new = is_valid.and_then(|()| serde_json::from_value(as_new(object.clone())));
    new.map_err(|error| RunError::Invalid {
        kind: kind.to_owned(),
        name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        errors: error.into(),
    })
}

/// The fields of the metadata that an API server sets. Owners do not exist here.
const SET_BY_API_SERVER: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Returns an object, which may have been exported from a cluster, as it was before it was created there.
fn as_new(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| !SET_BY_API_SERVER.contains(&key.as_str()));
    }
    object
}

/// Returns the errors of a document, each with the line of its field.
fn locate(file: &str, document: &Document, error: &RunError) -> Vec<Finding> {
    let mut errors = FieldErrors::default();
    match error {
        RunError::Invalid { errors: all, .. } => errors = all.clone(),
        RunError::Kind { kind, .. } if kind.is_empty() => {
            errors.push("kind", "must be a non-empty string", "set the kind of the object");
        }
        RunError::Kind { .. } => errors.push("kind", error.to_string(), ""),
        _ => errors.push("", error.to_string(), ""),
    }
    let errors = errors.into_iter().map(|e| (e.path, e.problem, e.remedy));
    Finding::locate(file, Severity::Error, document, errors)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    async fn first_uid() -> String {
        let mut config = NodeConfig::default();
        let made = Backend::new(
            &in_memory_api(Cluster::builder(), &[]).unwrap(),
            Kind::definition_without_rules,
            &[],
            Options::default(),
            &mut config,
        )
        .await;
        let api = Api::<ConfigMap>::namespaced(made.unwrap().client, "default");
        let object = ConfigMap {
            metadata: ObjectMeta {
                name: Some("first".to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        let made = api.create(&PostParams::default(), &object).await.unwrap();
        made.metadata.uid.unwrap()
    }

    #[tokio::test]
    async fn two_clusters_have_no_uid_in_common() {
        assert_ne!(first_uid().await, first_uid().await);
    }
}
