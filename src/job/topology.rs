//! Who is in a job: its roles and replicas, their host names and ports.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::PodTemplateSpec;

use crate::api::{ReplicaSpec, RestartPolicy, RestartScope};

use super::framework::RoleDefinition;
use super::settings::Settings;

/// The roles of a valid job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Topology<'a> {
    /// The job's name.
    pub job: &'a str,
    /// The job's namespace.
    pub namespace: &'a str,
    /// The job's UID; empty for one that no API server has seen.
    pub uid: &'a str,
    /// The roles that the job names, in the order of [`Framework::roles`](crate::Framework::roles).
    /// A role with 0 replicas is among them.
    pub roles: Vec<Role<'a>>,
    /// The one service that leads to all replicas, under [`Layout::Compact`](crate::api::Layout::Compact). If unset, each
    /// replica has a service of its own name.
    pub common_service: Option<String>,
    /// The operator's settings.
    pub settings: Settings,
    /// See [`once`](Topology::once).
    pub(crate) texts: Texts,
}

/// Texts that are the same for all replicas of a job, by name. A copy shares them, since it is of the same job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts(Arc<Mutex<BTreeMap<&'static str, Arc<str>>>>);

/// A role of a valid job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Role<'a> {
    /// What the kind says of the role.
    pub definition: &'static RoleDefinition,
    /// The path of its spec, such as `spec.replicaSpecs.worker`: spelt as the job spells it.
    pub field: String,
    /// Its name in lower case, as in names, labels and environment.
    pub slug: String,
    /// How its replicas are called.
    pub names: ReplicaNames,
    /// How many replicas; may be 0.
    pub replicas: u32,
    /// What happens when one fails, defaults applied; never `Other`.
    pub restart_policy: RestartPolicy,
    /// The number of the framework's port in this role's pods.
    pub port: i32,
    /// What the job says of the role, with what the kind fills in.
    pub spec: Cow<'a, ReplicaSpec>,
}

/// How the replicas of a role are called: the names of their pods and services, which are their host names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaNames {
    /// A prefix, then `-` and the replica's index: `primes-worker-0`.
    Indexed(String),
    /// Just this, for a role that never has more than one replica: `primes-launcher`. Its pod has no label for an index.
    Bare(String),
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
        self.roles.iter().find(|r| r.name() == name && r.replicas > 0)
    }

    /// The number of replicas of the role of this name; 0 if the job does not name it.
    pub fn replicas(&self, name: &str) -> u32 {
        self.role(name).map_or(0, |r| r.replicas)
    }

    /// The number of replicas of all roles.
    pub fn total(&self) -> u32 {
        self.roles.iter().map(|r| r.replicas).sum()
    }

    /// What restarts together in a collective, which takes nobody back: the job, unless one replica is all of it.
    pub fn collective_scope(&self) -> RestartScope {
        match self.total() {
            0 | 1 => RestartScope::Replica,
            _ => RestartScope::Job,
        }
    }

    /// All replicas, role by role.
    pub fn all(&self) -> impl Iterator<Item = Replica<'_>> {
        self.roles.iter().flat_map(|role| role.all())
    }

    /// What follows a replica's host name where the short name may not do, such as in a name with dots:
    /// `primes-worker-0.<domain>` leads to the replica from everywhere in the cluster.
    ///
    /// `<namespace>.svc`, or behind the [`common_service`](Self::common_service), if there is one:
    /// `<service>.<namespace>.svc`.
    pub fn domain(&self) -> String {
        match &self.common_service {
            None => format!("{}.svc", self.namespace),
            Some(service) => format!("{service}.{}.svc", self.namespace),
        }
    }

    /// A text that is the same for all replicas, such as the list of their hosts: made when it is asked for first, by
    /// any hook, and then kept under `name`. So a job whose environment lists all replicas has it made once, and copied into each pod.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::EnvVar;
    /// use training_job::{Replica, Topology, api::variable};
    ///
    /// fn env(topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
    ///     let hosts = topology.once("hosts", || {
    ///         topology.all().map(|replica| replica.host()).collect::<Vec<_>>().join(",")
    ///     });
    ///     vec![variable("HOSTS", &*hosts), variable("RANK", replica.index.to_string())]
    /// }
    /// ```
    pub fn once(&self, name: &'static str, make: impl FnOnce() -> String) -> Arc<str> {
        let texts = || self.texts.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = texts().get(name).cloned();
        // Not under the lock: what is made may ask for another text.
        known.unwrap_or_else(|| {
            let made: Arc<str> = make().into();
            texts().entry(name).or_insert(made).clone()
        })
    }

    /// Whether a service of the job has this name.
    pub(crate) fn has_service_named(&self, name: &str) -> bool {
        match &self.common_service {
            None => {
                let replica = self.replica_named(name);
                replica.is_some_and(|replica| replica.role.definition.has_service)
            }
            Some(common) => common == name,
        }
    }

    /// Whether a replica's pod has this name.
    pub(crate) fn has_replica_named(&self, name: &str) -> bool {
        self.replica_named(name).is_some()
    }

    /// The replica whose pod has this name.
    pub(crate) fn replica_named(&self, name: &str) -> Option<Replica<'_>> {
        self.roles.iter().find_map(|role| role.replica_named(name))
    }
}

impl Role<'_> {
    /// The role's name, as in the replica specs.
    pub fn name(&self) -> &'static str {
        self.definition.name
    }

    /// The host name of a replica of the role: the name of its pod, and of its service if it has one of its own.
    pub fn host(&self, index: u32) -> String {
        match &self.names {
            // Put together by hand: each reconcile asks for the name of each replica several times.
            ReplicaNames::Indexed(prefix) => [prefix, "-", &index.to_string()].concat(),
            ReplicaNames::Bare(name) => name.clone(),
        }
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

    fn replica_named(&self, name: &str) -> Option<Replica<'_>> {
        let index = self.index_in(name).filter(|index| *index < self.replicas)?;
        Some(Replica { role: self, index })
    }

    /// Whether a replica's pod would have this name, if the role had as many as that.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        self.index_in(name).is_some()
    }

    fn index_in(&self, name: &str) -> Option<u32> {
        match &self.names {
            ReplicaNames::Indexed(prefix) => {
                let index = name.strip_prefix(&**prefix)?.strip_prefix('-')?;
                // Neither `01` nor `+1` is 1.
                index
                    .parse()
                    .ok()
                    .filter(|number: &u32| number.to_string() == index)
            }
            ReplicaNames::Bare(own) => (own == name).then_some(0),
        }
    }
}

impl Replica<'_> {
    /// Its host name: the name of its pod, and of its service if it has one of its own.
    pub fn host(&self) -> String {
        self.role.host(self.index)
    }

    /// `<role in lower case>-<index>`, by which the status remembers the replica.
    pub fn key(&self) -> String {
        format!("{}-{}", self.role.slug, self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_hosts_and_no_others() {
        static ROLES: [RoleDefinition; 5] = [
            RoleDefinition::new("A"),
            RoleDefinition::new("A-1"),
            RoleDefinition::new("None"),
            RoleDefinition::new("Launcher"),
            RoleDefinition::new("Gone"),
        ];
        let role = |(definition, replicas): (&'static RoleDefinition, u32)| Role {
            definition,
            field: String::new(),
            slug: definition.slug(),
            names: match definition.name {
                "Launcher" | "Gone" => ReplicaNames::Bare(format!("job-a-{}", definition.slug())),
                _ => ReplicaNames::Indexed(format!("job-a-{}", definition.slug())),
            },
            replicas,
            restart_policy: RestartPolicy::Never,
            port: 1,
            spec: Cow::Owned(ReplicaSpec::default()),
        };
        let topology = Topology {
            job: "job-a",
            namespace: "ns",
            uid: "",
            roles: ROLES.iter().zip([2, 11, 0, 1, 0]).map(role).collect(),
            common_service: None,
            settings: Settings::default(),
            texts: Texts::default(),
        };
        let hosts: Vec<String> = topology.all().map(|replica| replica.host()).collect();
        assert_eq!(hosts.len(), 14);
        for host in &hosts {
            assert!(topology.has_replica_named(host), "{host}");
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
            "job-a-launcher-0",
            "job-a-gone",
            "",
        ] {
            assert!(!topology.has_replica_named(other), "{other}");
        }
    }
}
