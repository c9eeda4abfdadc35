//! The replica specs of a job, independent of the shape of its resource.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube_schema::FieldPath;

use super::role_definition::RoleSource;
use crate::api::ReplicaSpec;

/// The replica specs of a job, from a map by role, from a list of entries, or from several fields.
///
/// ```
/// use training_job::{RoleSpecs, api::ReplicaSpec};
///
/// struct Spec {
///     head: ReplicaSpec,
///     worker_groups: Vec<Group>,
/// }
///
/// struct Group {
///     group_name: String,
///     replica_spec: ReplicaSpec,
/// }
///
/// fn replica_specs(spec: &Spec) -> RoleSpecs<'_> {
///     let groups = spec.worker_groups.iter();
///     RoleSpecs::default()
///         .one("Head", Some(&spec.head))
///         .named("Worker", groups.map(|group| (group.group_name.as_str(), Some(&group.replica_spec))))
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct RoleSpecs<'a>(Vec<RoleSpec<'a>>);

/// A role before its job is validated, for the defaults that a kind fills in.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RoleEntry<'a> {
    /// The name as spelled in the job, such as `worker` for a role that is declared as `Worker`. It may be unknown.
    pub name: &'a str,
    /// The class of a role that has a field, a list or a map of its own. Two roles of one name in two lists differ by it.
    pub class: Option<&'static str>,
    /// The position of the role in its list.
    pub index: Option<usize>,
}

impl RoleEntry<'_> {
    /// Returns true if the role is of this class, which has the name of the role if users name no roles.
    pub fn is(&self, class: &str) -> bool {
        match self.class {
            Some(own) => own == class,
            None => self.name.eq_ignore_ascii_case(class),
        }
    }
}

/// The replica spec of one role.
#[derive(Clone, Debug)]
pub(crate) struct RoleSpec<'a> {
    /// The role, spelled as in the job.
    pub(crate) role: Cow<'a, str>,
    /// The name of the role's definition, if it has a field of its own.
    pub(crate) class: Option<&'static str>,
    place: Place,
    /// `None` if the job has null there.
    pub(crate) spec: Option<Cow<'a, ReplicaSpec>>,
}

/// The location of a spec below the field of its role.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The field itself.
    Whole,
    /// Under the role's name.
    Key,
    /// In this item of a list.
    Item(usize),
}

impl Place {
    fn index(self) -> Option<usize> {
        match self {
            Self::Item(index) => Some(index),
            Self::Whole | Self::Key => None,
        }
    }
}

impl<'a> RoleSpecs<'a> {
    /// Returns the specs of a map by role: `replicaSpecs: {Worker: {...}}`. The map is
    /// [`ReplicaSpecs`](crate::api::ReplicaSpecs), or a map of a kind's own entries. Such an entry has a
    /// [`ReplicaSpec`] with `#[serde(flatten)]` and further fields.
    pub fn map<S: AsRef<ReplicaSpec>>(specs: &'a BTreeMap<String, Option<S>>) -> Self {
        let entries = specs.iter().map(|(role, spec)| RoleSpec {
            role: Cow::Borrowed(role),
            class: None,
            place: Place::Key,
            spec: spec.as_ref().map(|spec| Cow::Borrowed(spec.as_ref())),
        });
        Self(entries.collect())
    }

    /// Returns the specs of a list, each with its role: `replicaSpecs: [{replicaType: WORKER, ...}]`.
    pub fn list(entries: impl IntoIterator<Item = (Cow<'a, str>, Cow<'a, ReplicaSpec>)>) -> Self {
        let entries = entries.into_iter().enumerate();
        let entries = entries.map(|(index, (role, spec))| RoleSpec {
            role,
            class: None,
            place: Place::Item(index),
            spec: Some(spec),
        });
        Self(entries.collect())
    }

    /// Adds the spec of the role `role`, which is [in a field](super::RoleDefinition::in_field) of its own. `None` adds
    /// nothing.
    #[must_use]
    pub fn one(mut self, role: &'static str, spec: Option<&'a ReplicaSpec>) -> Self {
        self.0.extend(spec.map(|spec| RoleSpec {
            role: Cow::Borrowed(role),
            class: Some(role),
            place: Place::Whole,
            spec: Some(Cow::Borrowed(spec)),
        }));
        self
    }

    /// Adds the specs of the class `class`, each with the name of its role, in the order of their
    /// [list](super::RoleDefinition::in_list) or of their [map](super::RoleDefinition::in_map). All items of a list must
    /// be there, because errors name the position of an item. A spec is `None` if the job has null there.
    #[must_use]
    pub fn named(
        self,
        class: &'static str,
        specs: impl IntoIterator<Item = (&'a str, Option<&'a ReplicaSpec>)>,
    ) -> Self {
        let specs = specs.into_iter();
        self.items(class, specs.map(|(name, spec)| (name, spec.map(Cow::Borrowed))))
    }

    /// Adds the specs of the class `class` like [`named`](Self::named), each with the number of its replicas from
    /// [another field](super::RoleDefinition::replicas_field). Without a number, a role has one replica.
    ///
    /// ```
    /// use training_job::{RoleSpecs, api::ReplicaSpec};
    ///
    /// struct Partition { name: String, nodes: Option<i32>, spec: ReplicaSpec }
    ///
    /// fn replica_specs(partitions: &[Partition]) -> RoleSpecs<'_> {
    ///     RoleSpecs::default().numbered("Partition", partitions.iter().map(|p| (&*p.name, p.nodes, Some(&p.spec))))
    /// }
    /// ```
    #[must_use]
    pub fn numbered(
        self,
        class: &'static str,
        specs: impl IntoIterator<Item = (&'a str, Option<i32>, Option<&'a ReplicaSpec>)>,
    ) -> Self {
        let numbered = |replicas, spec: &ReplicaSpec| ReplicaSpec {
            replicas,
            ..spec.clone()
        };
        let specs = specs.into_iter();
        self.items(
            class,
            specs.map(|(name, replicas, spec)| (name, spec.map(|spec| Cow::Owned(numbered(replicas, spec))))),
        )
    }

    /// Adds the roles of the class `class`, each with its name and the number of its replicas. All have `template`, which is
    /// in [a field of its own](super::RoleDefinition::template_from). Without a number, a role has one replica.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::PodTemplateSpec;
    /// use training_job::RoleSpecs;
    ///
    /// struct Step { name: String, tasks: Option<i32> }
    ///
    /// fn replica_specs<'s>(launcher: &PodTemplateSpec, steps: &'s [Step]) -> RoleSpecs<'s> {
    ///     RoleSpecs::default().templated("Step", launcher, steps.iter().map(|step| (&*step.name, step.tasks)))
    /// }
    /// ```
    #[must_use]
    pub fn templated(
        self,
        class: &'static str,
        template: &PodTemplateSpec,
        roles: impl IntoIterator<Item = (&'a str, Option<i32>)>,
    ) -> Self {
        let spec = |replicas| ReplicaSpec {
            replicas,
            template: template.clone(),
            ..ReplicaSpec::default()
        };
        let roles = roles.into_iter();
        self.items(
            class,
            roles.map(|(name, replicas)| (name, Some(Cow::Owned(spec(replicas))))),
        )
    }

    fn items(
        mut self,
        class: &'static str,
        specs: impl Iterator<Item = (&'a str, Option<Cow<'a, ReplicaSpec>>)>,
    ) -> Self {
        self.0
            .extend(specs.enumerate().map(|(index, (name, spec))| RoleSpec {
                role: Cow::Borrowed(name),
                class: Some(class),
                place: Place::Item(index),
                spec,
            }));
        self
    }

    /// Fills in defaults with `fill_in` before the job is validated. Fields that the API server requires must still
    /// be in the job, except those that [`Framework`](super::Framework) declares as filled in.
    ///
    /// A kind that fills in another number of replicas than 1 removes the default of [`ReplicaSpec`] from its
    /// definition with [`without_default_replicas`](crate::api::schema::without_default_replicas).
    ///
    /// ```
    /// use training_job::{RoleSpecs, api::ReplicaSpecs};
    ///
    /// fn with_image<'a>(specs: &'a ReplicaSpecs, image: &str) -> RoleSpecs<'a> {
    ///     RoleSpecs::map(specs).filled_in(|_, spec| {
    ///         for container in spec.template.spec.iter_mut().flat_map(|pod| &mut pod.containers) {
    ///             container.image.get_or_insert_with(|| image.to_owned());
    ///         }
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn filled_in(mut self, fill_in: impl Fn(&RoleEntry<'_>, &mut ReplicaSpec)) -> Self {
        for RoleSpec {
            role,
            class,
            place,
            spec,
        } in &mut self.0
        {
            let (name, class, index) = (&**role, *class, place.index());
            if let Some(spec) = spec {
                fill_in(&RoleEntry { name, class, index }, spec.to_mut());
            }
        }
        self
    }

    pub(crate) fn entries(&self) -> &[RoleSpec<'a>] {
        &self.0
    }

    /// Iterates over the roles as spelled in the job, each with its spec if there is one.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&ReplicaSpec>)> {
        self.0.iter().map(|entry| (&*entry.role, entry.spec.as_deref()))
    }
}

impl RoleSpec<'_> {
    /// Returns the position of the role in its list.
    pub(crate) fn index(&self) -> Option<usize> {
        self.place.index()
    }

    /// Returns the path of the spec. `field` is the field of its role, whose source is `source`.
    pub(crate) fn path<'p>(&'p self, field: &'p FieldPath<'p>, source: RoleSource) -> FieldPath<'p> {
        match self.place {
            Place::Whole => *field,
            Place::Item(_) if matches!(source, RoleSource::Map(_)) => field.key(&self.role),
            Place::Key => field.key(&self.role),
            Place::Item(index) => field.item(index),
        }
    }
}
