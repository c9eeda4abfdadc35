//! What containers get that ask for a device: from the operator's settings, for jobs of every kind.

use std::collections::BTreeMap;

/// What the framework's containers get that ask for a resource in their limits or requests, by the resource's name, such as
/// `nvidia.com/gpu`. Who asks for 0 of it asks for none.
pub type Accelerators = BTreeMap<String, Accelerator>;

/// What a container gets that asks for a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accelerator {
    /// Directories of the node.
    pub volumes: Vec<HostVolume>,
    /// Variables: names and values.
    pub variables: Vec<(String, String)>,
}

/// A directory of the node, and where the container has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostVolume {
    /// The name of the pod's volume.
    pub name: String,
    /// The path on the node.
    pub host_path: String,
    /// The path in the container.
    pub mount_path: String,
}
