//! Error sentences shared by the validation and the rules of the custom resource definition, so that both report the
//! same.
//!
//! The rules use `%s` and `%d` as placeholders for a value.

use std::fmt::Display;

use crate::job::errors::one_of;
use crate::job::{FieldErrors, RoleDefinition};

impl FieldErrors {
    pub(crate) fn too_small(&mut self, path: impl Into<String>, value: impl Display, min: f64) {
        let what = if min == 0.0 { "negative" } else { "too small" };
        self.push(path, format!("{value} is {what}"), format!("use {min} or more"));
    }

    pub(crate) fn too_big(&mut self, path: impl Into<String>, value: impl Display, max: f64) {
        self.push(path, format!("{value} is too big"), format!("use at most {max}"));
    }

    pub(crate) fn no_role(&mut self, path: impl Into<String>, roles: &[&str]) {
        self.push(
            path,
            "it is empty",
            format!("name at least one of {}", roles.join(", ")),
        );
    }

    pub(crate) fn unknown_role(
        &mut self,
        path: impl Into<String>,
        kind: &str,
        role: impl Display,
        known: &[&str],
    ) {
        let role = role.to_string();
        self.push(path, format!("{kind} has no role {role}"), one_of(&role, known));
    }

    pub(crate) fn role_twice(&mut self, path: impl Into<String>, role: impl Display) {
        self.push(
            path,
            format!("{role} is here in two spellings"),
            "keep one of them",
        );
    }

    pub(crate) fn no_replica(&mut self, path: impl Into<String>) {
        self.push(path, "no role has a replica", "give at least one role replicas");
    }

    pub(crate) fn too_few_replicas(&mut self, path: impl Into<String>, kind: &str, role: &RoleDefinition) {
        let (name, min) = (role.name, role.min);
        let (needed, remedy) = match (min, role.max) {
            (1, 1) => (format!("its {name}"), format!("add {name} with 1 replica")),
            (1, _) => (format!("a {name}"), format!("give {name} at least 1 replica")),
            (_, max) if min == max => (
                format!("{min} replicas of {name}"),
                format!("give {name} {min} replicas"),
            ),
            _ => (
                format!("at least {min} replicas of {name}"),
                format!("give {name} at least {min} replicas"),
            ),
        };
        self.push(path, format!("{kind} needs {needed}"), remedy);
    }

    pub(crate) fn bad_job_name(&mut self, path: impl Into<String>, name: &str) {
        self.push(path, format!("{name:?} cannot name a service"), JOB_NAMES);
    }

    /// Adds the error of a name that is too long for a label value. It is the name of a job without services.
    pub(crate) fn long_name(&mut self, path: impl Into<String>, length: impl Display) {
        self.push(
            path,
            format!("it has {length} characters, and may have 63"),
            "use a shorter name",
        );
    }

    pub(crate) fn long_service(
        &mut self,
        path: impl Into<String>,
        length: impl Display,
        excess: impl Display,
    ) {
        self.push(
            path,
            format!("a service's name would have {length} characters, and may have 63"),
            format!("make the job's name {excess} shorter"),
        );
    }

    pub(crate) fn no_container(&mut self, path: impl Into<String>, wanted: &str) {
        let remedy = match wanted {
            "" => "add one".to_owned(),
            name => format!("add one named {name:?}"),
        };
        self.push(path, "there is no container", remedy);
    }

    pub(crate) fn not_among_containers(&mut self, path: impl Into<String>, wanted: &str) {
        self.push(
            path,
            format!("there is no container named {wanted:?}"),
            format!("name the container that runs the training {wanted:?}"),
        );
    }

    pub(crate) fn container_twice(&mut self, path: impl Into<String>, name: &str) {
        self.push(
            path,
            format!("{name:?} is taken"),
            "give each container its own name",
        );
    }

    pub(crate) fn bad_container_name(&mut self, path: impl Into<String>, name: &str) {
        self.push(
            path,
            format!("{name:?} is not a valid container name"),
            "use at most 63 lower-case letters, digits and '-', with a letter or digit at both ends",
        );
    }

    pub(crate) fn no_image(&mut self, path: impl Into<String>) {
        self.push(path, "it is missing", "name the image to run");
    }
}

/// The remedy for an invalid job name.
pub(super) const JOB_NAMES: &str =
    "use at most 63 lower-case letters, digits and '-', beginning with a letter and not ending with '-'";
