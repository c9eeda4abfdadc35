//! Comparison of resource versions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A resource version. The greater of two is the newer state of an object.
///
/// Kubernetes' versions are decimal numbers that grow (KEP-5504). One that is missing or not a number counts as 0,
/// the default, so it never makes another state look stale.
///
/// ```
/// use kube_follow::Version;
///
/// assert!(Version::parse("10") > Version::parse("9"));
/// assert_eq!(Version::parse("not a number"), Version::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u64);

impl Version {
    /// Returns the version in an object's metadata.
    pub fn from_meta(meta: &ObjectMeta) -> Self {
        meta.resource_version
            .as_deref()
            .map(Self::parse)
            .unwrap_or_default()
    }

    /// Parses the text of a `resourceVersion` field.
    pub fn parse(text: &str) -> Self {
        Self(text.parse().unwrap_or(0))
    }
}
