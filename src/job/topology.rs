//! The members of a job: its roles and replicas, with their host names and ports.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, PodTemplateSpec};

use parking_lot::Mutex;
use serde_json::Value;

use crate::api::{ReplicaSpec, RestartPolicy};

use super::objects::ObjectKind;
use super::role_definition::RoleDefinition;
use super::scope::Scope;
use super::settings::Settings;

/// The roles of a valid job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Topology<'a> {
    /// The job's name.
    pub job: &'a str,
    /// The job's namespace.
    pub namespace: &'a str,
    /// The job's UID; empty for a job that was never stored in an API server.
    pub uid: &'a str,
    /// The roles in the spec, in the order of [`Framework::roles`](crate::Framework::roles). They include roles with
    /// 0 replicas.
    pub roles: Vec<Role<'a>>,
    /// The one service for all replicas, under [`Layout::Compact`](crate::api::Layout::Compact). If unset, each
    /// replica has a service of its own name.
    pub common_service: Option<String>,
    /// The operator's settings.
    pub settings: Settings,
    /// The texts for [`shared_text`](Topology::shared_text).
    pub(crate) shared_texts: SharedTexts,
    /// The contents for [`content`](Topology::content).
    pub(crate) contents: BTreeMap<(ObjectKind, String), Arc<Value>>,
}

/// Texts that are the same for all replicas of a job, by name. Clones share them, because they belong to the same
/// job.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedTexts(Arc<Mutex<BTreeMap<&'static str, Arc<str>>>>);

/// A role of a valid job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Role<'a> {
    /// The definition of the role, or of its class, in the framework.
    pub definition: &'static RoleDefinition,
    pub(crate) name: Cow<'a, str>,
    /// The position of the role in its list, from 0, if it is an item of one.
    pub index: Option<usize>,
    /// The path of its spec, such as `spec.replicaSpecs.worker`, spelled as in the job.
    pub field: String,
    /// The name in lower case, as in names, labels and environment.
    pub slug: String,
    /// The names of its replicas' pods.
    pub names: ReplicaNames,
    /// The name of its only replica's service, if that differs from the pod's.
    pub service: Option<String>,
    /// The number of replicas; may be 0.
    pub replicas: u32,
    /// The restart policy with defaults applied; never `Other`.
    pub restart_policy: RestartPolicy,
    /// The index of the framework's container among the containers of the role's template.
    pub container: Option<usize>,
    /// The number of the framework's port in this role's pods.
    pub port: i32,
    /// The replica spec of the job, with the values that the kind fills in.
    pub spec: Cow<'a, ReplicaSpec>,
}

/// The names of the pods of a role's replicas. Their services have the same names, unless the role's definition sets
/// [another](RoleDefinition::service).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaNames {
    /// A prefix, followed by `-` and the index of the replica: `primes-worker-0`.
    Indexed(String),
    /// Exactly this name, for a role that never has more than one replica: `primes-launcher`. Its pod has no index
    /// label.
    Single(String),
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
    /// Returns the role of this name, if it is in the spec and has replicas.
    pub fn role(&self, name: &str) -> Option<&Role<'a>> {
        self.roles.iter().find(|r| r.name() == name && r.replicas > 0)
    }

    /// Returns the roles of this class that have replicas, in the order of the job.
    pub fn class(&self, class: &str) -> impl Iterator<Item = &Role<'a>> {
        let of_class = move |role: &&Role<'a>| role.class() == class && role.replicas > 0;
        self.roles.iter().filter(of_class)
    }

    /// Returns the number of replicas of all roles of this class; 0 if there are none in the spec.
    pub fn replicas(&self, class: &str) -> u32 {
        self.class(class).map(|role| role.replicas).sum()
    }

    /// Returns the number of replicas of all roles.
    pub fn total(&self) -> u32 {
        self.roles.iter().map(|r| r.replicas).sum()
    }

    /// Returns the numbers of replicas by role, without roles of no replicas.
    pub(crate) fn sizes(&self) -> BTreeMap<String, i32> {
        let roles = self.roles.iter().filter(|role| role.replicas > 0);
        let size = |replicas: u32| i32::try_from(replicas).unwrap_or(i32::MAX);
        roles
            .map(|role| (role.name().to_owned(), size(role.replicas)))
            .collect()
    }

    /// Returns the restart scope of a collective, which no replica can rejoin: the whole job, unless it has at most
    /// one replica.
    pub fn collective_scope(&self) -> Scope {
        match self.total() {
            0 | 1 => Scope::Replica,
            _ => Scope::Job,
        }
    }

    /// Iterates over all replicas, role by role.
    pub fn all(&self) -> impl Iterator<Item = Replica<'_>> {
        self.roles.iter().flat_map(|role| role.all())
    }

    /// Returns the suffix of a replica's host name for uses where the short name is not enough, such as a name that
    /// must have dots: `primes-worker-0.<domain>` resolves to the replica everywhere in the cluster.
    ///
    /// The domain is `<namespace>.svc`, or `<service>.<namespace>.svc` if there is a
    /// [`common_service`](Self::common_service).
    pub fn domain(&self) -> String {
        match &self.common_service {
            None => format!("{}.svc", self.namespace),
            Some(service) => format!("{service}.{}.svc", self.namespace),
        }
    }

    /// Returns a text that is the same for all replicas, such as the list of their hosts. The first call, by any
    /// hook, computes the text and caches it under `name`. A job whose environment lists all replicas then computes
    /// the list once and copies it into each pod.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::EnvVar;
    /// use training_job::{Replica, Topology, api::variable};
    ///
    /// fn env(topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
    ///     let hosts = topology.shared_text("hosts", || {
    ///         topology.all().map(|replica| replica.host()).collect::<Vec<_>>().join(",")
    ///     });
    ///     vec![variable("HOSTS", &*hosts), variable("RANK", replica.index.to_string())]
    /// }
    /// ```
    pub fn shared_text(&self, name: &'static str, make: impl FnOnce() -> String) -> Arc<str> {
        let texts = || self.shared_texts.0.lock();
        let known = texts().get(name).cloned();
        // Not under the lock, because `make` may call this method for another text.
        known.unwrap_or_else(|| {
            let made: Arc<str> = make().into();
            texts().entry(name).or_insert(made).clone()
        })
    }

    /// Returns the fields of an object of the job that is [created once](crate::ObjectDefinition::created_once), such as
    /// the `data` of a ConfigMap that is a [copy](crate::JobObject::copied_from): pods are created when the copies of
    /// their job exist. The hooks that make pods may read it, [`env`](crate::TrainingJob::env),
    /// [`labels`](crate::TrainingJob::labels) and [`customize`](crate::TrainingJob::customize). The fields of a
    /// Secret are never returned.
    ///
    /// Returns `None` if the job has no such object, in a review, and when a job is checked. The hooks must return a
    /// valid result in these cases, too.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, EnvVar};
    /// use training_job::{ObjectKind, Topology, api::variable};
    ///
    /// fn levels(topology: &Topology<'_>) -> Option<EnvVar> {
    ///     let copy = format!("{}-settings", topology.job);
    ///     let settings = topology.content(ObjectKind::of::<ConfigMap>(), &copy)?;
    ///     let levels = settings["data"]["levels"].as_str()?.lines().count();
    ///     Some(variable("LEVEL_COUNT", levels.to_string()))
    /// }
    /// ```
    pub fn content(&self, kind: ObjectKind, name: &str) -> Option<&Value> {
        self.contents
            .get(&(kind, name.to_owned()))
            .map(|content| &**content)
    }

    /// Returns true if a service of the job has this name.
    pub(crate) fn has_service_named(&self, name: &str) -> bool {
        match &self.common_service {
            None => self.has_host_named(name),
            Some(common) => common == name,
        }
    }

    /// Returns true if a replica's own service has this name, in a job with a service per replica.
    pub(crate) fn has_host_named(&self, name: &str) -> bool {
        let mut roles = self.roles.iter().filter(|role| role.definition.has_service);
        roles.any(|role| match &role.service {
            Some(own) => role.replicas > 0 && own == name,
            None => role.replica_named(name).is_some(),
        })
    }

    /// Returns true if a replica's pod has this name.
    pub(crate) fn has_replica_named(&self, name: &str) -> bool {
        self.replica_named(name).is_some()
    }

    /// Returns the replica whose pod has this name.
    pub fn replica_named(&self, name: &str) -> Option<Replica<'_>> {
        self.roles.iter().find_map(|role| role.replica_named(name))
    }
}

impl Role<'_> {
    /// Returns the role's name, as in the framework, or as in the job if users name the roles.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the role's definition. It differs from the role's name only if users name the roles.
    pub fn class(&self) -> &'static str {
        self.definition.name
    }

    /// Returns the host name of a replica, by which the others find it: the name of its own service if it has one, or
    /// else of its pod.
    pub fn host(&self, index: u32) -> String {
        self.service.clone().unwrap_or_else(|| self.pod_name(index))
    }

    /// Returns the name of a replica's pod.
    pub fn pod_name(&self, index: u32) -> String {
        match &self.names {
            ReplicaNames::Indexed(prefix) => numbered(prefix, index),
            ReplicaNames::Single(name) => name.clone(),
        }
    }

    /// Returns the role's pod template.
    pub fn template(&self) -> &PodTemplateSpec {
        &self.spec.template
    }

    /// Returns the path of the role's pod template, such as `spec.replicaSpecs.Worker.template`.
    pub fn template_path(&self) -> String {
        match self.definition.template_from {
            Some(field) => format!("spec.{field}"),
            None => format!("{}.template", self.field),
        }
    }

    /// Returns the path of the number of replicas, such as `spec.replicaSpecs.Worker.replicas`.
    pub fn replicas_path(&self) -> String {
        format!("{}.{}", self.field, self.definition.replicas_field)
    }

    /// Returns the containers of the role's pod template.
    pub fn containers(&self) -> &[Container] {
        let spec = self.spec.template.spec.as_ref();
        spec.map_or(&[], |spec| &spec.containers)
    }

    /// Returns the framework's container in the role's template. It gets the environment and the port, and its end is
    /// the end of the replica.
    pub fn main_container(&self) -> Option<&Container> {
        self.containers().get(self.container?)
    }

    /// Returns the value of an annotation of the role's pod template.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        let metadata = self.spec.template.metadata.as_ref()?;
        metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Returns true if the replicas of `other` restart with any replica of this role that fails, in this scope.
    pub(crate) fn restarts(&self, other: &Role<'_>, scope: Scope) -> bool {
        match scope {
            Scope::Job => true,
            Scope::Roles(classes) => self.slug == other.slug || classes.contains(&other.class()),
            Scope::Role => self.slug == other.slug,
            Scope::Replica => false,
        }
    }

    /// Iterates over all replicas of the role.
    pub fn all(&self) -> impl Iterator<Item = Replica<'_>> {
        (0..self.replicas).map(move |index| Replica { role: self, index })
    }

    fn replica_named(&self, name: &str) -> Option<Replica<'_>> {
        let index = self.index_in(name).filter(|index| *index < self.replicas)?;
        Some(Replica { role: self, index })
    }

    /// Returns true if a replica's pod could have this name, whatever the number of replicas.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        self.index_in(name).is_some()
    }

    /// Returns true if this is not `besides`, and a service of one of its replicas could have this name.
    pub(crate) fn may_serve(&self, name: &str, besides: &Role<'_>) -> bool {
        self.slug != besides.slug
            && match &self.service {
                Some(own) => own == name,
                None => self.may_have(name),
            }
    }

    fn index_in(&self, name: &str) -> Option<u32> {
        match &self.names {
            ReplicaNames::Indexed(prefix) => {
                let index = name.strip_prefix(&**prefix)?.strip_prefix('-')?;
                // Neither `01` nor `+1` is a valid index.
                index
                    .parse()
                    .ok()
                    .filter(|number: &u32| number.to_string() == index)
            }
            ReplicaNames::Single(own) => (own == name).then_some(0),
        }
    }
}

impl Replica<'_> {
    /// Returns its host name, by which the others find it: the name of its own service if it has one, or else of its
    /// pod.
    pub fn host(&self) -> String {
        self.role.host(self.index)
    }

    /// Returns the name of its pod.
    pub fn pod_name(&self) -> String {
        self.role.pod_name(self.index)
    }

    /// Returns `<role in lower case>-<index>`, the key of the replica in the status.
    pub fn key(&self) -> String {
        numbered(&self.role.slug, self.index)
    }
}

/// Returns `<prefix>-<index>`. A plan needs it several times for each replica.
fn numbered(prefix: &str, index: u32) -> String {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(index);
    let mut name = String::with_capacity(prefix.len() + 1 + digits.len());
    name.push_str(prefix);
    name.push('-');
    name.push_str(digits);
    name
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
            name: definition.name.into(),
            index: None,
            field: String::new(),
            slug: definition.slug(),
            names: match definition.name {
                "Launcher" | "Gone" => ReplicaNames::Single(format!("job-a-{}", definition.slug())),
                _ => ReplicaNames::Indexed(format!("job-a-{}", definition.slug())),
            },
            service: None,
            replicas,
            restart_policy: RestartPolicy::Never,
            container: None,
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
            shared_texts: SharedTexts::default(),
            contents: BTreeMap::new(),
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
