//! Additions to containers that request a device, from the operator's settings, for jobs of every kind.

use std::collections::BTreeMap;

/// The additions to the framework's containers that have a resource in their limits or requests, by the resource's
/// name, such as `nvidia.com/gpu`. A quantity of 0 does not count as a request.
pub type Accelerators = BTreeMap<String, Accelerator>;

/// The additions to a container that requests a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accelerator {
    /// Directories of the node to mount.
    pub volumes: Vec<HostVolume>,
    /// Environment variables: names and values.
    pub variables: Vec<(String, String)>,
}

/// A directory of the node and its mount path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostVolume {
    /// The name of the pod's volume.
    pub name: String,
    /// The path on the node.
    pub host_path: String,
    /// The path in the container.
    pub mount_path: String,
}
