//! What a job says of its roles, in whatever shape its resource has.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube_syntax::FieldPath;

use crate::api::ReplicaSpec;

/// The replica specs of a job, from a map by role or from a list of entries.
#[derive(Clone, Debug, Default)]
pub struct RoleSpecs<'a>(Vec<RoleSpec<'a>>);

/// What a job says of one role.
#[derive(Clone, Debug)]
pub(crate) struct RoleSpec<'a> {
    /// The role, as the job spells it.
    pub(crate) role: Cow<'a, str>,
    place: Place,
    /// None if the job has null there.
    pub(crate) spec: Option<Cow<'a, ReplicaSpec>>,
}

/// Where a spec is below the field that holds them all.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Under the role's name.
    Key,
    /// In an item of a list.
    Item(usize),
}

impl<'a> RoleSpecs<'a> {
    /// The specs of a map by role: `replicaSpecs: {Worker: {...}}`. It is [`ReplicaSpecs`](crate::api::ReplicaSpecs), or a map of
    /// a kind's own entries, which have a [`ReplicaSpec`] with `#[serde(flatten)]` and fields of their own beside it.
    pub fn map<S: AsRef<ReplicaSpec>>(specs: &'a BTreeMap<String, Option<S>>) -> Self {
        let entries = specs.iter().map(|(role, spec)| RoleSpec {
            role: Cow::Borrowed(role),
            place: Place::Key,
            spec: spec.as_ref().map(|spec| Cow::Borrowed(spec.as_ref())),
        });
        Self(entries.collect())
    }

    /// The specs of a list, each with its role: `replicaSpecs: [{replicaType: WORKER, ...}]`.
    pub fn list(entries: impl IntoIterator<Item = (Cow<'a, str>, Cow<'a, ReplicaSpec>)>) -> Self {
        let entries = entries.into_iter().enumerate();
        let entries = entries.map(|(index, (role, spec))| RoleSpec {
            role,
            place: Place::Item(index),
            spec: Some(spec),
        });
        Self(entries.collect())
    }

    /// The same specs, each with what `fill_in` puts where the job says nothing: defaults that hold before the job is
    /// validated. Fields that the API server asks for by itself must be in the job all the same, but for what
    /// [`Framework`](super::Framework) says is filled in.
    ///
    /// `fill_in` gets the role as the job spells it, which may be `worker` for a role that is declared as `Worker`, or no
    /// role at all: compare without regard to case, as by `role.eq_ignore_ascii_case("Worker")`.
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

    /// Each role as the job spells it, with its spec if there is one.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&ReplicaSpec>)> {
        self.0.iter().map(|entry| (&*entry.role, entry.spec.as_deref()))
    }
}

impl RoleSpec<'_> {
    /// Where the spec is, below the field that holds them all.
    pub(crate) fn path<'p>(&'p self, field: &'p FieldPath<'p>) -> FieldPath<'p> {
        match self.place {
            Place::Key => field.key(&self.role),
            Place::Item(index) => field.item(index),
        }
    }
}
