//! The replica specs of a job, independent of the shape of its resource.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube_syntax::FieldPath;

use crate::api::ReplicaSpec;

/// The replica specs of a job, from a map by role or from a list of entries.
#[derive(Clone, Debug, Default)]
pub struct RoleSpecs<'a>(Vec<RoleSpec<'a>>);

/// The replica spec of one role.
#[derive(Clone, Debug)]
pub(crate) struct RoleSpec<'a> {
    /// The role, spelled as in the job.
    pub(crate) role: Cow<'a, str>,
    place: Place,
    /// `None` if the job has null there.
    pub(crate) spec: Option<Cow<'a, ReplicaSpec>>,
}

/// The location of a spec below the field that holds all specs.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Under the role's name.
    Key,
    /// In this item of a list.
    Item(usize),
}

impl<'a> RoleSpecs<'a> {
    /// Returns the specs of a map by role: `replicaSpecs: {Worker: {...}}`. The map is
    /// [`ReplicaSpecs`](crate::api::ReplicaSpecs), or a map of a kind's own entries. Such an entry has a
    /// [`ReplicaSpec`] with `#[serde(flatten)]` and further fields.
    pub fn map<S: AsRef<ReplicaSpec>>(specs: &'a BTreeMap<String, Option<S>>) -> Self {
        let entries = specs.iter().map(|(role, spec)| RoleSpec {
            role: Cow::Borrowed(role),
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
            place: Place::Item(index),
            spec: Some(spec),
        });
        Self(entries.collect())
    }

    /// Fills in defaults with `fill_in` before the job is validated. Fields that the API server requires must still
    /// be in the job, except those that [`Framework`](super::Framework) declares as filled in.
    ///
    /// A kind that fills in another number of replicas than 1 removes the default of [`ReplicaSpec`] from its
    /// definition with [`without_default_replicas`](crate::api::schema::without_default_replicas).
    ///
    /// `fill_in` gets the role as spelled in the job. It may be `worker` for a role that is declared as `Worker`, or
    /// an unknown role. Therefore compare it without regard to case, for example with
    /// `role.eq_ignore_ascii_case("Worker")`.
    ///
    /// ```
    /// use training_job::{RoleSpecs, api::ReplicaSpecs};
    ///
    /// fn with_image<'a>(specs: &'a ReplicaSpecs, image: &str) -> RoleSpecs<'a> {
    ///     RoleSpecs::map(specs).filled_in(|_role, spec| {
    ///         for container in spec.template.spec.iter_mut().flat_map(|pod| &mut pod.containers) {
    ///             container.image.get_or_insert_with(|| image.to_owned());
    ///         }
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn filled_in(mut self, fill_in: impl Fn(&str, &mut ReplicaSpec)) -> Self {
        for entry in &mut self.0 {
            if let Some(spec) = &mut entry.spec {
                fill_in(&entry.role, spec.to_mut());
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
    /// Returns the path of the spec. `field` is the field that holds all specs.
    pub(crate) fn path<'p>(&'p self, field: &'p FieldPath<'p>) -> FieldPath<'p> {
        match self.place {
            Place::Key => field.key(&self.role),
            Place::Item(index) => field.item(index),
        }
    }
}
