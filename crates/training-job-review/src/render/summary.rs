//! Sums up the resources that jobs request: as a table for people, as YAML or JSON for programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, Service};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use training_job::api::labels::Keys;
use training_job::validate::amount;

use super::args::Format;
use super::selection::label;
use crate::kinds::Kinds;
use crate::table::Table;
use crate::write;

#[derive(Default, Serialize)]
struct Summary {
    jobs: Vec<Job>,
}

#[derive(Serialize)]
struct Job {
    name: String,
    namespace: String,
    /// In the order in which their pods are created.
    roles: Vec<Role>,
    total: Demand,
    /// The ports of the service that all roles share, if there is one.
    #[serde(skip)]
    ports: BTreeSet<(i32, String)>,
}

#[derive(Default, Serialize)]
struct Role {
    role: String,
    images: BTreeSet<String>,
    ports: BTreeSet<String>,
    #[serde(flatten)]
    demand: Demand,
}

/// The replicas and the requests of pods.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Demand {
    replicas: usize,
    #[serde(serialize_with = "as_quantities")]
    requests: Amounts,
    #[serde(serialize_with = "as_number")]
    gpus: f64,
}

/// Serializes a whole number without a decimal point.
fn as_number<S: serde::Serializer>(n: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match format!("{n}").parse::<u64>() {
        Ok(whole) => serializer.serialize_u64(whole),
        Err(_) => serializer.serialize_f64(*n),
    }
}

type Amounts = BTreeMap<String, f64>;

/// Returns a summary of rendered objects, as a table or in `format`.
pub(crate) fn text(objects: &[Value], kinds: &Kinds, format: Option<Format>) -> Result<String, String> {
    let mut summary = Summary::default();
    for object in objects {
        add(&mut summary, object, kinds.keys_of(object)).map_err(|error| error.to_string())?;
    }
    match format {
        None => Ok(table(&summary)),
        Some(Format::Yaml) => write::yaml(&summary),
        Some(Format::Json) => write::json(&summary),
    }
}

fn add(summary: &mut Summary, object: &Value, keys: Keys) -> serde_json::Result<()> {
    let (job, role) = (
        label(object, &keys.job_name()),
        label(object, &keys.replica_type()),
    );
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let jobs = &mut summary.jobs;
    // Two files may contain the same job in two forms. The pods of each come last.
    let is_new = |last: &Job| {
        (last.name.as_str(), last.namespace.as_str()) != (job, namespace)
            || (object["kind"] != "Pod" && last.total.replicas > 0)
    };
    if jobs.last().is_none_or(is_new) {
        jobs.push(Job {
            name: job.to_owned(),
            namespace: namespace.to_owned(),
            roles: Vec::new(),
            total: Demand::default(),
            ports: BTreeSet::new(),
        });
    }
    let Some(job) = jobs.last_mut() else { return Ok(()) };
    let leads_to_all = object["spec"]["selector"].get(keys.job_name()).is_some();
    if object["kind"] == "Service" && role.is_empty() && leads_to_all {
        job.ports.extend(ports(object)?);
    }
    if role.is_empty() {
        return Ok(());
    }
    let known = job.roles.iter().position(|r| r.role == role);
    let at = known.unwrap_or_else(|| {
        job.roles.push(Role {
            role: role.to_owned(),
            ..Role::default()
        });
        job.roles.len() - 1
    });
    let entry = &mut job.roles[at];
    if object["kind"] == "Service" {
        entry
            .ports
            .extend(ports(object)?.into_iter().map(|(_, text)| text));
        return Ok(());
    }
    let spec = Pod::deserialize(object)?.spec.unwrap_or_default();
    let containers = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    // The service that all roles share has the ports of each. Its pods show whose they are.
    let own = spec.containers.iter().flat_map(|c| c.ports.iter().flatten());
    let own: BTreeSet<i32> = own.map(|port| port.container_port).collect();
    let of_role = job.ports.iter().filter(|(number, _)| own.contains(number));
    entry.ports.extend(of_role.map(|(_, text)| text.clone()));
    entry.images.extend(containers.filter_map(|c| c.image.clone()));
    let requests = pod_requests(&spec);
    entry.demand.add(&requests);
    job.total.add(&requests);
    Ok(())
}

/// Returns the demand of the pods among a job's objects.
pub(crate) fn demand(objects: &[Value]) -> Demand {
    let pods = objects.iter().filter(|object| object["kind"] == "Pod");
    let mut demand = Demand::default();
    for pod in pods.filter_map(|pod| Pod::deserialize(pod).ok()) {
        demand.add(&pod_requests(&pod.spec.unwrap_or_default()));
    }
    demand
}

impl Demand {
    fn add(&mut self, requests: &Amounts) {
        self.replicas += 1;
        let gpus = requests.iter().filter(|(name, _)| is_gpu(name));
        self.gpus += gpus.map(|(_, n)| n).sum::<f64>();
        add_up(&mut self.requests, requests);
    }

    /// Returns the number of GPUs as text.
    pub(crate) fn gpus(&self) -> String {
        decimals(self.gpus)
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.replicas == 1 { "" } else { "s" };
        write!(f, "{} pod{plural}", self.replicas)?;
        if self.gpus > 0.0 {
            let plural = if self.gpus == 1.0 { "" } else { "s" };
            write!(f, ", {} GPU{plural}", self.gpus())?;
        }
        Ok(())
    }
}

/// Returns the ports of a service, by number and as text.
fn ports(service: &Value) -> serde_json::Result<Vec<(i32, String)>> {
    let ports = Service::deserialize(service)?.spec.and_then(|s| s.ports);
    let ports = ports.unwrap_or_default().into_iter().map(|port| {
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let name = port.name.map(|n| format!(" {n}")).unwrap_or_default();
        (port.port, format!("{}/{protocol}{name}", port.port))
    });
    Ok(ports.collect())
}

/// Returns the resources that the scheduler reserves for a pod: the sum over its containers, or the demand of an init
/// container and the sidecars before it if that is greater.
fn pod_requests(spec: &PodSpec) -> Amounts {
    let mut sidecars = Amounts::new();
    let mut start = Amounts::new();
    for init in spec.init_containers.iter().flatten() {
        let mut needs = requests(init);
        add_up(&mut needs, &sidecars);
        if init.restart_policy.as_deref() == Some("Always") {
            sidecars.clone_from(&needs);
        }
        for (name, n) in needs {
            let max = start.entry(name).or_default();
            *max = max.max(n);
        }
    }
    let mut total = sidecars;
    for container in &spec.containers {
        add_up(&mut total, &requests(container));
    }
    for (name, n) in start {
        let max = total.entry(name).or_default();
        *max = max.max(n);
    }
    total
}

/// Returns a container's requests. Without a request the limit is requested, by the API server's default.
fn requests(container: &Container) -> Amounts {
    let resources = container.resources.clone().unwrap_or_default();
    let mut all = resources.limits.unwrap_or_default();
    all.extend(resources.requests.unwrap_or_default());
    let amounts = all.into_iter().map(|(name, Quantity(n))| (name, amount(&n)));
    amounts
        .filter_map(|(name, amount)| Some((name, amount?)))
        .collect()
}

fn add_up(sum: &mut Amounts, more: &Amounts) {
    for (name, n) in more {
        *sum.entry(name.clone()).or_default() += n;
    }
}

/// Returns true if a resource is a GPU by the naming of the vendors' device plug-ins. Each of Nvidia's slices of a
/// GPU counts as one.
fn is_gpu(resource: &str) -> bool {
    resource.split_once('/').is_some_and(|(domain, name)| {
        name.contains("gpu") || domain.contains("gpu") || name.starts_with("mig-")
    })
}

fn as_quantities<S: serde::Serializer>(amounts: &Amounts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(amounts.iter().map(|(name, n)| (name, quantity(*n))))
}

/// Returns a quantity in the unit that makes it shortest.
fn quantity(n: f64) -> String {
    let plain = decimals(n);
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi"]
        .iter()
        .zip(1..)
        .map(|(u, p)| (u, 1024_f64.powi(p)));
    let decimal = ["k", "M", "G", "T", "P"]
        .iter()
        .zip(1..)
        .map(|(u, p)| (u, 1000_f64.powi(p)));
    let whole = binary
        .chain(decimal)
        .filter(|(_, size)| n >= *size && n % size == 0.0)
        .map(|(unit, size)| format!("{:.0}{unit}", n / size));
    let shortest = whole.min_by_key(String::len);
    shortest.filter(|text| text.len() < plain.len()).unwrap_or(plain)
}

fn decimals(n: f64) -> String {
    let text = format!("{n:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn table(summary: &Summary) -> String {
    let mut table = Table::new(&[
        "JOB", "ROLE", "REPLICAS", "CPU", "MEMORY", "GPUS", "OTHER", "PORTS", "IMAGES",
    ]);
    for job in &summary.jobs {
        let name = format!("{}/{}", job.namespace, job.name);
        let rows = job.roles.iter().map(|r| {
            let join = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
            (r.role.as_str(), &r.demand, join(&r.ports), join(&r.images))
        });
        let total = ("total", &job.total, String::new(), String::new());
        for (role, demand, ports, images) in rows.chain(std::iter::once(total)) {
            let requested = |name: &str| {
                demand
                    .requests
                    .get(name)
                    .map(|n| quantity(*n))
                    .unwrap_or_default()
            };
            let rest = demand.requests.iter();
            let rest = rest.filter(|(name, _)| !is_gpu(name) && !matches!(name.as_str(), "cpu" | "memory"));
            let rest: Vec<_> = rest.map(|(name, n)| format!("{name} {}", quantity(*n))).collect();
            let gpus = if demand.gpus > 0.0 {
                decimals(demand.gpus)
            } else {
                String::new()
            };
            table.row([
                name.clone(),
                role.to_owned(),
                demand.replicas.to_string(),
                requested("cpu"),
                requested("memory"),
                gpus,
                rest.join(", "),
                ports,
                images,
            ]);
        }
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_short_and_exact() {
        for (text, expected) in [
            ("500m", "0.5"),
            ("4", "4"),
            ("4608Mi", "4608Mi"),
            ("1.5Gi", "1536Mi"),
            ("8Gi", "8Gi"),
            ("1G", "1G"),
            ("1e3", "1k"),
            ("2000", "2k"),
            ("1500", "1500"),
        ] {
            assert_eq!(quantity(amount(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn sidecars_run_beside_and_init_containers_before() {
        let container =
            |name: &str, cpu: &str| serde_json::json!({"name": name, "resources": {"limits": {"cpu": cpu}}});
        let mut sidecar = container("sidecar", "1");
        sidecar["restartPolicy"] = "Always".into();
        let spec = serde_json::json!({
            "initContainers": [container("early", "2"), sidecar, container("late", "9")],
            "containers": [container("a", "3"), container("b", "500m")],
        });
        let spec: PodSpec = serde_json::from_value(spec).unwrap();
        assert_eq!(pod_requests(&spec)["cpu"], 10.0);
    }
}
