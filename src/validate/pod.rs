//! Checks pod templates by the rules with which every API server refuses a pod (`ValidatePodCreate` in
//! `k8s.io/kubernetes/pkg/apis/core/validation`, 1.30 to 1.35).
//!
//! The rules are those of a [table]. They apply to manifests only: an admission webhook may repair the pods of a stored
//! job, so an operator leaves the decision to the API server. A rule that only some versions have is a warning, unless
//! the others do not have the field.

mod checks;
mod resources;
mod systems;
// One rule is one row.
#[rustfmt::skip]
mod table;

use std::collections::BTreeSet;

use kube_schema::FieldPath;
use serde_json::{Value, json};

use super::roles;
use super::texts::MUST_BE_SET;
use crate::job::{AnyJob, FieldErrors, Role};

/// A test of the values at a path, such as `containers|initContainers[].ports[].hostPort`.
///
/// `|` separates the names of alternative members, and `[]` stands for each item of a list. The empty path is the value
/// itself.
struct Rule(&'static str, Test);

/// A test of one value, with the problem and the remedy of its error where it needs them. Only [`Set`](Test::Set) and
/// [`By`](Test::By) apply to a value that is not set.
#[derive(Clone, Copy)]
enum Test {
    /// One of these words, or empty.
    Word(&'static [&'static str]),
    /// A number from the first to the second.
    Number(i64, i64),
    /// Neither missing nor empty. The text is the remedy.
    Set(&'static str),
    /// Missing. The texts are the problem and the remedy.
    Unset(&'static str, &'static str),
    /// Empty, or a text for which the function is true.
    Text(fn(&str) -> bool, &'static str, &'static str),
    /// Not a value for which the function is true.
    Not(fn(&Value) -> bool, &'static str, &'static str),
    /// As `Not`, but a warning.
    Doubtful(fn(&Value) -> bool, &'static str, &'static str),
    /// An object with exactly one of these members.
    One(&'static [&'static str]),
    /// A list whose items differ in this member.
    Unique(&'static str),
    /// A list with at most this number of items.
    Most(usize),
    /// A value whose parts fit these rules.
    Rules(&'static [Rule]),
    /// A value in which the function finds nothing.
    By(fn(&Value, FieldPath<'_>, &mut Found<'_>)),
}

/// The errors and warnings of the templates.
pub(super) struct Found<'f> {
    pub(super) errors: &'f mut FieldErrors,
    pub(super) warnings: &'f mut FieldErrors,
}

/// Checks the templates of all roles of a job.
pub(super) fn check(job: &dyn AnyJob, found: &mut Found<'_>) {
    // Errors of the roles themselves are those of validation.
    for role in &roles::check(job, &mut FieldErrors::default()) {
        let path = role.template_path();
        if let Some(value) = template_of(job, role) {
            apply(table::TEMPLATE, &value, FieldPath::At(&path), found);
        }
    }
}

/// Returns a role's template with the ports that the operator adds to the framework's container.
fn template_of(job: &dyn AnyJob, role: &Role<'_>) -> Option<Value> {
    let mut value = serde_json::to_value(role.template()).ok()?;
    let container = role
        .container
        .and_then(|n| value["spec"]["containers"].get_mut(n));
    if let Some(container) = container.and_then(Value::as_object_mut) {
        let ports = container.entry("ports").or_insert_with(|| json!([]));
        for (name, number) in job.framework().ports_of(role.definition) {
            if let Some(ports) = ports
                .as_array_mut()
                .filter(|p| p.iter().all(|port| port["name"] != name))
            {
                ports.push(json!({"name": name, "containerPort": number}));
            }
        }
    }
    Some(value)
}

fn apply(rules: &[Rule], value: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    for Rule(path, test) in rules {
        visit(value, at, path, &mut |value, at| test.run(value, at, found));
    }
}

/// Calls `found` with each value at `path` in `value`, which is at `at`, and with null for a missing last member.
fn visit(value: &Value, at: FieldPath<'_>, path: &str, found: &mut dyn FnMut(&Value, FieldPath<'_>)) {
    if path.is_empty() {
        return found(value, at);
    }
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let (names, is_list) = match step.strip_suffix("[]") {
        Some(names) => (names, true),
        None => (step, false),
    };
    for name in names.split('|').filter(|_| value.is_object()) {
        let (at, member) = (at.member(name), &value[name]);
        if is_list {
            for (n, item) in member.as_array().into_iter().flatten().enumerate() {
                visit(item, at.item(n), rest, found);
            }
        } else {
            visit(member, at, rest, found);
        }
    }
}

impl Test {
    fn run(&self, value: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
        let is_unset = value.is_null() || value.as_str() == Some("");
        let errors = &mut *found.errors;
        match *self {
            Self::By(check) => check(value, at, found),
            Self::Set(remedy) if is_unset || value.as_array().is_some_and(Vec::is_empty) => {
                errors.push(at, MUST_BE_SET, remedy);
            }
            _ if is_unset => {}
            Self::Set(_) => {}
            Self::Word(words) => {
                if let Some(word) = value.as_str().filter(|word| !words.contains(word)) {
                    errors.unknown_word(at, word, words);
                }
            }
            Self::Number(min, max) => errors.check_range(at, value.as_i64(), min..=max),
            Self::Unset(problem, remedy) => {
                let is_empty = value.as_array().is_some_and(Vec::is_empty);
                if !is_empty {
                    errors.push(at, problem, remedy);
                }
            }
            Self::Text(is_valid, problem, remedy) => {
                if value.as_str().is_some_and(|text| !is_valid(text)) {
                    errors.push(at, with_value(problem, value), remedy);
                }
            }
            Self::Not(is_wrong, problem, remedy) => {
                if is_wrong(value) {
                    errors.push(at, with_value(problem, value), remedy);
                }
            }
            Self::Doubtful(is_doubtful, problem, remedy) => {
                if is_doubtful(value) {
                    found.warnings.push(at, with_value(problem, value), remedy);
                }
            }
            Self::One(members) => {
                let of_value: Vec<_> = members
                    .iter()
                    .copied()
                    .filter(|name| !value[name].is_null())
                    .collect();
                let all = members.join(", ");
                match &of_value[..] {
                    [] => errors.push(at, format!("must have one of {all}"), "set one of them"),
                    [_] => {}
                    some => {
                        let problem = format!("must have only one of {all} (has {})", some.join(" and "));
                        errors.push(at, problem, "keep one of them");
                    }
                }
            }
            Self::Unique(member) => {
                let mut seen = BTreeSet::new();
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    if let Some(text) = item[member].as_str().filter(|text| !seen.insert(*text)) {
                        let problem = format!("duplicate {member} {text:?}");
                        errors.push(
                            at.item(n).member(member),
                            problem,
                            "use another one, or remove one of them",
                        );
                    }
                }
            }
            Self::Most(max) => {
                if let Some(items) = value.as_array().filter(|items| items.len() > max) {
                    let problem = format!("must have at most {max} items (has {})", items.len());
                    errors.push(at, problem, "");
                }
            }
            Self::Rules(rules) => apply(rules, value, at, found),
        }
    }
}

/// Returns a problem with the text or number that has it.
fn with_value(problem: &str, value: &Value) -> String {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => format!("{problem} (is {value})"),
        _ => problem.to_owned(),
    }
}
