//! Checks that an API server accepts a kind's definition, and that its rules agree with validation.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, PostParams};
use kube_memory::{Cluster, Description, RuleViolation, Rules, rule_environment};
use serde_json::{Value, json};

use training_job::admission;
use training_job::job::{FieldError, FieldErrors, Kind, Settings, TrainingJob};
use training_job::validate::validate_any;

use super::{jobs, rendered, status};

/// Checks a kind's definition without an API server.
///
/// * The declarations of the kind fit together, so that [`admission::definition`](training_job::admission::definition) returns
///   a definition.
/// * Each rule parses. Only an API server checks its types and its cost:
///   `kubectl create --dry-run=server -f FILE` with the printed definition.
/// * The API server and [`validate`](training_job::validate()) agree on each job of kind `J` in the YAML and JSON files at and
///   below the folder `jobs` of `base`, which is `env!("CARGO_MANIFEST_DIR")`. The schema and the rules accept every
///   job that `validate` accepts. If both reject the same field, the message of a rule is that of `validate`. So put
///   invalid jobs there, too.
/// * The API server accepts the objects of each valid job without warnings, and the hooks return the same objects when
///   they are called again.
/// * The status is read as it was written: the first readable job of the folder gets a status in which every field is
///   set. [`status`](TrainingJob::status) must return what [`encode_status`](TrainingJob::encode_status) was given.
/// * A definition that is too large for client-side `kubectl apply` is a warning on standard error.
///
/// Returns the errors that `validate` reports and no rule does, as `file: field: text`, or `file (job): field: text` if
/// a file has several jobs. Such an error is allowed: the operator reports it later. But a rule that never rejects the
/// jobs it is for, for example because a role's name in it is misspelled, shows only here. So compare the result with
/// what you expect: an empty list if every error of the jobs has a rule. Jobs that the schema rejects have no part in
/// it, because no rule sees them.
///
/// Rules are evaluated as when an object is created: those that compare it with `oldSelf` are skipped, unless `oldSelf`
/// is optional. Rules are also skipped if they call functions that only a server has, such as `quantity` or `find`.
///
/// ```no_run
/// # fn is_a_test<MyJob: training_job::TrainingJob>() {
/// use training_job_testing::check_definition;
///
/// let uncovered = check_definition::<MyJob>(env!("CARGO_MANIFEST_DIR"), "tests/jobs");
/// assert_eq!(uncovered, [""; 0], "rejected by validate but by no rule");
///
/// // Or, for a check that has no rule:
/// let uncovered = check_definition::<MyJob>(env!("CARGO_MANIFEST_DIR"), "tests/refused");
/// assert_eq!(uncovered, ["tests/refused/odd.yaml: spec.size: must be even (is 3)"]);
/// # }
/// ```
///
/// Call it in a plain `#[test]`, because it creates a runtime.
///
/// # Panics
/// If a check fails, with all findings; if the folder has no job; if a file cannot be read.
pub fn check_definition<J: TrainingJob>(base: impl AsRef<Path>, jobs: &str) -> Vec<String> {
    let kind = &Kind::of::<J>();
    let definition = admission::definition_of(kind).unwrap_or_else(|error| panic!("{error}"));
    if let Some(warning) = admission::size_warning(&definition) {
        eprintln!("warning: {warning}");
    }
    let mut found = Vec::new();
    for version in &definition.spec.versions {
        unparsable(&json!(version.schema)["openAPIV3Schema"], &mut found);
    }
    let files = jobs::read(kind, &base.as_ref().join(jobs), jobs);
    assert!(!files.is_empty(), "no job of kind {} is in {jobs}", kind.name());
    let is_readable = |file: &jobs::File| kind.decode(&file.job).is_ok();
    let first = files.iter().find(|file| is_readable(file));
    found.extend(first.and_then(|file| status::check(kind, &file.job)));
    let server = Server::new(kind, &definition);
    let mut uncovered = Vec::new();
    for file in &files {
        let place = place(file, &files);
        let refused = server.refusals(&file.job);
        let valid = validated(kind, &file.job);
        let disagreements = disagreements(&refused, &valid).into_iter();
        let problems = server
            .runtime
            .block_on(rendered::problems(kind, &server.client, &file.job));
        let of_file = disagreements.chain(problems);
        found.extend(of_file.map(|what| format!("{place}: {what}")));
        // Validation cannot see the fields of an unreadable job.
        if refused.is_empty() || is_readable(file) {
            let by_no_rule = by_no_rule(&refused, valid).into_iter();
            uncovered.extend(by_no_rule.map(|error| format!("{place}: {error}")));
        }
    }
    let mut report = format!("the definition of {}:", kind.name());
    for what in &found {
        let _ = write!(report, "\n* {what}");
    }
    if !uncovered.is_empty() {
        report += "\nrejected by validate but by no rule, which is allowed:";
        uncovered.iter().for_each(|what| report += &format!("\n  {what}"));
    }
    assert!(found.is_empty(), "{report}");
    uncovered
}

/// Returns the path of a job's file, with the job's name if the file has several jobs.
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

/// Returns the rules of a schema, and the expressions of their messages, that do not parse.
fn unparsable(schema: &Value, found: &mut Vec<String>) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        for text in ["rule", "messageExpression"]
            .iter()
            .filter_map(|key| rule[key].as_str())
        {
            if let Err(error) = rule_environment().compile(text) {
                found.push(format!("the rule {text}\n  cannot be parsed: {error}"));
            }
        }
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    let parts = properties
        .map(|(_, part)| part)
        .chain(["items", "additionalProperties"].map(|key| &schema[key]));
    parts
        .filter(|part| part.is_object())
        .for_each(|part| unparsable(part, found));
}

/// Returns the errors of `validate`, or the error of decoding the job.
fn validated(kind: &Kind, job: &Value) -> Result<(), FieldErrors> {
    match kind.decode(job) {
        Ok(job) => validate_any(kind, &*job, &Settings::default()).map(|_| ()),
        Err(error) => {
            let mut errors = FieldErrors::default();
            errors.push("", error.to_string(), "");
            Err(errors)
        }
    }
}

/// A rejection by the schema or by a rule.
struct Refusal {
    by: String,
    path: String,
    message: String,
}

fn disagreements(refused: &[Refusal], valid: &Result<(), FieldErrors>) -> Vec<String> {
    let Err(errors) = valid else {
        let found = refused.iter().map(|refusal| {
            let Refusal { by, path, message } = refusal;
            format!("validate accepts it, but {by} rejects it\n  {path}: {message}")
        });
        return found.collect();
    };
    let mut found = Vec::new();
    for refusal in refused.iter().filter(|refusal| refusal.by != SCHEMA) {
        if errors
            .iter()
            .any(|error| comparable(&error.to_string(), &error.path) == refusal.message)
        {
            continue;
        }
        let unmatched = errors.iter().find(|error| {
            let message = comparable(&error.to_string(), &error.path);
            error.path == refusal.path && !refused.iter().any(|refusal| refusal.message == message)
        });
        if let Some(error) = unmatched {
            let Refusal { by, message, .. } = refusal;
            found.push(format!(
                "different messages for one error\n  validate: {error}\n  {by}: {message}"
            ));
        }
    }
    found
}

/// Returns the errors of `validate` that no rule reports. A rule with another message for the same field counts,
/// because [`disagreements`] reports it. Returns nothing if the schema rejects the job.
fn by_no_rule(refused: &[Refusal], valid: Result<(), FieldErrors>) -> Vec<FieldError> {
    let Err(errors) = valid else { return Vec::new() };
    if refused.iter().any(|refusal| refusal.by == SCHEMA) {
        return Vec::new();
    }
    let messages: Vec<_> = errors
        .iter()
        .map(|error| comparable(&error.to_string(), &error.path))
        .collect();
    let is_covered = |error: &FieldError, message: &str| {
        refused.iter().any(|refusal| {
            let differs = !messages.contains(&refusal.message) && refusal.path == error.path;
            refusal.message == message || differs
        })
    };
    let worded = errors.into_iter().zip(&messages);
    worded
        .filter(|(error, message)| !is_covered(error, message))
        .map(|(error, _)| error)
        .collect()
}

/// Returns an error without its path, and without a suggestion, which a rule cannot compute.
fn comparable(error: &str, path: &str) -> String {
    let said = error
        .strip_prefix(path)
        .map_or(error, |rest| rest.trim_start_matches(": "));
    match (said.find("did you mean "), said.find("? use one of ")) {
        (Some(from), Some(to)) => format!("{}{}", &said[..from], &said[to + 2..]),
        _ => said.to_owned(),
    }
}

const SCHEMA: &str = "the schema";

fn refusal(violation: RuleViolation) -> Refusal {
    let failed = violation.message_error.iter();
    let failed = failed.map(|error| format!(" (its messageExpression fails: {error})"));
    Refusal {
        by: format!("the rule {}", violation.rule),
        message: [violation.message].into_iter().chain(failed).collect(),
        path: violation.path,
    }
}

/// The in-memory API, which checks schemas and fills in their defaults, and the rules, which it does not evaluate here.
struct Server<'a> {
    runtime: tokio::runtime::Runtime,
    client: kube::Client,
    /// The rules by version.
    rules: BTreeMap<String, Rules>,
    kind: &'a Kind,
}

impl<'a> Server<'a> {
    fn new(of: &'a Kind, definition: &CustomResourceDefinition) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
        let client = runtime.block_on(async {
            let cluster = Cluster::new();
            for kind in of.framework.all_objects() {
                cluster.install_missing(Description::new(kind.group, kind.version, kind.kind, kind.plural));
            }
            let client = cluster.client("default");
            let created = Api::all(client.clone())
                .create(&PostParams::default(), definition)
                .await;
            created.unwrap_or_else(|error| panic!("the definition of {}: {error}", of.name()));
            client
        });
        let rules = definition.spec.versions.iter().filter_map(|version| {
            let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
            let schema = serde_json::to_value(schema);
            let schema = schema.unwrap_or_else(|error| panic!("the schema of {}: {error}", version.name));
            Some((version.name.clone(), Rules::of_schema(&schema)))
        });
        Self {
            runtime,
            client,
            rules: rules.collect(),
            kind: of,
        }
    }

    /// Returns the errors of an API server for a new job.
    fn refusals(&self, job: &Value) -> Vec<Refusal> {
        let stored = match self.store(job) {
            Ok(stored) => stored,
            Err(message) => {
                return vec![Refusal {
                    by: SCHEMA.to_owned(),
                    path: String::new(),
                    message,
                }];
            }
        };
        let version = job["apiVersion"]
            .as_str()
            .and_then(|version| version.rsplit('/').next());
        let rules = version.and_then(|version| self.rules.get(version));
        let violations = rules.map_or_else(Vec::new, |rules| rules.violations(&stored, None));
        violations.into_iter().map(refusal).collect()
    }

    /// Returns the job as it would be stored: with the defaults of the schema, without unknown fields.
    fn store(&self, job: &Value) -> Result<Value, String> {
        let mut object: DynamicObject =
            serde_json::from_value(job.clone()).map_err(|error| error.to_string())?;
        object.metadata.namespace = None;
        let mut resource = self.kind.resource.clone();
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
