//! State shared by the tasks of all pods.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::addresses::Addresses;
use super::api::{PodApi, PodRef, ServiceRef};
use super::config::NodeConfig;
use super::containers::ContainerTable;
use super::devices::Shares;
use super::env_values::{ConfigData, ConfigRef, HOST_IP, ValueSources, config_refs};
use super::event::NodeEvent;
use super::exec::Folders;
use super::guard::Guard;
use super::host_names::{Domain, HostNames, possible_names};
use super::logs::LogFile;
use super::output::{OutputWriter, StoredOutput, find_runs};
use super::prepare::{HostVariables, Preparation, PrepareError, mounts, names_in_values, prepare};
use super::resources::Machine;
use super::volumes::{Mount, mounted};

/// The parts of a node agent that all its pods share.
pub(super) struct Agent {
    pub(super) config: NodeConfig,
    pub(super) api: Arc<dyn PodApi>,
    pub(super) guard: Arc<Guard>,
    pub(super) events: mpsc::Sender<NodeEvent>,
    pub(super) folders: Folders,
    addresses: Mutex<Addresses>,
    /// The pods that exist, by namespace and name.
    siblings: Mutex<BTreeMap<(String, String), Sibling>>,
    /// The services whose names have an address and no pod yet, by namespace. The first pod that one selects gets its
    /// address.
    without_pods: Mutex<Vec<(String, ServiceRef)>>,
    host_variables: HostVariables,
    machine: Machine,
    log_files: Mutex<BTreeMap<PathBuf, u32>>,
    pub(super) containers: Arc<ContainerTable>,
    shares: Mutex<Shares>,
}

/// The longest time that a pod waits for names that other pods of its domain may get. In a cluster a program can
/// resolve a name again; here its environment is set once.
const MISSING_NAME_TIMEOUT: Duration = Duration::from_secs(10);

struct Sibling {
    /// The UID of its controller.
    controller: Option<String>,
    labels: BTreeMap<String, String>,
    /// The time at which this agent first observed the pod.
    since: Instant,
}

/// The reason that a container does not start now.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error("names and values could not be read from the API: {0}")]
    Api(String),
    #[error("pod {0} does not exist yet")]
    Name(String),
}

impl Agent {
    /// # Errors
    /// No loopback addresses are available, `/bin/sh` cannot be run, or a directory cannot be created.
    pub(super) fn new(
        config: NodeConfig,
        api: Arc<dyn PodApi>,
        events: mpsc::Sender<NodeEvent>,
    ) -> io::Result<Self> {
        if let Some(logs) = &config.logs {
            fs::create_dir_all(logs).map_err(|error| {
                let text = format!("the directory {} for logs: {error}", logs.display());
                io::Error::new(error.kind(), text)
            })?;
        }
        let folders = Folders::create().map_err(|error| {
            let directory = std::env::temp_dir();
            let text = format!(
                "the temporary directory {}: {error}; set TMPDIR",
                directory.display()
            );
            io::Error::new(error.kind(), text)
        })?;
        Ok(Self {
            api,
            guard: Guard::start(folders.root())?,
            events,
            addresses: Mutex::new(Addresses::claim()?),
            siblings: Mutex::default(),
            without_pods: Mutex::default(),
            host_variables: HostVariables::this(folders.clone()),
            folders,
            machine: Machine::this(),
            log_files: Mutex::default(),
            containers: Arc::default(),
            shares: Mutex::new(Shares::new(config.devices.clone())),
            config,
        })
    }

    /// Returns the pod's address: the one in its status if it can be kept, or else the one of its name.
    pub(super) fn address(&self, pod: &Pod) -> Ipv4Addr {
        let at = PodRef::from_pod(pod);
        let known = pod
            .status
            .as_ref()
            .and_then(|status| status.pod_ip.as_deref())
            .and_then(|ip| ip.parse().ok());
        if known.is_none()
            && let Some(service) = self.take_service_without_pods(pod, &at)
        {
            let address = self.address_of(&at.namespace, &service, None);
            let mut addresses = self.addresses.lock();
            return addresses.share(&at.namespace, &at.name, address);
        }
        self.address_of(&at.namespace, &at.name, known)
    }

    /// Returns the name of a service that selects the pod and had none, except that of the pod's own name.
    fn take_service_without_pods(&self, pod: &Pod, at: &PodRef) -> Option<String> {
        let mut without_pods = self.without_pods.lock();
        without_pods.retain(|(namespace, service)| (namespace, &service.name) != (&at.namespace, &at.name));
        let mut all = without_pods.iter();
        let taken =
            all.position(|(namespace, service)| *namespace == at.namespace && service.selects(pod.labels()))?;
        Some(without_pods.swap_remove(taken).1.name)
    }

    /// Returns the address of a service's name: that of the pod of this name, or of the first pod that it selects. A
    /// service without pods has an address of its own, which its first pod gets.
    fn address_of_service(&self, namespace: &str, service: &ServiceRef) -> Ipv4Addr {
        let siblings = self.siblings.lock();
        let key = (namespace.to_owned(), service.name.clone());
        let is_pod = siblings.contains_key(&key);
        let in_namespace = siblings
            .range((namespace.to_owned(), String::new())..)
            .take_while(|((other, _), _)| !is_pod && other == namespace);
        let mut selected = in_namespace.filter(|(_, sibling)| service.selects(&sibling.labels));
        let pod = match selected.next() {
            Some(((_, pod), _)) => pod.clone(),
            None => {
                let mut without_pods = self.without_pods.lock();
                let entry = (namespace.to_owned(), service.clone());
                if !is_pod && !without_pods.contains(&entry) {
                    without_pods.push(entry);
                }
                service.name.clone()
            }
        };
        drop(siblings);
        self.address_of(namespace, &pod, None)
    }

    fn address_of(&self, namespace: &str, name: &str, known: Option<Ipv4Addr>) -> Ipv4Addr {
        let mut addresses = self.addresses.lock();
        let given = match known {
            Some(known) => addresses.adopt(namespace, name, known),
            None => addresses.get_or_assign(namespace, name),
        };
        given.unwrap_or_else(|error| {
            tracing::error!(pod = name, %error, "no loopback address is left; the pod shares the node's");
            HOST_IP
        })
    }

    /// Records whether a pod exists, so that pods of one controller find each other by name.
    pub(super) fn track(&self, pod: &Pod, exists: bool) {
        let mut siblings = self.siblings.lock();
        let at = PodRef::from_pod(pod);
        if exists {
            let sibling = siblings
                .entry((at.namespace, at.name))
                .or_insert_with(|| Sibling {
                    controller: None,
                    labels: BTreeMap::new(),
                    since: Instant::now(),
                });
            sibling.controller = controller(pod);
            sibling.labels.clone_from(pod.labels());
        } else {
            siblings.remove(&(at.namespace, at.name));
        }
    }

    /// Collects the data that a container needs, and prepares the container.
    pub(super) async fn prepare(
        &self,
        pod: &Pod,
        address: Ipv4Addr,
        container: &Container,
        marker: &str,
    ) -> Result<Preparation, StartError> {
        let at = PodRef::from_pod(pod);
        let spec = pod.spec.as_ref();
        let mounted = spec.into_iter().flat_map(|spec| mounted(container, spec));
        let stores = config_refs(container).into_iter().chain(mounted);
        let contents = self.contents(&at.namespace, stores).await?;
        let sources = ValueSources {
            pod,
            address,
            node: &self.config.name,
            machine: self.machine,
            contents,
            devices: self.shares().variables(pod, container),
        };
        let mut wanted = names_in_values(container, &sources);
        let domain = domain(pod);
        if domain.is_some() {
            let texts = texts(container, &sources.contents);
            wanted.extend(texts.flat_map(possible_names).map(str::to_owned));
        }
        let names = HostNames {
            namespace: at.namespace.clone(),
            addresses: self.addresses_of(pod, &at, address, wanted).await?,
            domain,
        };
        let missing = texts(container, &sources.contents).find_map(|text| names.missing_in(text));
        if let Some(name) = missing
            && self.is_young(&at)
        {
            return Err(StartError::Name(name.to_owned()));
        }
        Ok(prepare(
            container,
            &sources,
            &names,
            &self.config,
            &self.host_variables,
            marker,
        )?)
    }

    /// Returns the devices of pods.
    pub(super) fn shares(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock()
    }

    async fn contents(
        &self,
        namespace: &str,
        stores: impl Iterator<Item = ConfigRef>,
    ) -> Result<ConfigData, StartError> {
        let mut contents = BTreeMap::new();
        for store in stores {
            let found = self.api.contents(namespace, &store).await;
            if let Some(entries) = found.map_err(|error| StartError::Api(error.to_string()))? {
                contents.insert(store, entries);
            }
        }
        Ok(contents)
    }

    /// Returns the container's mounts with their current contents.
    pub(super) async fn mounts(&self, pod: &Pod, container: &Container) -> Result<Vec<Mount>, StartError> {
        let namespace = pod.namespace().unwrap_or_default();
        let spec = pod.spec.as_ref();
        let mounted = spec.into_iter().flat_map(|spec| mounted(container, spec));
        let contents = self.contents(&namespace, mounted).await?;
        mounts(container, pod, &contents, &self.folders, &self.config)
            .map_err(|error| StartError::Prepare(PrepareError::Config(error)))
    }

    /// Returns the addresses of the names that resolve for the pod: its own, the pods of its controller, the services
    /// of its namespace. Only the wanted names are looked up, because a namespace may have thousands.
    async fn addresses_of(
        &self,
        pod: &Pod,
        at: &PodRef,
        address: Ipv4Addr,
        mut wanted: BTreeSet<String>,
    ) -> Result<BTreeMap<String, Ipv4Addr>, StartError> {
        let mut addresses = BTreeMap::from([(at.name.clone(), address)]);
        wanted.remove(&at.name);
        let own = controller(pod);
        let (siblings, others): (BTreeSet<_>, BTreeSet<_>) = {
            let known = self.siblings.lock();
            wanted.into_iter().partition(|name| {
                let found = known.get(&(at.namespace.clone(), name.clone()));
                own.is_some() && found.is_some_and(|sibling| sibling.controller == own)
            })
        };
        for name in siblings {
            let address = self.address_of(&at.namespace, &name, None);
            addresses.insert(name, address);
        }
        let services = self.api.services(&at.namespace, &others).await;
        for service in services.map_err(|error| StartError::Api(error.to_string()))? {
            let address = self.address_of_service(&at.namespace, &service);
            addresses.insert(service.name, address);
        }
        Ok(addresses)
    }

    /// Returns true if other pods of the pod's domain may still be created.
    fn is_young(&self, at: &PodRef) -> bool {
        let siblings = self.siblings.lock();
        let known = siblings.get(&(at.namespace.clone(), at.name.clone()));
        known.is_some_and(|sibling| sibling.since.elapsed() < MISSING_NAME_TIMEOUT)
    }

    /// Sends an event to the user. A full channel does not block the pod.
    pub(super) fn send_event(&self, event: NodeEvent) {
        if let Err(mpsc::error::TrySendError::Full(event)) = self.events.try_send(event) {
            let events = self.events.clone();
            tokio::spawn(async move {
                let _ = events.send(event).await;
            });
        }
    }

    /// Returns the writer of the output of a container's next run, if output is kept.
    pub(super) fn keep_output(&self, at: &PodRef, container: &str) -> Option<OutputWriter> {
        if !self.config.keep_output {
            return None;
        }
        let folder = self.output_folder(at);
        let make = |run| StoredOutput::new(folder.join(format!("{container}.{run}")));
        Some(OutputWriter::new(self.containers.begin(at, container, make)))
    }

    /// Returns the directory of a pod's stored output.
    fn output_folder(&self, at: &PodRef) -> PathBuf {
        match &self.config.output {
            Some(output) => output.join(&at.uid),
            None => self.folders.output(&at.namespace, &at.name),
        }
    }

    /// Takes over the output that an earlier agent has stored for these pods, and removes that of all other pods.
    pub(super) fn take_over_output(&self, pods: &[Pod]) {
        let Some(output) = self.config.output.as_ref().filter(|_| self.config.keep_output) else {
            return;
        };
        let uids: BTreeSet<_> = pods.iter().filter_map(ResourceExt::uid).collect();
        let found = fs::read_dir(output).into_iter().flatten().flatten();
        for folder in found.filter(|folder| !uids.contains(&*folder.file_name().to_string_lossy())) {
            remove_folder(&folder.path());
        }
        for pod in pods {
            let at = PodRef::from_pod(pod);
            for (container, runs) in find_runs(&self.output_folder(&at)) {
                self.containers.take_over(&at, &container, runs);
            }
        }
    }

    /// Removes what a pod that no longer exists has left. A pod that a later agent takes over keeps its output.
    pub(super) fn forget(&self, at: &PodRef, exists: bool) {
        if !exists && self.config.keep_output {
            remove_folder(&self.output_folder(at));
        }
        self.folders.remove(at);
        self.containers.remove(at);
    }

    /// Returns the file for the output of a container's next run. Returns `None` if logs are not stored.
    pub(super) fn log_file(&self, at: &PodRef, container: Option<&str>) -> Option<LogFile> {
        let mut directory = self.config.logs.clone()?;
        if self.config.namespace.is_none() {
            directory.push(&at.namespace);
        }
        let stem = match container {
            Some(container) => format!("{}.{container}", at.name),
            None => at.name.clone(),
        };
        let run = {
            let mut files = self.log_files.lock();
            let runs = files.entry(directory.join(&stem)).or_default();
            *runs += 1;
            *runs - 1
        };
        let name = if run == 0 {
            format!("{stem}.log")
        } else {
            format!("{stem}.{run}.log")
        };
        Some(LogFile::new(directory.join(name)))
    }
}

/// Removes a directory. A pod without output has none.
fn remove_folder(folder: &Path) {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(folder = %folder.display(), %error, "the output of a pod is not removed");
        }
        _ => {}
    }
}

/// Returns the domain in the pod's specification.
fn domain(pod: &Pod) -> Option<Domain> {
    let spec = pod.spec.as_ref()?;
    let (subdomain, host) = (spec.subdomain.as_deref()?, spec.hostname.as_deref()?);
    Some(Domain::new(subdomain, host))
}

/// Returns the texts of a container and of its ConfigMaps and Secrets, as they are written.
fn texts<'a>(container: &'a Container, contents: &'a ConfigData) -> impl Iterator<Item = &'a str> {
    let variables = container.env.iter().flatten().filter_map(|v| v.value.as_deref());
    let entries = contents.values().flat_map(BTreeMap::values);
    let entries = entries.filter_map(|bytes| std::str::from_utf8(bytes).ok());
    let words = [&container.command, &container.args]
        .into_iter()
        .flatten()
        .flatten();
    variables.chain(entries).chain(words.map(String::as_str))
}

fn controller(pod: &Pod) -> Option<String> {
    let owner = pod
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true))?;
    Some(owner.uid.clone())
}
