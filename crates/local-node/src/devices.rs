//! The accelerators of this machine, which pods share by their requests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;
use kube_schema::quantity::amount;

/// The devices of one resource of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    /// The IDs of the devices, as they are written in the variable.
    pub ids: Vec<String>,
    /// The variable with the IDs of a process's devices, separated by commas. Processes without devices get it empty.
    pub variable: String,
}

/// The longest wait for NVIDIA's driver. That of a broken device may never respond.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the accelerators of this machine by the name of their resource: `nvidia.com/gpu` and
/// `nvidia.com/mig-PROFILE` as `nvidia-smi -L` lists them, and `amd.com/gpu` as the kernel does. Empty without drivers.
#[must_use]
pub fn devices_of_this_machine() -> BTreeMap<String, Devices> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        // The receiver may have stopped waiting.
        let _ = send.send(Command::new("nvidia-smi").arg("-L").output());
    });
    let listed = receive.recv_timeout(DRIVER_TIMEOUT).ok().and_then(Result::ok);
    let listed = listed.filter(|output| output.status.success());
    let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let mut all = nvidia(&listed.unwrap_or_default());
    let count = amd(Path::new("/sys/class/kfd/kfd/topology/nodes"));
    if count > 0 {
        let ids = (0..count).map(|id| id.to_string()).collect();
        all.insert("amd.com/gpu".to_owned(), devices("ROCR_VISIBLE_DEVICES", ids));
    }
    all
}

fn devices(variable: &str, ids: Vec<String>) -> Devices {
    Devices {
        ids,
        variable: variable.to_owned(),
    }
}

/// Reads lines such as `GPU 0: NVIDIA A100 (UUID: GPU-1)`. A GPU in parts has a line such as
/// `MIG 1g.5gb  Device  0: (UUID: MIG-2)` for each of them, and is not offered as a whole.
fn nvidia(listed: &str) -> BTreeMap<String, Devices> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut gpus: Vec<String> = Vec::new();
    let mut last = None;
    for line in listed.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("GPU ") {
            gpus.extend(last.take());
            last = rest.split(':').next().map(str::to_owned);
        } else if let Some(rest) = line.strip_prefix("MIG ")
            && let Some(profile) = rest.split_whitespace().next()
            && let Some((_, id)) = rest.split_once("UUID: ")
        {
            last = None;
            let parts = all.entry(format!("nvidia.com/mig-{profile}")).or_default();
            parts.push(id.trim_end_matches(')').to_owned());
        }
    }
    gpus.extend(last);
    if !gpus.is_empty() {
        all.insert("nvidia.com/gpu".to_owned(), gpus);
    }
    let all = all.into_iter();
    all.map(|(resource, ids)| (resource, devices("CUDA_VISIBLE_DEVICES", ids)))
        .collect()
}

/// Counts the GPUs in the folder of AMD's compute driver. A node without `gpu_id`, or with 0, is a CPU.
fn amd(nodes: &Path) -> usize {
    let nodes = std::fs::read_dir(nodes).into_iter().flatten().flatten();
    let ids = nodes.filter_map(|node| std::fs::read_to_string(node.path().join("gpu_id")).ok());
    ids.filter(|id| !matches!(id.trim(), "" | "0")).count()
}

/// The devices of this machine, and those that each pod has.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// `None` if requests have no effect.
    devices: Option<BTreeMap<String, Devices>>,
    /// The indices of the devices that pods have, by resource, by the pod's UID.
    taken: BTreeMap<String, BTreeMap<String, Vec<usize>>>,
}

impl Shares {
    pub(super) fn new(devices: Option<BTreeMap<String, Devices>>) -> Self {
        Self {
            devices,
            taken: BTreeMap::new(),
        }
    }

    /// Gives a pod the devices that it requests, once.
    ///
    /// # Errors
    /// Too few devices are free. The message is that of a scheduler.
    pub(super) fn take(&mut self, pod: &Pod) -> Result<(), String> {
        let uid = pod.uid().unwrap_or_default();
        let Some(devices) = &self.devices else {
            return Ok(());
        };
        if self.taken.contains_key(&uid) {
            return Ok(());
        }
        let mut given = BTreeMap::new();
        for resource in requested(pod) {
            let wanted = wanted_by_pod(pod, &resource);
            let is_taken = |index: &usize| {
                let mut all = self.taken.values().filter_map(|of_pod| of_pod.get(&resource));
                all.any(|taken| taken.contains(index))
            };
            let count = devices.get(&resource).map_or(0, |devices| devices.ids.len());
            let free = (0..count).filter(|index| !is_taken(index));
            let free: Vec<usize> = free.take(wanted).collect();
            if free.len() < wanted {
                return Err(format!("0/1 nodes are available: 1 Insufficient {resource}."));
            }
            given.insert(resource, free);
        }
        self.taken.insert(uid, given);
        Ok(())
    }

    /// Frees the devices of a pod. Returns true if it had any.
    pub(super) fn give_back(&mut self, uid: &str) -> bool {
        let taken = self.taken.remove(uid);
        taken.is_some_and(|of_pod| of_pod.values().any(|indices| !indices.is_empty()))
    }

    /// Returns the variables with the devices of a container. Main containers have different devices.
    pub(super) fn variables(&self, pod: &Pod, container: &Container) -> BTreeMap<String, String> {
        let mut variables: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let of_pod = self.taken.get(&pod.uid().unwrap_or_default());
        let main = pod.spec.iter().flat_map(|spec| &spec.containers);
        for (resource, devices) in self.devices.iter().flatten() {
            let ids = variables.entry(devices.variable.clone()).or_default();
            let indices = of_pod.and_then(|of_pod| of_pod.get(resource));
            // An init container has the first ones, because it ends before the others start.
            let is_main = main.clone().any(|other| other.name == container.name);
            let before = main
                .clone()
                .take_while(|other| is_main && other.name != container.name);
            let before = before.map(|other| wanted(other, resource)).sum();
            let own = indices
                .into_iter()
                .flatten()
                .skip(before)
                .take(wanted(container, resource));
            ids.extend(
                own.filter_map(|index| devices.ids.get(*index))
                    .map(String::as_str),
            );
        }
        let variables = variables.into_iter();
        variables.map(|(name, ids)| (name, ids.join(","))).collect()
    }
}

/// Returns the resources of devices that a pod requests. They have the domain of their vendor, unlike `cpu`.
fn requested(pod: &Pod) -> BTreeSet<String> {
    let spec = pod.spec.iter();
    let containers = spec.flat_map(|spec| {
        spec.containers
            .iter()
            .chain(spec.init_containers.iter().flatten())
    });
    let resources = containers.filter_map(|container| container.resources.as_ref());
    let lists = resources.flat_map(|resources| [&resources.limits, &resources.requests]);
    let names = lists.flatten().flat_map(|list| list.keys());
    names.filter(|name| name.contains('/')).cloned().collect()
}

/// Returns each resource that a pod requests more of than there are devices, with the request and their number.
pub(super) fn missing(devices: &BTreeMap<String, Devices>, pod: &Pod) -> Vec<(String, usize, usize)> {
    let requests = requested(pod).into_iter().map(|resource| {
        let count = devices.get(&resource).map_or(0, |devices| devices.ids.len());
        (wanted_by_pod(pod, &resource), count, resource)
    });
    let missing = requests.filter(|(wanted, count, _)| wanted > count);
    missing
        .map(|(wanted, count, resource)| (resource, wanted, count))
        .collect()
}

/// Returns the number of devices that a pod needs at a time.
fn wanted_by_pod(pod: &Pod, resource: &str) -> usize {
    let Some(spec) = &pod.spec else { return 0 };
    let main = spec
        .containers
        .iter()
        .map(|container| wanted(container, resource))
        .sum();
    let init = spec.init_containers.iter().flatten();
    let init = init.map(|container| wanted(container, resource));
    init.chain([main]).max().unwrap_or_default()
}

/// Returns the number of devices that a container requests. A limit is a request too.
fn wanted(container: &Container, resource: &str) -> usize {
    let resources = container.resources.as_ref();
    let lists = resources.map(|resources| [&resources.limits, &resources.requests]);
    let quantity = lists
        .into_iter()
        .flatten()
        .flatten()
        .find_map(|list| list.get(resource));
    let number = quantity.and_then(|quantity| amount(&quantity.0)).unwrap_or(0.0);
    // A number that is too large for the machine is as good as the largest one.
    number.ceil().clamp(0.0, f64::from(u16::MAX)) as usize
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, gpus: &[u32]) -> Pod {
        let containers = gpus.iter().enumerate().map(|(at, count)| {
            let name = format!("c{at}");
            json!({"name": name, "resources": {"limits": {"nvidia.com/gpu": count.to_string()}}})
        });
        let containers: Vec<_> = containers.collect();
        serde_json::from_value(json!({"metadata": {"uid": uid}, "spec": {"containers": containers}})).unwrap()
    }

    fn cuda(shares: &Shares, pod: &Pod) -> Vec<String> {
        let containers = &pod.spec.as_ref().unwrap().containers;
        let variables = containers
            .iter()
            .map(|container| shares.variables(pod, container));
        variables.map(|all| all["CUDA_VISIBLE_DEVICES"].clone()).collect()
    }

    #[test]
    fn gpus_are_listed_whole_or_in_parts() {
        let listed = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-a)\n  MIG 1g.5gb     Device  0: (UUID: MIG-1)\n  \
            MIG 3g.20gb     Device  1: (UUID: MIG-2)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-b)\nGPU 2: NVIDIA T4 (UUID: GPU-c)\n";
        let all = nvidia(listed);
        let ids = |resource: &str| all[resource].ids.join(" ");
        assert_eq!(ids("nvidia.com/gpu"), "1 2");
        assert_eq!(ids("nvidia.com/mig-1g.5gb"), "MIG-1");
        assert_eq!(ids("nvidia.com/mig-3g.20gb"), "MIG-2");
        assert_eq!(nvidia(""), BTreeMap::new());
        assert_eq!(nvidia("No devices were found\n"), BTreeMap::new());
    }

    #[test]
    fn gpus_of_amd_have_an_id() {
        let nodes = std::env::temp_dir().join(format!("kfd-{}", std::process::id()));
        for (node, id) in [("0", "0\n"), ("1", "27134\n"), ("2", "5095\n")] {
            std::fs::create_dir_all(nodes.join(node)).unwrap();
            std::fs::write(nodes.join(node).join("gpu_id"), id).unwrap();
        }
        assert_eq!(amd(&nodes), 2);
        assert_eq!(amd(&nodes.join("none")), 0);
        std::fs::remove_dir_all(&nodes).unwrap();
    }

    #[test]
    fn pods_have_different_devices_and_wait_for_missing_ones() {
        let two = devices("CUDA_VISIBLE_DEVICES", vec!["0".to_owned(), "1".to_owned()]);
        let mut shares = Shares::new(Some(BTreeMap::from([("nvidia.com/gpu".to_owned(), two)])));
        let (first, second, both) = (pod("1", &[1]), pod("2", &[1]), pod("3", &[1, 1]));
        shares.take(&first).unwrap();
        shares.take(&first).unwrap();
        let message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.";
        assert_eq!(shares.take(&both), Err(message.to_owned()));
        shares.take(&second).unwrap();
        assert_eq!(cuda(&shares, &first), vec!["0".to_owned()]);
        assert_eq!(cuda(&shares, &second), vec!["1".to_owned()]);
        // A pod without requests has none, as in a cluster.
        let without = pod("4", &[0]);
        shares.take(&without).unwrap();
        assert_eq!(cuda(&shares, &without), [""]);
        assert!(!shares.give_back("4"));

        assert!(shares.give_back("1"));
        shares.take(&both).unwrap_err();
        assert!(shares.give_back("2"));
        shares.take(&both).unwrap();
        assert_eq!(cuda(&shares, &both), ["0", "1"]);
    }

    #[test]
    fn pods_wait_for_devices_that_a_machine_does_not_have_unless_requests_have_no_effect() {
        let (with, without) = (pod("1", &[1]), pod("2", &[0]));
        let mut shares = Shares::new(Some(BTreeMap::new()));
        let message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.";
        assert_eq!(shares.take(&with), Err(message.to_owned()));
        assert_eq!(shares.take(&without), Ok(()));
        assert_eq!(Shares::new(None).take(&with), Ok(()));
        assert_eq!(
            missing(&BTreeMap::new(), &with),
            [("nvidia.com/gpu".to_owned(), 1, 0)]
        );
        assert_eq!(missing(&BTreeMap::new(), &without), []);
    }
}
