//! Who is in a job: roles, replicas, their names and ports.

use k8s_openapi::api::core::v1::PodTemplateSpec;

use crate::api::{ReplicaSpec, RestartPolicy};

use super::framework::RoleKind;

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

    /// Whether a replica's pod and service have this name.
    pub(crate) fn names(&self, name: &str) -> bool {
        let rest = name
            .strip_prefix(self.job)
            .and_then(|rest| rest.strip_prefix('-'));
        let is_of = |role: &Role<'_>| {
            let index = rest.and_then(|rest| rest.strip_prefix(&role.lower)?.strip_prefix('-'));
            index.is_some_and(|index| {
                let number = index.parse::<u32>().ok().filter(|number| *number < role.replicas);
                // Neither `01` nor `+1` is 1.
                number.is_some_and(|number| number.to_string() == index)
            })
        };
        self.roles.iter().any(is_of)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_hosts_and_no_others() {
        static KINDS: [RoleKind; 3] = [RoleKind::new("A"), RoleKind::new("A-1"), RoleKind::new("None")];
        let spec = ReplicaSpec::default();
        let role = |(kind, replicas): (&'static RoleKind, u32)| Role {
            kind,
            field: String::new(),
            lower: kind.name.to_lowercase(),
            replicas,
            restart_policy: RestartPolicy::Never,
            port: 1,
            spec: &spec,
        };
        let topology = Topology {
            job: "job-a",
            namespace: "ns",
            roles: KINDS.iter().zip([2, 11, 0]).map(role).collect(),
        };
        let hosts: Vec<String> = topology.all().map(|r| topology.host(r.role, r.index)).collect();
        assert_eq!(hosts.len(), 13);
        for host in &hosts {
            assert!(topology.names(host), "{host}");
        }
        for other in [
            "job-a-a-2",
            "job-a-a-01",
            "job-a-a-+1",
            "job-a-a--1",
            "job-a-a-",
            "job-a-a",
            "job-a-A-0",
            "job-a-a-1-11",
            "job-a-none-0",
            "job-a-a-4294967296",
            "job-a-a-0 ",
            "job-b-a-0",
            "job-aa-0",
            "a-0",
            "",
        ] {
            assert!(!topology.names(other), "{other}");
        }
    }
}
