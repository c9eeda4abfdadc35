//! Roles that a job must have: declared once, checked by validation and by the API server.

use super::rule::any_with_replicas;
use super::{Framework, Rule, Topology};

/// A requirement that one of some roles has a replica, or that a role has a minimum number.
///
/// To require N replicas of one role in every job, a bound of the [`RoleDefinition`](super::RoleDefinition) is
/// enough.
///
/// ```
/// # struct FarmJob { spec: FarmSpec }
/// # struct FarmSpec { detached: bool }
/// use training_job::Requirement;
///
/// let requirements: Vec<Requirement<FarmJob>> = vec![
///     Requirement::any_of(&["Head", "Client"], "must have a Head or a Client", "add a Head with 1 replica")
///         .when(|job| !job.spec.detached, "!self.?detached.orValue(false)"),
///     Requirement::at_least("Worker", 2, "must have at least 2 workers if detached", "add a worker")
///         .when(|job| job.spec.detached, "self.?detached.orValue(false)"),
/// ];
/// ```
#[derive(Debug)]
pub struct Requirement<J> {
    roles: Vec<&'static str>,
    replicas: u32,
    problem: String,
    remedy: String,
    condition: Option<Condition<J>>,
}

#[derive(Debug)]
struct Condition<J> {
    applies: fn(&J) -> bool,
    cel: String,
}

impl<J> Requirement<J> {
    /// Requires a replica of any of `roles`. `problem` and `remedy` form the message if there is none.
    pub fn any_of(
        roles: &'static [&'static str],
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            roles: roles.to_vec(),
            replicas: 1,
            problem: problem.into(),
            remedy: remedy.into(),
            condition: None,
        }
    }

    /// Requires at least this many replicas of `role`. If it applies to all jobs, a bound of the
    /// [`RoleDefinition`](super::RoleDefinition) is enough; this is for [some](Self::when) jobs.
    pub fn at_least(
        role: &'static str,
        replicas: u32,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            roles: vec![role],
            replicas,
            ..Self::any_of(&[], problem, remedy)
        }
    }

    /// Restricts the requirement to jobs for which `applies` is true. `cel` is the same condition in CEL, with the
    /// spec as `self`.
    #[must_use]
    pub fn when(mut self, applies: fn(&J) -> bool, cel: impl Into<String>) -> Self {
        self.condition = Some(Condition {
            applies,
            cel: cel.into(),
        });
        self
    }

    /// Returns problem and remedy if a job does not meet the requirement.
    pub(crate) fn violation(&self, job: &J, topology: &Topology<'_>) -> Option<(&str, &str)> {
        let applies = self.condition.as_ref().is_none_or(|c| (c.applies)(job));
        let has_enough = |role: &&str| topology.replicas(role) >= self.replicas;
        let is_met = self.roles.iter().any(has_enough);
        (applies && !is_met).then_some((&*self.problem, &*self.remedy))
    }

    /// Returns the requirement as a rule on the spec.
    pub(crate) fn rule(&self, framework: &Framework) -> Rule {
        let enough = match self.replicas {
            1 => "!= 0".to_owned(),
            least => format!(">= {least}"),
        };
        let mut is_met = any_with_replicas(framework, &self.roles, &enough);
        if let Some(key) = framework.role_key {
            // The kind may assign one of these roles to an unnamed entry.
            is_met += &format!(" || self.{}.exists(k, !has(k.{key}))", framework.roles_field);
        }
        let expression = match &self.condition {
            Some(condition) => format!("!({}) || {is_met}", condition.cel),
            None => is_met,
        };
        let message = format!("{}; {}", self.problem, self.remedy);
        let rule = Rule::new(expression, message);
        match framework.roles_field {
            "" => rule,
            field => rule.at(field),
        }
    }
}
