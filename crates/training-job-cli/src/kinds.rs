//! The kinds of job of a program, with what only its own commands need.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::api::rbac::v1::PolicyRule;
use local_node::AdjustEnv;
use training_job::TrainingJob;
use training_job_program::rules;
use training_job_review::Kind;

use crate::installation::Installation;

/// The kinds of job of a program, in the order of its help texts.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    reviewed: training_job_review::Kinds,
    /// By the name of the kind's controller.
    pub(crate) adjust_env: BTreeMap<&'static str, AdjustEnv>,
    pub(crate) installation: Installation,
}

impl Kinds {
    /// Adds the kind of job `J`.
    #[must_use]
    pub fn kind<J: TrainingJob>(self) -> Self {
        self.kind_with::<J>(|_, _| {})
    }

    /// Adds the kind of job `J`. `adjust_env` changes the environment of replicas that run as processes of one machine.
    #[must_use]
    pub fn kind_with<J: TrainingJob>(mut self, adjust_env: AdjustEnv) -> Self {
        self.reviewed = self.reviewed.kind::<J>();
        self.adjust_env::<J>(adjust_env)
    }

    /// Sets the function that changes the environment of replicas of the kind `J` that run as processes of one machine.
    #[must_use]
    pub fn adjust_env<J: TrainingJob>(mut self, adjust_env: AdjustEnv) -> Self {
        self.adjust_env.insert(J::FRAMEWORK.controller, adjust_env);
        self
    }

    /// Sets the expectations of `doctor` in a cluster.
    #[must_use]
    pub fn installation(mut self, installation: Installation) -> Self {
        self.installation = installation;
        self
    }

    /// Returns the permissions that an operator needs for some of these kinds.
    pub(crate) fn rules_of<'k>(&self, kinds: impl IntoIterator<Item = &'k Arc<Kind>>) -> Vec<PolicyRule> {
        let kinds: Vec<training_job::Kind> = kinds.into_iter().map(|kind| (***kind).clone()).collect();
        let more = kinds
            .iter()
            .flat_map(|kind| (self.installation.more_rules)(kind.name()));
        rules(&kinds).into_iter().chain(more).collect()
    }
}

/// Kinds that no local process needs another environment for, unless [`Kinds::adjust_env`] sets it.
impl From<training_job_review::Kinds> for Kinds {
    fn from(reviewed: training_job_review::Kinds) -> Self {
        Self {
            reviewed,
            ..Self::default()
        }
    }
}

impl Deref for Kinds {
    type Target = training_job_review::Kinds;

    fn deref(&self) -> &Self::Target {
        &self.reviewed
    }
}
