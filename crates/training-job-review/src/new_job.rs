//! `new`: prints the manifest of a first job.

use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::{PossibleValue, PossibleValuesParser, ValueParser};
use serde_json::{Map, Value, json};
use training_job::job::RoleSource;
use training_job::offline;
use training_job::{FieldErrors, RoleDefinition, Settings};
use training_job_program::{names_of, program};

use crate::check::assignment::{self, Assignment};
use crate::exit::Failure;
use crate::help::help;
use crate::kinds::{Kind, Kinds};
use crate::{report, write};

const HELP: &str = "\
The job has the roles that its kind needs, each with one replica, and the given number of workers. All containers run
the command, except those that the operator gives one. The manifest is checked as validate does.

Examples:
  {program} new KIND --workers 2 -- python3 train.py > job.yaml
  {program} new KIND --workers 4 --name digits --image registry/digits:1 -- ./train.sh
  {program} new KIND -- python3 train.py | {program} local run -

Exit codes:
  0  the manifest is printed
  2  bad usage, or a value that the job may not have";

/// The name of the role whose number of replicas the user gives, if the kind has it.
const WORKER: &str = "Worker";

/// The image of a job whose author has named none.
pub const IMAGE: &str = "example.com/train:latest";

/// The restarts after which a job fails. Without a limit, a job that always fails never ends.
const BACKOFF_LIMIT: i32 = 3;

/// Print the manifest of a first job.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// The kind of job.
    #[arg(
        value_name = "KIND",
        value_parser = kind_parser(),
        ignore_case = true,
        required_unless_present = "kind_option",
        conflicts_with = "kind_option"
    )]
    kind: Option<String>,
    /// The kind, as the option of `local run`.
    #[arg(long = "kind", hide = true, value_name = "KIND", value_parser = kind_parser(), ignore_case = true)]
    kind_option: Option<String>,
    #[command(flatten)]
    job: JobArgs,
    /// The image of all containers; a local run does not use it.
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    image: String,
    /// Set a field of the job to a YAML value, such as spec.runPolicy.activeDeadlineSeconds=3600; may be repeated.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Assignment>,
    /// The command of the containers.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<String>,
}

/// The arguments that `new` and `local run` have in common.
#[derive(Debug, Default, clap::Args)]
pub struct JobArgs {
    /// The number of workers [default: 2]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: Option<u32>,
    /// The name of the job [default: train]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The version of the kind's API, if it has several [default: the first one]
    #[arg(long, value_name = "VERSION")]
    pub api_version: Option<String>,
}

/// The default number of workers.
const WORKERS: u32 = 2;

/// The default name of a job.
const NAME: &str = "train";

/// Returns a parser for the names of kinds, also without their end: `PyTorch` for `PyTorchJob`.
pub fn kind_parser() -> ValueParser {
    match &program().kind_names[..] {
        // The program has not named its kinds.
        [] => ValueParser::string(),
        names => {
            let values = names.iter().zip(&program().framework_names);
            let values = values.map(|(name, of_framework)| {
                PossibleValue::new(name.as_str())
                    .alias(short(name))
                    .aliases(of_framework)
            });
            PossibleValuesParser::new(values).into()
        }
    }
}

fn short(kind: &str) -> &str {
    kind.strip_suffix("Job").unwrap_or(kind)
}

/// Prints the manifest of a first job, or the list of what can be made.
pub fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let Args {
        kind,
        kind_option,
        job,
        image,
        set,
        command,
    } = arguments;
    let kind = kind.as_deref().or(kind_option.as_deref()).unwrap_or_default();
    let (text, warnings) = text(kinds, kind, job, image, command, set)?;
    write::print(&text)?;
    for warning in warnings.iter() {
        report::warning(&warning.to_string());
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the manifest of a job of this kind in YAML, and its warnings.
///
/// # Errors
/// The program lacks the kind, or the job may not have a value.
pub fn text(
    kinds: &Kinds,
    kind: &str,
    job: &JobArgs,
    image: &str,
    command: &[String],
    set: &[Assignment],
) -> Result<(String, FieldErrors), Failure> {
    let named = kinds.named(kind).or_else(|| {
        let is_named = |known: &&Arc<Kind>| {
            let mut names = names_of(&known.framework);
            names.push(short(known.name()));
            names.iter().any(|name| name.eq_ignore_ascii_case(kind))
        };
        kinds.iter().find(is_named)
    });
    let kind = named.ok_or_else(|| {
        let known: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
        Failure::new(kind, format!("unknown kind; use one of {}", known.join(", ")))
    })?;
    let first = FirstJob {
        job,
        api_version: api_version(kind, job.api_version.as_deref())?,
        image,
        command,
    };
    let (job, warnings) = manifest(kind, &first, set).map_err(|errors| Failure::new(kind.name(), errors))?;
    let text = write::documents(&[job]).map_err(|error| Failure::new("output", error))?;
    Ok((text, warnings))
}

/// The values of a job that its author gives.
struct FirstJob<'a> {
    job: &'a JobArgs,
    api_version: String,
    image: &'a str,
    command: &'a [String],
}

/// Returns the API version of a job for which `version` is requested.
///
/// # Errors
/// The kind does not have the version.
fn api_version(kind: &Kind, version: Option<&str>) -> Result<String, Failure> {
    let stored = &kind.resource.api_version;
    let Some(version) = version else {
        return Ok(stored.clone());
    };
    let (group, own) = stored.split_once('/').unwrap_or(("", stored));
    let variants = kind.framework.variants.iter();
    let mut known = vec![own];
    known.extend(variants.filter_map(|variant| variant.version));
    if !known.contains(&version) {
        let problem = format!(
            "the kind has no version {version}; use one of {}",
            known.join(", ")
        );
        return Err(Failure::new(kind.name(), problem));
    }
    Ok(format!("{group}/{version}"))
}

/// Returns the manifest and its warnings. The roles do not depend on `set`: they are those that the kind must have, or
/// all before the workers if such a job has errors or warnings. A kind that needs a field of `set` gets the first
/// roles that are valid with it.
fn manifest(
    kind: &Kind,
    first: &FirstJob<'_>,
    set: &[Assignment],
) -> Result<(Value, FieldErrors), FieldErrors> {
    let mut rejected: Vec<FieldErrors> = Vec::new();
    let mut with_warnings = None;
    let changed = |shape: &Value| {
        let mut job = shape.clone();
        assignment::apply_all(set, &mut job)?;
        let warnings = offline::check(kind, &job)?.warnings;
        Ok::<_, FieldErrors>((job, warnings))
    };
    let shapes = shapes(kind, first);
    let is_clean =
        |shape: &&Value| offline::check(kind, shape).is_ok_and(|checked| checked.warnings.is_empty());
    if let Some(shape) = shapes.iter().find(is_clean) {
        return changed(shape);
    }
    for shape in &shapes {
        match changed(shape) {
            Ok((job, warnings)) if warnings.is_empty() => return Ok((job, warnings)),
            Ok(job) => with_warnings = with_warnings.or(Some(job)),
            Err(errors) => rejected.push(errors),
        }
    }
    // Fewer errors are nearer to a job that the user can have.
    let errors = rejected.into_iter().min_by_key(|errors| errors.iter().count());
    with_warnings.ok_or_else(|| errors.unwrap_or_default())
}

/// Returns the jobs that a kind may have, the smallest first.
fn shapes(kind: &Kind, first: &FirstJob<'_>) -> Vec<Value> {
    let roles = kind.framework.roles;
    let worker = roles
        .iter()
        .position(|role| role.name.eq_ignore_ascii_case(WORKER));
    let example = kind.example();
    let needs = |n: usize| roles[n].min > 0 || has_entry(&example, kind, &roles[n]);
    // Else the last role that may have several replicas, of those that each job has if there is one.
    let several = |n: &usize| roles[*n].max > 1;
    let last = || (0..roles.len()).rev().filter(several);
    let worker = worker.or_else(|| last().find(|n| needs(*n)).or_else(|| last().next()));
    let worker = worker.unwrap_or(roles.len().saturating_sub(1));
    let required = |n: usize| n == worker || needs(n);
    let leading = |n: usize| n <= worker || needs(n);
    let mut shapes = Vec::new();
    // Kinds of former operators have no runPolicy, and the restart policy elsewhere.
    for has_policy in [true, false] {
        for is_wanted in [&required as &dyn Fn(usize) -> bool, &leading] {
            let wanted = roles.iter().enumerate().filter(|(n, _)| is_wanted(*n));
            let replicas = |n: usize, role: &RoleDefinition| match n == worker {
                true => (first.job.workers.unwrap_or(WORKERS), first.job.workers.is_some()),
                false => (role.min.max(1), false),
            };
            let wanted: Vec<_> = wanted.map(|(n, role)| (role, replicas(n, role))).collect();
            shapes.push(complete_job(kind, &wanted, first, has_policy));
        }
    }
    shapes
}

/// Returns a job whose containers have the command, except those to which the operator gives one. Each role has its number
/// of replicas, and true if the user gave the number.
fn complete_job(
    kind: &Kind,
    roles: &[(&RoleDefinition, (u32, bool))],
    first: &FirstJob<'_>,
    has_policy: bool,
) -> Value {
    let bare = job(kind, roles, first, has_policy, |_| false);
    let label = kind.framework.keys().replica_type();
    let objects = offline::render(kind, &bare, &Settings::default()).unwrap_or_default();
    let pods = objects.iter().filter(|object| object["kind"] == "Pod");
    let has_command = |pod: &&Value| pod["spec"]["containers"][0]["command"].is_array();
    let served = pods
        .filter(has_command)
        .filter_map(|pod| pod["metadata"]["labels"][&label].as_str());
    let served: Vec<&str> = served.collect();
    let needs_command = |role: &str| !served.iter().any(|served| served.eq_ignore_ascii_case(role));
    job(kind, roles, first, has_policy, needs_command)
}

fn job(
    kind: &Kind,
    roles: &[(&RoleDefinition, (u32, bool))],
    first: &FirstJob<'_>,
    has_policy: bool,
    needs_command: impl Fn(&str) -> bool,
) -> Value {
    let framework = &kind.framework;
    let mut spec = Some(kind.example())
        .filter(Value::is_object)
        .unwrap_or_else(|| json!({}));
    if has_policy {
        complete(&mut spec["runPolicy"], json!({"backoffLimit": BACKOFF_LIMIT}));
    }
    for (role, (replicas, is_given)) in roles {
        let container = match role.container.unwrap_or(framework.main_container) {
            "" => framework.name,
            name => name,
        };
        let mut container = json!({"name": container, "image": first.image});
        if needs_command(role.name) {
            container["command"] = json!(first.command);
        }
        let template = json!({"spec": {"containers": [container]}});
        let mut entry = json!({role.replicas_field: replicas});
        match role.template_from {
            Some(field) => complete(&mut spec[field], template),
            None => entry["template"] = template,
        }
        if has_policy && role.template_from.is_none() {
            entry["restartPolicy"] = json!("OnFailure");
        }
        for of_example in entries(&mut spec, kind, role) {
            complete(of_example, entry.clone());
            if *is_given {
                of_example[role.replicas_field] = json!(replicas);
            }
        }
    }
    json!({
        "apiVersion": first.api_version,
        "kind": kind.name(),
        "metadata": {"name": first.job.name.as_deref().unwrap_or(NAME)},
        "spec": spec,
    })
}

/// The place of a role's replica specs in a spec.
enum Place {
    Field(&'static str),
    Map(&'static str),
    List(&'static str, &'static str),
}

fn place(kind: &Kind, role: &RoleDefinition) -> Option<Place> {
    let framework = &kind.framework;
    match (role.source, framework.role_key) {
        (RoleSource::Entry, None) => Some(Place::Map(framework.roles_field)),
        (RoleSource::Entry, Some(key)) => Some(Place::List(framework.roles_field, key)),
        (RoleSource::Field(field), _) => Some(Place::Field(field)),
        (RoleSource::Map(field), _) => Some(Place::Map(field)),
        (RoleSource::List { field, key }, _) => Some(Place::List(field, key)),
        _ => None,
    }
}

/// True if the example of a kind has the role.
fn has_entry(example: &Value, kind: &Kind, role: &RoleDefinition) -> bool {
    let is_of_role = |name: &str| role.source.is_open() || name == role.name;
    match place(kind, role) {
        Some(Place::Field(field)) => !example[field].is_null(),
        Some(Place::Map(field)) => {
            let mut names = example[field].as_object().into_iter().flat_map(Map::keys);
            names.any(|name| is_of_role(name))
        }
        Some(Place::List(field, key)) => {
            let mut items = example[field].as_array().into_iter().flatten();
            items.any(|item| item[key].as_str().is_some_and(is_of_role))
        }
        None => false,
    }
}

/// Returns the replica specs of a role in a spec, and adds one if there is none. All entries of a field whose roles users
/// name are of the same class.
fn entries<'s>(spec: &'s mut Value, kind: &Kind, role: &RoleDefinition) -> Vec<&'s mut Value> {
    let is_added = !has_entry(spec, kind, role);
    let is_open = role.source.is_open();
    // The names that users choose are parts of names of services.
    let name = if is_open {
        role.slug()
    } else {
        role.name.to_owned()
    };
    match place(kind, role) {
        Some(Place::Field(field)) => vec![&mut spec[field]],
        Some(Place::Map(field)) => {
            if is_added {
                complete(&mut spec[field], json!({&*name: {}}));
            }
            let all = spec[field].as_object_mut().into_iter().flatten();
            let of_role = all.filter(|(other, _)| is_open || **other == name);
            of_role.map(|(_, entry)| entry).collect()
        }
        Some(Place::List(field, key)) => {
            complete(&mut spec[field], json!([]));
            let mut items: Vec<&mut Value> = Vec::new();
            if let Value::Array(all) = &mut spec[field] {
                all.extend(is_added.then(|| json!({key: name})));
                items.extend(all.iter_mut().filter(|item| is_open || item[key] == *name));
            }
            items
        }
        None => Vec::new(),
    }
}

/// Adds the members of `more` that `value` lacks.
fn complete(value: &mut Value, more: Value) {
    match (value, more) {
        (Value::Object(members), Value::Object(more)) => {
            for (name, member) in more {
                complete(members.entry(name).or_insert(Value::Null), member);
            }
        }
        (value @ Value::Null, more) => *value = more,
        _ => {}
    }
}

#[cfg(test)]
mod tests;
