//! The program of an operator: its name, which determines its lease, its environment variables and its help, the flags of
//! its kinds' settings, and the permissions that it needs.
//!
//! Two operators built on this library do not compete for one lease, because their names differ.

mod rules;
mod settings;

use std::path::Path;
use std::sync::OnceLock;

use training_job::job::SettingDefinition;
use training_job::{Framework, Kind};

pub use rules::{grant_command, grant_logs_command, is_on_secrets, rule_on_logs, rules};
pub use settings::SettingFlags;

/// The program that runs an operator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Program {
    /// The name, such as `farm-operator`. Flags can be set by variables such as `FARM_OPERATOR_LEADER_ELECT`, and metrics
    /// have names such as `farm_operator_jobs_created_total`.
    pub name: String,
    /// The version, for `--version` and the labels of its definitions. `None` for a program without versions.
    pub version: Option<&'static str>,
    /// The name of the Lease for the election of a leader among its processes; a flag can override it.
    pub lease: String,
    /// The names of its kinds of job, for help texts and completions.
    pub kind_names: Vec<String>,
    /// The names of the framework of each kind, in the order of `kind_names`, for command lines.
    pub framework_names: Vec<Vec<&'static str>>,
    /// The settings of its kinds. Each setting is a flag on the command line.
    pub settings: Vec<SettingDefinition>,
    /// The namespace of an installation, unless another is given; by default the name.
    pub namespace: String,
    /// The kinds that every command leaves out unless they are named: `run` by `--enable-scheme`, `crd`, `rbac`,
    /// `manifests` and `local cluster` by `--kind`. `doctor` expects them only if a Deployment runs them.
    pub optional_kinds: &'static [&'static str],
}

static PROGRAM: OnceLock<Program> = OnceLock::new();

impl Program {
    /// Creates a program with this name and the lease `<name>-leader`.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let in_lease = |c: char| match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') => c,
            _ => '-',
        };
        let lease: String = name.chars().map(in_lease).collect();
        Self {
            lease: format!("{}-leader", lease.trim_matches(['-', '.'])),
            namespace: name.clone(),
            name,
            version: None,
            kind_names: Vec::new(),
            framework_names: Vec::new(),
            settings: Vec::new(),
            optional_kinds: &[],
        }
    }

    /// Adds the kinds that the program runs. Their settings become flags, and the first kind is the example in help
    /// texts.
    #[must_use]
    pub fn kinds<'a>(mut self, kinds: impl IntoIterator<Item = &'a Kind>) -> Self {
        for kind in kinds {
            self.settings.extend_from_slice(kind.framework.settings);
            self.kind_names.push(kind.name().to_owned());
            self.framework_names.push(names_of(&kind.framework));
        }
        self
    }

    /// Makes this the program of the process. It must be called before the command line is parsed; otherwise the name
    /// of the executable is used. Only the first call in a process has an effect.
    pub fn install(self) {
        let _ = PROGRAM.set(self);
    }

    /// Returns the environment variable of a flag. `flag` is the end of its name.
    fn variable(&self, flag: &str) -> String {
        format!("{}_{flag}", self.metrics_prefix().to_ascii_uppercase())
    }

    /// Returns the prefix of the names of its metrics, such as `farm_operator`.
    pub fn metrics_prefix(&self) -> String {
        let in_name = |c: char| match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => c,
            _ => '_',
        };
        self.name.chars().map(in_name).collect()
    }
}

/// Returns the names by which command lines accept the kind of this framework.
pub fn names_of(framework: &Framework) -> Vec<&'static str> {
    [&[framework.name], framework.aliases].concat()
}

/// Returns the program of this process: the one that was [installed](Program::install), or else one with the name of the
/// executable.
pub fn program() -> &'static Program {
    PROGRAM.get_or_init(|| {
        let executable = std::env::args_os().next().unwrap_or_default();
        let name = Path::new(&executable).file_stem().unwrap_or_default();
        match name.to_string_lossy() {
            name if name.is_empty() => Program::new("operator"),
            name => Program::new(name),
        }
    })
}

/// Returns the environment variable of a flag, such as `FARM_OPERATOR_LEADER_ELECT` for `LEADER_ELECT`.
pub fn variable(flag: &str) -> &'static str {
    // The leak is small, because a command line is built once or twice in a process.
    program().variable(flag).leak()
}

/// Returns `all kinds but A, B and C` for a help text, or `all kinds` if none is left out.
pub fn all_kinds_but(left_out: &[&str]) -> String {
    match left_out {
        [] => "all kinds".to_owned(),
        names => format!("all kinds but {}", listed(names)),
    }
}

/// Returns names as a part of a sentence: `A, B and C`; empty if there are none.
pub fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match &names[..] {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        names => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_out_kinds_are_listed() {
        assert_eq!(all_kinds_but(&[]), "all kinds");
        assert_eq!(all_kinds_but(&["A"]), "all kinds but A");
        assert_eq!(all_kinds_but(&["A", "B", "C"]), "all kinds but A, B and C");
    }

    #[test]
    fn lease_and_variables_follow_from_the_name() {
        let program = Program::new("Farm_operator2");
        assert_eq!(program.lease, "farm-operator2-leader");
        assert_eq!(program.metrics_prefix(), "farm_operator2");
        assert_eq!(program.variable("LEADER_ELECT"), "FARM_OPERATOR2_LEADER_ELECT");
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
