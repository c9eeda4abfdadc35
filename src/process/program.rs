//! What a program is called: its lease, its environment variables and its help follow from that, so that two operators
//! built on this library do not compete for one lease.

use std::path::Path;
use std::sync::OnceLock;

use crate::job::{SettingDefinition, TrainingJob};

/// The program that an operator runs in.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name, such as `farm-operator`. Flags can be set by variables such as `FARM_OPERATOR_LEADER_ELECT`.
    pub name: String,
    /// The name of the Lease by which its processes elect a leader, unless a flag says otherwise.
    pub lease: String,
    /// A kind of job that its help names as an example.
    pub example_kind: Option<String>,
    /// The settings of its kinds; each is a flag of its command line.
    pub settings: Vec<SettingDefinition>,
}

static PROGRAM: OnceLock<Program> = OnceLock::new();

impl Program {
    /// A program of this name, with the lease `<name>-leader`.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let in_lease = |c: char| match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') => c,
            _ => '-',
        };
        let lease: String = name.chars().map(in_lease).collect();
        Self {
            lease: format!("{}-leader", lease.trim_matches(['-', '.'])),
            name,
            example_kind: None,
            settings: Vec::new(),
        }
    }

    /// Names a kind that the program runs: its settings become flags, and the first kind is the example in help texts.
    #[must_use]
    pub fn kind<J: TrainingJob>(mut self) -> Self {
        self.settings.extend_from_slice(J::FRAMEWORK.settings);
        self.example_kind.get_or_insert_with(|| J::kind(&()).into_owned());
        self
    }

    /// Makes this the program's name. To be called before the command line is read; without it the name is that of the
    /// executable. Only the first call in a process counts.
    pub fn set(self) {
        let _ = PROGRAM.set(self);
    }

    /// The variable that sets the flag whose variable ends with `flag`.
    fn variable(&self, flag: &str) -> String {
        let in_name = |c: char| match c.to_ascii_uppercase() {
            c if c.is_ascii_alphanumeric() => c,
            _ => '_',
        };
        let prefix: String = self.name.chars().map(in_name).collect();
        format!("{prefix}_{flag}")
    }
}

/// This program.
pub(super) fn program() -> &'static Program {
    PROGRAM.get_or_init(|| {
        let executable = std::env::args_os().next().unwrap_or_default();
        let name = Path::new(&executable).file_stem().unwrap_or_default();
        match name.to_string_lossy() {
            name if name.is_empty() => Program::new("operator"),
            name => Program::new(name),
        }
    })
}

/// The variable that sets a flag, such as `FARM_OPERATOR_LEADER_ELECT` for `LEADER_ELECT`.
pub(super) fn variable(flag: &str) -> &'static str {
    // A command line is built once or twice in a process.
    program().variable(flag).leak()
}

/// The help of `--enable-scheme`.
pub(super) fn enable_scheme_help() -> String {
    let example = program().example_kind.as_ref();
    let example = example
        .map(|kind| format!(", such as {kind}"))
        .unwrap_or_default();
    format!("A kind of job to run{example}; can be repeated [default: all kinds]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_and_variables_follow_from_the_name() {
        let program = Program::new("Farm_operator2");
        assert_eq!(program.lease, "farm-operator2-leader");
        assert_eq!(program.variable("LEADER_ELECT"), "FARM_OPERATOR2_LEADER_ELECT");
    }
}
