//! Whether a kind's definition is one that an API server takes, and says what validation says.

use std::fmt::Write;
use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube_memory::Cluster;
use serde_json::Value;

use crate::admission;
use crate::job::{FieldError, FieldErrors, Settings, TrainingJob};
use crate::validate::validate;

use super::cost::{MOST, MOST_OF_ALL, RuleCost, rule_costs};
use super::{jobs, rules, status};

/// Checks a kind's definition without an API server, as far as that goes.
///
/// * What the kind declares fits together: [`admission::definition`](crate::admission::definition) makes a definition of it.
/// * Each rule parses, names fields that the schema has, and is cheap enough: [`rule_costs`] says what that is, and what it
///   does not know. All rules of a version together are cheap enough.
/// * The API server and [`validate`](crate::validate()) say the same of each job of kind `J` in the YAML and JSON files at and
///   below the folder `jobs` of `base`, which is `env!("CARGO_MANIFEST_DIR")`. The schema and the rules take what `validate`
///   takes. Where both refuse the same field, a rule has the words of `validate`. Put jobs there that are refused, too.
/// * The status is read back as it is written: of the first job in the folder that can be read, with a status in which every
///   field is set, what [`encode_status`](TrainingJob::encode_status) makes of it gives the same
///   [`status`](TrainingJob::status).
///
/// Gives back what `validate` refuses and no rule does, as `file: field: text`, or `file (job): field: text` where a file
/// has several jobs. That is no error: the user is told it later, by the operator. But a rule that is never true of a job it
/// is for, such as one with a mistake in a role's name, shows only here. So compare what is given back with what you expect:
/// nothing, if there is a rule for all that the jobs of the folder are refused for. Of a job that the schema refuses
/// nothing is told: no rule sees it.
///
/// Rules are looked at as when an object is created: those that compare it with `oldSelf` are skipped, unless `oldSelf` is
/// optional. So are rules that call functions of Kubernetes which only a server has, such as `quantity` or `find`.
///
/// ```no_run
/// # fn is_a_test<MyJob: training_job::TrainingJob>() {
/// use training_job::testing::check_definition;
///
/// let untold = check_definition::<MyJob>(env!("CARGO_MANIFEST_DIR"), "tests/jobs");
/// assert_eq!(untold, [""; 0], "no rule for");
///
/// // Or, for a check that has no rule:
/// let untold = check_definition::<MyJob>(env!("CARGO_MANIFEST_DIR"), "tests/refused");
/// assert_eq!(untold, ["tests/refused/odd.yaml: spec.size: 3 is odd; use an even number"]);
/// # }
/// ```
///
/// To be called in a plain `#[test]`: it has a runtime of its own.
///
/// # Panics
/// With all that it finds. When there is no job, or a file cannot be read.
pub fn check_definition<J: TrainingJob>(base: impl AsRef<Path>, jobs: &str) -> Vec<String> {
    let definition = admission::definition::<J>().unwrap_or_else(|error| panic!("{error}"));
    let mut found = costs(&definition);
    let files = jobs::read::<J>(&base.as_ref().join(jobs), jobs);
    assert!(!files.is_empty(), "no job of kind {} is in {jobs}", J::kind(&()));
    let is_readable = |file: &jobs::File| serde_json::from_value::<J>(file.job.clone()).is_ok();
    let first = files.iter().find(|file| is_readable(file));
    found.extend(first.and_then(|file| status::check::<J>(&file.job)));
    let server = Server::<J>::new(&definition);
    let mut untold = Vec::new();
    for file in &files {
        let place = place(file, &files);
        let refused = server.refusals(&file.job);
        let valid = said::<J>(&file.job);
        let disagreements = disagreements(&refused, &valid).into_iter();
        found.extend(disagreements.map(|what| format!("{place}: {what}")));
        // Of what cannot be read, validation sees no fields.
        if refused.is_empty() || is_readable(file) {
            let by_no_rule = by_no_rule(&refused, valid).into_iter();
            untold.extend(by_no_rule.map(|error| format!("{place}: {error}")));
        }
    }
    let mut report = format!("the definition of {}:", J::kind(&()));
    for what in &found {
        let _ = write!(report, "\n* {what}");
    }
    if !untold.is_empty() {
        report += "\nwhat validate refuses and no rule does, which is allowed:";
        untold.iter().for_each(|what| report += &format!("\n  {what}"));
    }
    assert!(found.is_empty(), "{report}");
    untold
}

/// A job's file, with its name if there are several in it.
fn place(file: &jobs::File, files: &[jobs::File]) -> String {
    let path = &file.path;
    match files.iter().filter(|other| other.path == *path).count() {
        1 => path.clone(),
        _ => format!(
            "{path} ({})",
            file.job["metadata"]["name"].as_str().unwrap_or_default()
        ),
    }
}

/// What is wrong with the rules by themselves.
fn costs(definition: &CustomResourceDefinition) -> Vec<String> {
    let mut found = Vec::new();
    let costs = rule_costs(definition);
    for version in &definition.spec.versions {
        let costs: Vec<&RuleCost> = costs.iter().filter(|cost| cost.version == version.name).collect();
        for rule in &costs {
            let place = if rule.path.is_empty() {
                "the object"
            } else {
                &rule.path
            };
            let of = format!("{}, rule on {place}: {}", version.name, rule.expression);
            found.extend(rule.errors.iter().map(|error| format!("{of}\n  {error}")));
            if rule.cost > MOST {
                found.push(format!("{of}\n  {}", too_dear(rule.cost, MOST, &rule.missing)));
            }
        }
        let all = costs.iter().map(|rule| rule.cost).fold(0, u64::saturating_add);
        if all > MOST_OF_ALL {
            let dearest = costs.iter().max_by_key(|rule| rule.cost);
            let dearest = dearest.map_or("", |rule| &rule.expression);
            let why = too_dear(all, MOST_OF_ALL, &[]);
            found.push(format!(
                "{}, all rules together: {why}; the dearest is {dearest}",
                version.name
            ));
        }
    }
    found
}

fn too_dear(cost: u64, most: u64, missing: &[String]) -> String {
    let remedy = match missing {
        [] => "look at fewer or shorter values".to_owned(),
        missing => format!("{}; bound them", missing.join(", ")),
    };
    format!("an API server is to estimate a cost of {cost}, and takes {most}: {remedy}")
}

/// What `validate` has against a job, or what keeps it from being read.
fn said<J: TrainingJob>(job: &Value) -> Result<(), FieldErrors> {
    match serde_json::from_value::<J>(job.clone()) {
        Ok(job) => validate(&job, &Settings::default()).map(|_| ()),
        Err(error) => {
            let mut errors = FieldErrors::default();
            errors.push("", error.to_string(), "");
            Err(errors)
        }
    }
}

/// A refusal by the schema, or by a rule.
struct Refusal {
    by: String,
    path: String,
    words: String,
}

fn disagreements(refused: &[Refusal], valid: &Result<(), FieldErrors>) -> Vec<String> {
    let Err(errors) = valid else {
        let told = refused.iter().map(|refusal| {
            let Refusal { by, path, words } = refusal;
            format!("validate takes it, and {by} refuses it\n  {path}: {words}")
        });
        return told.collect();
    };
    let mut told = Vec::new();
    for refusal in refused.iter().filter(|refusal| refusal.by != SCHEMA) {
        if errors
            .iter()
            .any(|error| words(&error.to_string(), &error.path) == refusal.words)
        {
            continue;
        }
        let unmatched = errors.iter().find(|error| {
            let said = words(&error.to_string(), &error.path);
            error.path == refusal.path && !refused.iter().any(|refusal| refusal.words == said)
        });
        if let Some(error) = unmatched {
            let Refusal { by, words, .. } = refusal;
            told.push(format!(
                "two ways to say one thing\n  {error}\n  but {by}: {words}"
            ));
        }
    }
    told
}

/// What `validate` has against a job, and no rule has: in the same words, or in others for the same field, which is told
/// already. Nothing, if the schema refuses the job.
fn by_no_rule(refused: &[Refusal], valid: Result<(), FieldErrors>) -> Vec<FieldError> {
    let Err(errors) = valid else { return Vec::new() };
    if refused.iter().any(|refusal| refusal.by == SCHEMA) {
        return Vec::new();
    }
    let said: Vec<_> = errors
        .iter()
        .map(|error| words(&error.to_string(), &error.path))
        .collect();
    let is_told = |error: &FieldError, words: &str| {
        refused.iter().any(|refusal| {
            let in_others = !said.contains(&refusal.words) && refusal.path == error.path;
            refusal.words == words || in_others
        })
    };
    let told = errors.into_iter().zip(&said);
    told.filter(|(error, words)| !is_told(error, words))
        .map(|(error, _)| error)
        .collect()
}

/// An error's words, without its path, and without a guess of what was meant, which a rule cannot make.
fn words(error: &str, path: &str) -> String {
    let said = error
        .strip_prefix(path)
        .map_or(error, |rest| rest.trim_start_matches(": "));
    match (said.find("did you mean "), said.find("? use one of ")) {
        (Some(from), Some(to)) => format!("{}{}", &said[..from], &said[to + 2..]),
        _ => said.to_owned(),
    }
}

const SCHEMA: &str = "the schema";

/// The in-memory API, which has schemas and their defaults, and the rules, which it does not have.
struct Server<'d, J> {
    runtime: tokio::runtime::Runtime,
    client: kube::Client,
    definition: &'d CustomResourceDefinition,
    kind: std::marker::PhantomData<J>,
}

impl<'d, J: TrainingJob> Server<'d, J> {
    fn new(definition: &'d CustomResourceDefinition) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
        let client = runtime.block_on(async {
            let client = Cluster::new().client("default");
            let created = Api::all(client.clone())
                .create(&PostParams::default(), definition)
                .await;
            created.unwrap_or_else(|error| panic!("the definition of {}: {error}", J::kind(&())));
            client
        });
        Self {
            runtime,
            client,
            definition,
            kind: std::marker::PhantomData,
        }
    }

    /// What an API server has against a new job.
    fn refusals(&self, job: &Value) -> Vec<Refusal> {
        let stored = match self.store(job) {
            Ok(stored) => stored,
            Err(words) => {
                return vec![Refusal {
                    by: SCHEMA.to_owned(),
                    path: String::new(),
                    words,
                }];
            }
        };
        let version = job["apiVersion"]
            .as_str()
            .and_then(|version| version.rsplit('/').next());
        let versions = &self.definition.spec.versions;
        let version = versions.iter().find(|v| Some(v.name.as_str()) == version);
        let schema = version.and_then(|v| v.schema.as_ref()?.open_api_v3_schema.as_ref());
        let refused = schema.map_or_else(Vec::new, |schema| rules::evaluate(schema, &stored));
        let refused = refused
            .into_iter()
            .map(|rules::Refusal { path, words, rule }| Refusal {
                by: format!("the rule {rule}"),
                path,
                words,
            });
        refused.collect()
    }

    /// The job as it would be stored: with the defaults of the schema, without what it does not know.
    fn store(&self, job: &Value) -> Result<Value, String> {
        let mut object: DynamicObject =
            serde_json::from_value(job.clone()).map_err(|error| error.to_string())?;
        object.metadata.namespace = None;
        let mut resource: ApiResource = J::api_resource();
        if let Some((_, version)) = job["apiVersion"].as_str().and_then(|v| v.split_once('/')) {
            resource.version = version.to_owned();
            resource.api_version = format!("{}/{version}", resource.group);
        }
        let api = Api::<DynamicObject>::default_namespaced_with(self.client.clone(), &resource);
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let stored = self.runtime.block_on(api.create(&params, &object));
        let stored = stored.map_err(|error| match error {
            kube::Error::Api(status) => status.message,
            other => other.to_string(),
        })?;
        serde_json::to_value(stored).map_err(|error| error.to_string())
    }
}
