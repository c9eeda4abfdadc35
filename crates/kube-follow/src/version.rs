//! Versions of objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A resource version, to tell which of two states of an object is newer.
///
/// Kubernetes' are decimal numbers that grow (KEP-5504). One that is not a number counts as 0, so it
/// never hides anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u64);

impl Version {
    pub fn of(meta: &ObjectMeta) -> Self {
        meta.resource_version
            .as_deref()
            .map(Self::parse)
            .unwrap_or_default()
    }

    pub fn parse(text: &str) -> Self {
        Self(text.parse().unwrap_or(0))
    }
}
