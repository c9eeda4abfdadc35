//! Jobs on this machine alone: an in-memory API, the operator and a node in one process.

mod error;
mod event;
mod main;
mod progress;
mod run;

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, ResourceExt};
use serde_json::Value;
use tokio::sync::mpsc;

use kube_memory::Cluster;
use training_job::Settings;
use training_job::TrainingJob;
use training_job::validate::validate;
use training_job::{Operator, Options};

use super::config::{AdjustEnv, Bind, NodeConfig};
use super::node::Node;

pub use error::RunError;
pub use event::RunEvent;
pub use main::main;
pub use run::Run;

use run::changes;

/// How long replicas may take to end by themselves once the job has succeeded: a busy machine takes longer
/// than a cluster.
const LINGER: Duration = Duration::from_secs(3);

/// How long replicas may take to end once they are asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Lines of output that may wait to be read before processes have to wait.
const WAITING_LINES: usize = 1_024;

/// Jobs to run on this machine, and their kinds.
///
/// ```no_run
/// # async fn is_async<MyJob: training_job::TrainingJob>() -> Result<(), local_node::RunError> {
/// use local_node::{Jobs, NodeConfig};
///
/// let manifest = std::fs::read_to_string("job.yaml").unwrap();
/// let mut run = Jobs::default().kind::<MyJob>().yaml(&manifest)?.start(NodeConfig::default()).await?;
/// while let Some(event) = run.next().await {
///     if let Some(line) = event.line() {
///         println!("{line}");
///     }
/// }
/// println!("{}", if run.succeeded() { "succeeded" } else { "failed" });
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct Jobs {
    kinds: Vec<Kind>,
    /// Each with the place of its kind in `kinds`.
    jobs: Vec<(usize, DynamicObject)>,
}

/// A kind of job, and what can be done with its jobs without knowing their type.
#[derive(Debug)]
struct Kind {
    resource: ApiResource,
    definition: fn() -> CustomResourceDefinition,
    manage: fn(Operator) -> Operator,
    controller: &'static str,
    adjust_env: AdjustEnv,
    read: fn(&Value) -> Result<DynamicObject, RunError>,
}

impl Jobs {
    /// Adds the kind of job `J`.
    #[must_use]
    pub fn kind<J: TrainingJob>(self) -> Self {
        self.kind_with::<J>(|_, _| {})
    }

    /// Adds the kind of job `J`, whose processes need other variables on one machine: see [`AdjustEnv`]. They are
    /// recognised by the label [`OPERATOR_NAME_LABEL`](crate::OPERATOR_NAME_LABEL) with the kind's controller name.
    #[must_use]
    pub fn kind_with<J: TrainingJob>(mut self, adjust_env: AdjustEnv) -> Self {
        self.kinds.push(Kind {
            resource: ApiResource::erase::<J>(&()),
            definition: J::definition,
            manage: Operator::manage::<J>,
            controller: J::FRAMEWORK.controller,
            adjust_env,
            read: read::<J>,
        });
        self
    }

    /// Adds the jobs of a manifest: all its documents. Kinds have to be added before.
    ///
    /// # Errors
    /// It is no YAML, or one of its objects is no valid job of a kind that is here, or is there twice.
    pub fn yaml(mut self, text: &str) -> Result<Self, RunError> {
        // 0644 is what kubectl takes it for.
        let options = serde_saphyr::options! { legacy_octal_numbers: true };
        let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
            .map_err(|error| RunError::Yaml(error.to_string()))?;
        for document in documents.iter().filter(|document| !document.is_null()) {
            self = self.job(document)?;
        }
        Ok(self)
    }

    /// Adds a job.
    ///
    /// # Errors
    /// It is no valid job of a kind that is here, or is there twice: two jobs of one name, of whatever kind,
    /// would share their pods' names.
    pub fn job(mut self, object: &Value) -> Result<Self, RunError> {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let kind = text("kind");
        let group = text("apiVersion").split('/').next();
        let is_its = |k: &Kind| k.resource.kind == kind && Some(k.resource.group.as_str()) == group;
        let Some(place) = self.kinds.iter().position(is_its) else {
            return Err(RunError::Kind {
                kind: kind.to_owned(),
                known: self.known(),
            });
        };
        let job = (self.kinds[place].read)(object)?;
        let name = |job: &DynamicObject| (namespace_of(job), job.name_any());
        if self.jobs.iter().any(|(_, other)| name(other) == name(&job)) {
            return Err(RunError::Twice {
                kind: kind.to_owned(),
                name: job.name_any(),
            });
        }
        self.jobs.push((place, job));
        Ok(self)
    }

    fn known(&self) -> String {
        let known: Vec<_> = self
            .kinds
            .iter()
            .map(|kind| kind.resource.kind.as_str())
            .collect();
        known.join(", ")
    }

    /// Starts the jobs, with processes as `config` says. What the kinds need ([`kind_with`](Self::kind_with)) is added to
    /// its `adjust_env`; its `bind` and `grace_cap` are replaced. Must be called within a tokio runtime that has I/O and
    /// time enabled.
    ///
    /// # Errors
    /// There is no job, the machine lacks something that is needed, or the in-memory API refuses a job.
    pub async fn start(self, mut config: NodeConfig) -> Result<Run, RunError> {
        if self.jobs.is_empty() {
            return Err(RunError::Empty { known: self.known() });
        }
        let cluster = Cluster::builder().auto_namespaces().build();
        let client = cluster.client("default");
        let is_used = |place: usize| self.jobs.iter().any(|(of, _)| *of == place);
        let used = self.kinds.iter().enumerate().filter(|(place, _)| is_used(*place));
        let used: Vec<_> = used.map(|(_, kind)| kind).collect();
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        let mut operator = Operator::new(client.clone(), options());
        for kind in &used {
            // Without its rules, which the in-memory API would not look at.
            let definition = (kind.definition)();
            let created = definitions.create(&PostParams::default(), &definition).await;
            created.map_err(|error| RunError::Refused {
                what: kind.resource.kind.clone(),
                error,
            })?;
            operator = (kind.manage)(operator);
            config
                .adjust_env
                .insert(kind.controller.to_owned(), kind.adjust_env);
        }
        config.bind = Bind::Any;
        config.grace_cap = Some(GRACE);
        // The watches begin before there is anything to see.
        let changes = changes(&client, used.iter().map(|kind| &kind.resource));
        let (send, output) = mpsc::channel(WAITING_LINES);
        let node = Node::start(client.clone(), config, send)?;
        let mut run = Run::new(client, node, operator, changes, output);
        for (place, job) in &self.jobs {
            run.create_job(&self.kinds[*place].resource, job).await?;
        }
        Ok(run)
    }
}

/// Decodes, checks and completes a job.
fn read<J: TrainingJob>(object: &Value) -> Result<DynamicObject, RunError> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let unreadable = |error: serde_json::Error| RunError::Unreadable {
        kind: J::kind(&()).into_owned(),
        name: name.to_owned(),
        error: error.to_string(),
    };
    let mut job: J = serde::Deserialize::deserialize(object).map_err(unreadable)?;
    let plain = serde_json::to_value(&job).and_then(serde_json::from_value);
    // The API gives it one of its own.
    job.meta_mut().uid.get_or_insert_with(|| "new".to_owned());
    validate(&job, &Settings::default()).map_err(|errors| RunError::Invalid {
        kind: J::kind(&()).into_owned(),
        name: name.to_owned(),
        errors,
    })?;
    plain.map_err(unreadable)
}

fn namespace_of(job: &impl ResourceExt) -> String {
    job.namespace().unwrap_or_else(|| "default".to_owned())
}

fn options() -> Options {
    Options {
        settings: Settings {
            linger: LINGER,
            ..Settings::default()
        },
        ..Options::default()
    }
}
