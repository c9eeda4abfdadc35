//! Error sentences shared by the validation and the rules of the custom resource definition, so that both report the
//! same.
//!
//! The rules use `%s` and `%d` as placeholders for a value.

use std::fmt::Display;

use kube_schema::names::MAX_LABEL_CHARS;

use crate::job::errors::one_of;
use crate::job::{FieldErrors, RoleDefinition};

impl FieldErrors {
    pub(crate) fn too_small(&mut self, path: impl Into<String>, value: impl Display, min: f64) {
        self.push(path, format!("must be at least {min} (is {value})"), "");
    }

    pub(crate) fn too_big(&mut self, path: impl Into<String>, value: impl Display, max: f64) {
        self.push(path, format!("must be at most {max} (is {value})"), "");
    }

    pub(crate) fn no_role(&mut self, path: impl Into<String>, roles: &[&str]) {
        self.push(
            path,
            "must have at least one role",
            format!("add one of {}", roles.join(", ")),
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
            format!("duplicate role {role} (case is ignored)"),
            "keep one of them",
        );
    }

    /// Reports a name that users chose for two roles.
    pub(crate) fn role_name_taken(&mut self, path: impl Into<String>, role: impl Display) {
        self.push(
            path,
            format!("another role of the job has the name {role} (case is ignored)"),
            "choose another name",
        );
    }

    pub(crate) fn bad_role_name(&mut self, path: impl Into<String>, name: impl Display) {
        self.push(
            path,
            format!("must be a valid name of a role (is {name})"),
            "use lower-case letters, digits and '-', starting with a letter",
        );
    }

    pub(crate) fn no_replica(&mut self, path: impl Into<String>) {
        self.push(
            path,
            "must have at least one replica",
            "set the replicas of a role to 1 or more",
        );
    }

    pub(crate) fn too_few_replicas(&mut self, path: impl Into<String>, role: &RoleDefinition) {
        let (name, min) = (role.name, role.min);
        let (number, remedy) = match (min, role.max) {
            (1, 1) => (
                "exactly 1 replica".to_owned(),
                format!("add {name} with 1 replica"),
            ),
            (1, _) => (
                "at least 1 replica".to_owned(),
                format!("set the replicas of {name} to 1 or more"),
            ),
            (_, max) if min == max => (
                format!("exactly {min} replicas"),
                format!("set the replicas of {name} to {min}"),
            ),
            _ => (
                format!("at least {min} replicas"),
                format!("set the replicas of {name} to {min} or more"),
            ),
        };
        self.push(path, format!("must have {number} of {name}"), remedy);
    }

    pub(crate) fn bad_job_name(&mut self, path: impl Into<String>, name: &str) {
        self.push(
            path,
            format!("must be a valid service name (is {name:?})"),
            job_names(),
        );
    }

    /// Adds the error of the name of a job without services, which must be an object's name.
    pub(crate) fn bad_object_name(&mut self, path: impl Into<String>, name: &str) {
        self.push(
            path,
            format!("must be a valid name of an object (is {name:?})"),
            format!(
                "use at most {MAX_LABEL_CHARS} lower-case letters, digits, '-' and '.', with a letter or digit at both \
                 ends of each part, such as my-job"
            ),
        );
    }

    /// Adds the error of a name that is too long for a label value. It is the name of a job without services.
    pub(crate) fn long_name(&mut self, path: impl Into<String>, length: impl Display) {
        self.push(
            path,
            format!("must be at most {MAX_LABEL_CHARS} characters (has {length})"),
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
            format!(
                "service names must be at most {MAX_LABEL_CHARS} characters (the longest would have {length})"
            ),
            format!("shorten the job's name by {excess}"),
        );
    }

    pub(crate) fn no_container(&mut self, path: impl Into<String>, wanted: &str) {
        let remedy = match wanted {
            "" => "add one".to_owned(),
            name => format!("add one named {name:?}"),
        };
        self.push(path, "must have a container", remedy);
    }

    pub(crate) fn not_among_containers(&mut self, path: impl Into<String>, wanted: &str) {
        self.push(
            path,
            format!("must have a container named {wanted:?}"),
            format!("name the container that runs the training {wanted:?}"),
        );
    }

    pub(crate) fn container_twice(&mut self, path: impl Into<String>, name: &str) {
        self.push(
            path,
            format!("duplicate container name {name:?}"),
            "give each container its own name",
        );
    }

    pub(crate) fn bad_container_name(&mut self, path: impl Into<String>, name: &str) {
        self.push(
            path,
            format!("must be a valid container name (is {name:?})"),
            format!(
                "use at most {MAX_LABEL_CHARS} lower-case letters, digits and '-', with a letter or digit at both ends"
            ),
        );
    }

    /// Adds the error of a value that differs from that of the field `other`, which has the same meaning.
    pub(crate) fn differs_from(&mut self, path: impl Into<String>, other: &str) {
        self.push(
            path,
            format!("must have the same value as {other}"),
            "change or remove one of them",
        );
    }

    pub(crate) fn no_image(&mut self, path: impl Into<String>) {
        self.push(path, MUST_BE_SET, "name the image to run");
    }
}

/// The problem of a required field that is missing.
pub(crate) const MUST_BE_SET: &str = "must be set";

/// Returns the remedy for an invalid job name.
pub(super) fn job_names() -> String {
    format!(
        "use at most {MAX_LABEL_CHARS} lower-case letters, digits and '-', starting with a letter and not ending with '-', such as my-job"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_with_too_few_replicas_has_its_bounds_in_words() {
        for (role, error) in [
            (
                RoleDefinition::new("Worker").exactly(1),
                "exactly 1 replica of Worker; add Worker with 1 replica",
            ),
            (
                RoleDefinition::new("Worker").at_least(1),
                "at least 1 replica of Worker; set the replicas of Worker to 1 or more",
            ),
            (
                RoleDefinition::new("Worker").exactly(3),
                "exactly 3 replicas of Worker; set the replicas of Worker to 3",
            ),
            (
                RoleDefinition::new("Worker").at_least(3),
                "at least 3 replicas of Worker; set the replicas of Worker to 3 or more",
            ),
        ] {
            let mut errors = FieldErrors::default();
            errors.too_few_replicas("spec", &role);
            assert_eq!(errors.to_string(), format!("spec: must have {error}"));
        }
    }
}
