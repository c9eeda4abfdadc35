//! The kinds of job of a program.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use training_job::TrainingJob;
use training_job::admission::{DefinitionError, definition_of};
use training_job::api::labels::{Keys, OPERATOR_NAME};
use training_job_program::program;

/// The kinds of job of a program, in the order of its help texts.
#[derive(Clone, Debug)]
pub struct Kinds {
    kinds: Vec<Arc<Kind>>,
    pub(crate) unserved: fn(&str, &str, &str) -> Option<Unserved>,
    former_groups: &'static [&'static str],
}

/// The error for an object of an API version that is served no more.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unserved {
    /// The problem of the object's `apiVersion`.
    pub problem: String,
    /// The remedy for its author.
    pub remedy: String,
    /// True if another program runs such objects, so that they may stay as they are.
    pub is_of_another_program: bool,
}

impl Unserved {
    /// Creates the error with this problem and remedy.
    pub fn new(problem: String, remedy: String) -> Self {
        Self {
            problem,
            remedy,
            is_of_another_program: false,
        }
    }

    /// Sets that another program runs such objects. In a directory they are then a note.
    #[must_use]
    pub fn of_another_program(self) -> Self {
        Self {
            is_of_another_program: true,
            ..self
        }
    }
}

impl Default for Kinds {
    fn default() -> Self {
        Self {
            kinds: Vec::new(),
            unserved: |_, _, _| None,
            former_groups: &[],
        }
    }
}

impl Kinds {
    /// Adds the kind of job `J`.
    #[must_use]
    pub fn kind<J: TrainingJob>(mut self) -> Self {
        self.kinds.push(Arc::new(Kind::of::<J>()));
        self
    }

    /// Sets the function that describes objects of versions that were served once. It gets the API version, the kind
    /// and the file of an object, and returns `None` for objects that never were a job of these kinds.
    #[must_use]
    pub fn unserved(mut self, describe: fn(&str, &str, &str) -> Option<Unserved>) -> Self {
        self.unserved = describe;
        self
    }

    /// Sets the API groups of former definitions of these kinds.
    #[must_use]
    pub fn former_groups(mut self, groups: &'static [&'static str]) -> Self {
        self.former_groups = groups;
        self
    }

    /// Returns the kind of this name. An exact match takes precedence over one in another case.
    pub fn named(&self, name: &str) -> Option<&Arc<Kind>> {
        let exact = self.iter().find(|kind| kind.name() == name);
        exact.or_else(|| self.iter().find(|kind| kind.name().eq_ignore_ascii_case(name)))
    }

    /// Returns the kind of this name, plural or plural with group. Case matters only between two kinds of one name.
    pub fn of_argument(&self, name: &str) -> Option<Arc<Kind>> {
        let is_named = |kind: &&Arc<Kind>| {
            let plural = &kind.resource.plural;
            let full = format!("{plural}.{}", kind.resource.group);
            let with_group = format!("{}.{}", kind.name(), kind.resource.group);
            [kind.name(), plural, &full, &with_group]
                .iter()
                .any(|own| own.eq_ignore_ascii_case(name))
        };
        let exact = self.iter().find(|kind| kind.name() == name);
        exact.or_else(|| self.iter().find(is_named)).cloned()
    }

    /// Returns the kinds that an installation has unless others are named.
    pub fn installed_by_default(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.iter()
            .filter(|kind| !program().optional_kinds.contains(&kind.name()))
    }

    /// Returns true if an API group has, or once had, kinds of this program.
    pub fn is_own_group(&self, group: &str) -> bool {
        let mut own = self.iter().map(|kind| kind.resource.group.as_str());
        own.any(|own| own == group) || self.former_groups.contains(&group)
    }

    /// Returns the keys of the labels that an object of a job has.
    pub fn keys_of(&self, object: &Value) -> Keys {
        let controller = &object["metadata"]["labels"][OPERATOR_NAME];
        let kind = self
            .iter()
            .find(|kind| kind.framework.controllers().any(|name| *controller == name));
        kind.map_or(Keys::DEFAULT, |kind| kind.framework.keys())
    }

    /// Returns the kinds for an operator.
    pub fn of_operator(&self) -> Vec<training_job::Kind> {
        self.iter().map(|kind| kind.kind.clone()).collect()
    }
}

impl Deref for Kinds {
    type Target = [Arc<Kind>];

    fn deref(&self) -> &[Arc<Kind>] {
        &self.kinds
    }
}

/// A kind of job with what only commands need.
#[derive(Debug)]
pub struct Kind {
    kind: training_job::Kind,
    definition: OnceLock<Result<CustomResourceDefinition, DefinitionError>>,
}

impl Kind {
    /// Returns the kind of job `J`.
    pub fn of<J: TrainingJob>() -> Self {
        Self {
            kind: training_job::Kind::of::<J>(),
            definition: OnceLock::new(),
        }
    }

    /// Returns the custom resource definition. It is built on first use, because that takes longer than all other work
    /// of a short command.
    ///
    /// # Errors
    /// The declarations of the kind's author are inconsistent.
    pub fn built_definition(&self) -> Result<&CustomResourceDefinition, &DefinitionError> {
        self.definition.get_or_init(|| definition_of(&self.kind)).as_ref()
    }
}

impl Deref for Kind {
    type Target = training_job::Kind;

    fn deref(&self) -> &training_job::Kind {
        &self.kind
    }
}
