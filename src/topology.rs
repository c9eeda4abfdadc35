//! Who is in a job: roles, replicas, their names and ports.

use k8s_openapi::api::core::v1::PodTemplateSpec;

use crate::api::{ReplicaSpec, RestartPolicy};
use crate::job::RoleKind;

/// The roles of a valid job.
#[derive(Clone, Debug)]
pub struct Topology<'a> {
    /// The job's name.
    pub job: &'a str,
    /// The job's namespace.
    pub namespace: &'a str,
    /// The roles that the job names, in the order of [`Framework::roles`](crate::Framework::roles).
    /// A role with 0 replicas is among them.
    pub roles: Vec<Role<'a>>,
}

/// A role of a valid job.
#[derive(Clone, Debug)]
pub struct Role<'a> {
    /// The kind of role.
    pub kind: &'static RoleKind,
    /// The field that describes it, such as `spec.replicaSpecs.worker`: spelt as the job spells it.
    pub field: String,
    /// Its name in lower case, as in names, labels and environment.
    pub lower: String,
    /// How many replicas; may be 0.
    pub replicas: u32,
    /// What happens when one fails, defaults applied; never `Other`.
    pub restart_policy: RestartPolicy,
    /// The number of the framework's port in this role's pods.
    pub port: i32,
    /// What the job says of the role.
    pub spec: &'a ReplicaSpec,
}

/// One replica of a role.
#[derive(Clone, Copy, Debug)]
pub struct Replica<'a> {
    /// Its role.
    pub role: &'a Role<'a>,
    /// Its index within the role, from 0.
    pub index: u32,
}

impl<'a> Topology<'a> {
    /// The role of this name, if the job names it and it has replicas.
    pub fn role(&self, name: &str) -> Option<&Role<'a>> {
        self.roles.iter().find(|r| r.kind.name == name && r.replicas > 0)
    }

    /// The number of replicas of the role of this name; 0 if the job does not name it.
    pub fn replicas(&self, name: &str) -> u32 {
        self.role(name).map_or(0, |r| r.replicas)
    }

    /// The number of replicas of all roles.
    pub fn total(&self) -> u32 {
        self.roles.iter().map(|r| r.replicas).sum()
    }

    /// The name of a replica's pod and service, which is also its host name.
    pub fn host(&self, role: &Role<'_>, index: u32) -> String {
        // Put together by hand: each pass asks for the name of each replica several times.
        [self.job, "-", &role.lower, "-", &index.to_string()].concat()
    }

    /// All replicas, role by role.
    pub fn all(&self) -> impl Iterator<Item = Replica<'_>> {
        self.roles.iter().flat_map(|role| role.all())
    }
}

impl Role<'_> {
    /// The role's name, as in the replica specs.
    pub fn name(&self) -> &'static str {
        self.kind.name
    }

    /// The role's pod template.
    pub fn template(&self) -> &PodTemplateSpec {
        &self.spec.template
    }

    /// The value of an annotation of the role's pod template.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        let metadata = self.spec.template.metadata.as_ref()?;
        metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// All replicas of the role.
    pub fn all(&self) -> impl Iterator<Item = Replica<'_>> {
        (0..self.replicas).map(move |index| Replica { role: self, index })
    }
}

impl Replica<'_> {
    /// `<role in lower case>-<index>`, by which the status remembers the replica.
    pub fn key(&self) -> String {
        format!("{}-{}", self.role.lower, self.index)
    }
}
