//! Checks of a job, each declared once: validation makes them, and the API server by a rule with the same message.

use std::any::Any;
use std::fmt::Debug;

use super::errors::{FieldErrors, joined};
use super::rule::any_with_replicas;
use super::{AnyJob, Framework, Rule, Topology, TrainingJob};

/// A check of a job, with the text of its error.
///
/// A bound of a role needs no check: [`RoleDefinition`](super::RoleDefinition) has it. Nor does a range of a number: declare
/// it for the schema (`#[schemars(range(min = 1))]`), and call
/// [`check_range`](FieldErrors::check_range) in [`TrainingJob::validate`](super::TrainingJob::validate).
///
/// ```
/// # struct FarmJob { spec: FarmSpec }
/// # struct FarmSpec { detached: bool, seeds: i32, groups: Vec<Group> }
/// # struct Group { min: i32, max: i32 }
/// use training_job::Check;
///
/// let checks: Vec<Check<FarmJob>> = vec![
///     Check::any_of(&["Head", "Client"], "must have a Head or a Client", "add a Head with 1 replica")
///         .when(|job: &FarmJob| !job.spec.detached, "!self.?detached.orValue(false)"),
///     Check::at_least("Worker", 2, "must have at least 2 workers if detached", "add a worker")
///         .when(|job: &FarmJob| job.spec.detached, "self.?detached.orValue(false)"),
///     Check::field("seeds", "must be even", "add or remove 1", "self.?seeds.orValue(0) % 2 == 0", |job, _| {
///         job.spec.seeds % 2 == 0
///     }),
///     Check::each("groups", "min", "must be at most max", "lower it, or raise max", "self.min <= self.max", |job| {
///         job.spec.groups.iter().map(|group| group.min <= group.max).collect()
///     }),
/// ];
/// ```
#[derive(Debug)]
pub struct Check<J> {
    test: Test<J>,
    problem: String,
    remedy: String,
    condition: Option<Condition<J>>,
}

#[derive(Debug)]
enum Test<J> {
    /// One of these roles has at least this number of replicas.
    Roles {
        roles: Vec<&'static str>,
        replicas: u32,
    },
    Field {
        field: String,
        cel: String,
        holds: fn(&J, &Topology<'_>) -> bool,
    },
    Job {
        path: &'static str,
        cel: String,
        holds: fn(&J, &Topology<'_>) -> bool,
    },
    Entries {
        list: &'static str,
        field: String,
        cel: String,
        hold: fn(&J) -> Vec<bool>,
    },
    Server(Rule),
}

#[derive(Debug)]
struct Condition<J> {
    applies: fn(&J) -> bool,
    cel: String,
}

impl<J> Check<J> {
    /// Requires a replica of any of `roles`. `problem` and `remedy` form the message if there is none.
    pub fn any_of(
        roles: &'static [&'static str],
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let test = Test::Roles {
            roles: roles.to_vec(),
            replicas: 1,
        };
        Self::new(test, problem.into(), remedy.into())
    }

    /// Requires at least this many replicas of `role`. If it applies to all jobs, a bound of the
    /// [`RoleDefinition`](super::RoleDefinition) is enough; this is for [some](Self::when) jobs.
    pub fn at_least(
        role: &'static str,
        replicas: u32,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let test = Test::Roles {
            roles: vec![role],
            replicas,
        };
        Self::new(test, problem.into(), remedy.into())
    }

    /// Requires that `holds` is true. `field` is the field of the spec that the error names, such as
    /// `elasticPolicy.minReplicas`. `cel` is the same condition in CEL, with the spec as `self`: the API server checks it
    /// when a job is applied. What CEL cannot say belongs into [`TrainingJob::validate`](super::TrainingJob::validate).
    ///
    /// The CEL applies to jobs in which some role has a replica. [`any_replica`](crate::any_replica),
    /// [`any_with_replicas`](crate::any_with_replicas) and [`roles_named`](crate::roles_named) return expressions with a low
    /// cost.
    ///
    /// # Bounds
    /// An API server estimates the maximum cost of each rule, and rejects the definition if it is too high. CEL that
    /// rejects jobs that `holds` accepts prevents jobs that would run. `training_job_testing::check_definition` finds both
    /// without a server.
    pub fn field(
        field: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
        cel: impl Into<String>,
        holds: fn(&J, &Topology<'_>) -> bool,
    ) -> Self {
        let test = Test::Field {
            field: field.into(),
            cel: cel.into(),
            holds,
        };
        Self::new(test, problem.into(), remedy.into())
    }

    /// Requires that `holds` is true, for a rule on the name of the job, or on the name and the spec. `path` is the field that
    /// the error names, such as `metadata.name`. `cel` is the same condition in CEL, with the object as `self`: it has
    /// `self.metadata.name` and `self.spec`, and no labels or annotations. The API server checks it when a job is created,
    /// and not when one is changed, because the status of an older job must stay writable.
    ///
    /// ```
    /// # struct FarmJob { spec: FarmSpec }
    /// # struct FarmSpec { queue: String }
    /// use training_job::Check;
    ///
    /// fn check() -> Check<FarmJob> {
    ///     let cel = "self.metadata.name.size() + self.spec.queue.size() <= 40";
    ///     Check::job("metadata.name", "must be short, with the queue", "shorten it", cel, |job, topology| {
    ///         topology.job.len() + job.spec.queue.len() <= 40
    ///     })
    /// }
    /// ```
    pub fn job(
        path: &'static str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
        cel: impl Into<String>,
        holds: fn(&J, &Topology<'_>) -> bool,
    ) -> Self {
        let cel = cel.into();
        Self::new(Test::Job { path, cel, holds }, problem.into(), remedy.into())
    }

    /// Requires that each entry of the list `spec.<list>` holds. `hold` returns a value for each entry, in the order of the
    /// list. The error names the field `field` of an entry that does not hold. `cel` is the condition of one entry, with
    /// the entry as `self`. The list needs a bound on its size, or the CEL costs too much.
    pub fn each(
        list: &'static str,
        field: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
        cel: impl Into<String>,
        hold: fn(&J) -> Vec<bool>,
    ) -> Self {
        let test = Test::Entries {
            list,
            field: field.into(),
            cel: cel.into(),
            hold,
        };
        Self::new(test, problem.into(), remedy.into())
    }

    fn new(test: Test<J>, problem: String, remedy: String) -> Self {
        Self {
            test,
            problem,
            remedy,
            condition: None,
        }
    }

    /// Restricts the check to jobs for which `applies` is true. `cel` is the same condition in CEL, with the spec as
    /// `self`; with the object as `self` for [`job`](Self::job). For [`each`](Self::each), the API server then does not make the check.
    #[must_use]
    pub fn when(mut self, applies: fn(&J) -> bool, cel: impl Into<String>) -> Self {
        self.condition = Some(Condition {
            applies,
            cel: cel.into(),
        });
        self
    }
}

/// A check of the jobs of one kind.
pub(crate) trait AnyCheck: Debug + Send + Sync {
    /// Adds the errors of a job.
    fn add_errors(&self, job: &dyn AnyJob, topology: &Topology<'_>, errors: &mut FieldErrors);

    /// Returns the check as a rule, unless it depends on an entry and on the spec.
    fn rule(&self, framework: &Framework) -> Option<Rule>;
}

impl<J: TrainingJob> AnyCheck for Check<J> {
    fn add_errors(&self, job: &dyn AnyJob, topology: &Topology<'_>, errors: &mut FieldErrors) {
        let framework = job.framework();
        // A kind checks only its own jobs.
        let Some(job) = (job as &dyn Any).downcast_ref::<J>() else {
            return;
        };
        if self.condition.as_ref().is_some_and(|c| !(c.applies)(job)) {
            return;
        }
        let mut add = |path: String| errors.push(path, &*self.problem, &*self.remedy);
        match &self.test {
            Test::Roles { roles, replicas } => {
                if roles.iter().all(|role| topology.replicas(role) < *replicas) {
                    add(framework.roles_path());
                }
            }
            Test::Field { field, holds, .. } => {
                if !holds(job, topology) {
                    add(format!("spec.{field}"));
                }
            }
            Test::Job { path, holds, .. } => {
                if !holds(job, topology) {
                    add((*path).to_owned());
                }
            }
            Test::Entries {
                list, field, hold, ..
            } => {
                let entries = hold(job).into_iter().enumerate();
                for (n, _) in entries.filter(|(_, holds)| !holds) {
                    add(format!("spec.{list}[{n}].{field}"));
                }
            }
            Test::Server(_) => {}
        }
    }

    fn rule(&self, framework: &Framework) -> Option<Rule> {
        let condition = self.condition.as_ref().map(|condition| &condition.cel);
        let message = joined(&self.problem, &self.remedy);
        let unless = |expression: String| match condition {
            Some(condition) => format!("!({condition}) || {expression}"),
            None => expression,
        };
        Some(match &self.test {
            Test::Roles { roles, replicas } => {
                let rule = Rule::new(unless(has_replicas(framework, roles, *replicas)), message);
                match framework.roles_field {
                    "" => rule,
                    field => rule.at(field),
                }
            }
            Test::Field { field, cel, .. } => Rule::new(unless(cel.clone()), message).at(field),
            Test::Job { path, cel, .. } => Rule::new(unless(cel.clone()), message).at(path).of_new_objects(),
            Test::Entries { list, field, cel, .. } => match condition {
                None => Rule::new(cel.clone(), message).each(list).at(field),
                Some(_) => return None,
            },
            Test::Server(rule) => rule.clone(),
        })
    }
}

/// Returns CEL on the spec that is true if one of these roles has at least this number of replicas.
fn has_replicas(framework: &Framework, roles: &[&str], replicas: u32) -> String {
    let enough = match replicas {
        1 => "!= 0".to_owned(),
        least => format!(">= {least}"),
    };
    let mut is_met = any_with_replicas(framework, roles, &enough);
    if let Some(key) = framework.role_key {
        // The kind may assign one of these roles to an unnamed entry.
        is_met += &format!(" || self.{}.exists(k, !has(k.{key}))", framework.roles_field);
    }
    is_met
}

impl<J> From<Rule> for Check<J> {
    /// A rule for the API server alone, such as one that compares with the old object.
    fn from(rule: Rule) -> Self {
        Self::new(Test::Server(rule), String::new(), String::new())
    }
}
