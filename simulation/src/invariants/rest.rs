//! What must hold when all is calm: no faults, nobody does anything, and time has passed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kube_memory::Cluster;
use serde_json::Value;

use crate::job;
use crate::kubelet;

/// What is stored.
pub struct Rest {
    jobs: Vec<Value>,
    pods: Stock,
    services: Stock,
}

/// All pods, or all services. They are found by their owners and names, since there may be very many.
#[derive(Default)]
struct Stock {
    all: Vec<Value>,
    /// By the owner's UID, their places.
    owned: HashMap<String, Vec<usize>>,
    named: HashMap<String, Vec<usize>>,
}

impl Stock {
    fn of(all: Vec<Value>) -> Self {
        let mut stock = Self::default();
        for (at, child) in all.iter().enumerate() {
            stock.named.entry(name(child).to_owned()).or_default().push(at);
            if let Some(owner) = job::controller(child) {
                stock.owned.entry(owner.to_owned()).or_default().push(at);
            }
        }
        Self { all, ..stock }
    }

    fn at<'a>(&'a self, places: Option<&'a Vec<usize>>) -> impl Iterator<Item = &'a Value> {
        places.into_iter().flatten().map(|at| &self.all[*at])
    }

    /// Those of this job, by name.
    fn children(&self, job: &Value) -> Children<'_> {
        let places = uid(job).and_then(|owner| self.owned.get(owner));
        self.at(places).map(|child| (name(child), child)).collect()
    }

    /// Those of this name, in all namespaces.
    fn named(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.at(self.named.get(name))
    }
}

impl Rest {
    /// Reads a cluster.
    pub fn of(cluster: &Cluster) -> Self {
        let all = |plural: &str| -> Vec<Value> {
            let objects = cluster.list(plural, None);
            objects.iter().map(|o| o.value().clone()).collect()
        };
        Self {
            jobs: job::PLURALS.iter().flat_map(|p| all(p)).collect(),
            pods: Stock::of(all("pods")),
            services: Stock::of(all("services")),
        }
    }

    /// These jobs and pods.
    #[cfg(test)]
    pub(super) fn with(jobs: Vec<Value>, pods: Vec<Value>) -> Self {
        Self {
            jobs,
            pods: Stock::of(pods),
            services: Stock::default(),
        }
    }

    /// All that is wrong, as the number of an invariant and a sentence.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let uids: BTreeSet<&str> = self.jobs.iter().filter_map(uid).collect();
        for child in self.pods.all.iter().chain(&self.services.all) {
            if job::controller(child).is_some_and(|owner| !uids.contains(owner)) {
                problems.push(("I5", format!("{} is left of a job that is gone", name(child))));
            }
        }
        for job in &self.jobs {
            let found = [
                ("I7", self.desired(job)),
                ("I10", self.counted(job)),
                ("I13", self.agreed(job)),
            ];
            let of_job = |what| {
                format!(
                    "{} {}: {what}",
                    job["kind"].as_str().unwrap_or_default(),
                    name(job)
                )
            };
            problems.extend(
                found
                    .into_iter()
                    .filter_map(|(id, what)| Some((id, of_job(what?)))),
            );
        }
        problems
    }

    /// Whether a name that some job needs is somebody else's.
    pub fn is_blocked(&self) -> bool {
        self.jobs.iter().any(|job| self.blocks(job))
    }

    fn blocks(&self, job: &Value) -> bool {
        job::names(job).iter().any(|name| {
            let mut holders = self.pods.named(name).chain(self.services.named(name));
            holders.any(|holder| job::controller(holder) != uid(job))
        })
    }

    /// I7: a job has what its spec asks for, by its state, and nothing else.
    fn desired(&self, job: &Value) -> Option<String> {
        let mut pods = self.pods.children(job);
        let mut services = self.services.children(job);
        if job::end(job).is_some() || job::is_suspended(job) {
            // A child whose label was edited is seen by no watch, and found only when its name is needed.
            pods.retain(|_, pod| job::is_labelled(pod));
            services.retain(|_, service| job::is_labelled(service));
        }
        if job::is_deleting(job) {
            return Some("it is being deleted".to_owned());
        }
        if let Some(at) = pods.values().find(job::is_deleting) {
            return Some(format!("{} is being deleted", name(at)));
        }
        if self.blocks(job) {
            return None;
        }
        if job::is_invalid(job) {
            let end = job::end(job);
            // One that has started goes on as it was, and its events tell.
            let started = !job["status"]["startTime"].is_null();
            let told = end.is_some() || started || job::is(job, "Created");
            let message = "it is invalid, and nobody says so".to_owned();
            return match end {
                Some(_) => overdue(job),
                None => (!told).then_some(message),
            };
        }
        if let Some(end) = job::end(job) {
            return tidied(job, end, &pods, &services);
        }
        if job::is_suspended(job) {
            if !job::is(job, "Suspended") {
                return Some("it is not suspended".to_owned());
            }
            let left = pods.keys().chain(services.keys()).next()?;
            return Some(format!("it is suspended and has {left}"));
        }
        active(job, &pods, &services)
    }

    /// I10: the counts of a job that has not ended are those of its pods.
    fn counted(&self, job: &Value) -> Option<String> {
        if job::end(job).is_some()
            || job::is_invalid(job)
            || job::is_suspended(job)
            || job::is_deleting(job)
            || self.blocks(job)
        {
            return None;
        }
        let mut pods = self.pods.children(job);
        let names = job::names(job);
        // A pod whose label was edited is seen by no watch, and found only when its name is needed.
        pods.retain(|name, pod| job::is_labelled(pod) || names.contains(*name));
        for role in job::roles(job).keys() {
            let prefix = format!("{}-{}-", name(job), role.to_lowercase());
            let running = pods.values().filter(|pod| {
                name(pod).starts_with(&prefix)
                    && job::phase(pod) == "Running"
                    && !job::is_complete(job, name(pod))
            });
            let running = running.count() as i64;
            let active = &job["status"]["replicaStatuses"][role]["active"];
            if active.as_i64().unwrap_or(0) != running {
                return Some(format!("{running} {role} run, and the status says {active}"));
            }
        }
        None
    }

    /// I13: the pods of a job agree on who takes part, and each has its own rank.
    fn agreed(&self, job: &Value) -> Option<String> {
        // A spec that was edited is told to new pods only.
        if job["metadata"]["generation"].as_i64().unwrap_or(1) > 1 {
            return None;
        }
        let pods = self.pods.children(job);
        let mut maps = BTreeSet::new();
        let mut ranks = BTreeSet::new();
        for pod in pods.values().filter(|p| !job::has_ended(p)) {
            let env = pod.pointer("/spec/containers/0/env").and_then(Value::as_array);
            let config = env
                .into_iter()
                .flatten()
                .find(|v| matches!(v["name"].as_str(), Some("MX_CONFIG" | "TF_CONFIG")));
            let text = config
                .and_then(|v| v["value"].as_str())
                .and_then(|t| serde_json::from_str::<Value>(t).ok());
            if let Some(config) = text {
                maps.insert(config["cluster"].to_string());
                if !ranks.insert(config["task"].to_string()) {
                    return Some(format!("two pods are {}", config["task"]));
                }
            }
        }
        (maps.len() > 1).then(|| "its pods have different maps of the cluster".to_owned())
    }
}

type Children<'a> = BTreeMap<&'a str, &'a Value>;

/// The clean-up policy of an ended job is carried out, and its time to live kept.
fn tidied(job: &Value, end: &str, pods: &Children<'_>, services: &Children<'_>) -> Option<String> {
    let overdue = overdue(job);
    if overdue.is_some() || job::is_refused(job) {
        return overdue;
    }
    let reason = job["status"]["failure"]["reason"].as_str().unwrap_or_default();
    let limit = end == "Failed" && matches!(reason, "DeadlineExceeded" | "BackoffLimitExceeded");
    let clean = job.pointer("/spec/runPolicy/cleanPodPolicy");
    let clean = clean.and_then(Value::as_str).unwrap_or("Running");
    match clean {
        "All" => {
            let left = pods.keys().chain(services.keys()).next()?;
            Some(format!("{left} is left, though all should go"))
        }
        "None" if !limit => None,
        _ => {
            let runs = pods.values().find(|p| !job::has_ended(p));
            if let Some(pod) = runs {
                return Some(format!("{} runs on after the end", name(pod)));
            }
            let unused = services.keys().find(|service| !pods.contains_key(*service))?;
            Some(format!("service {unused} is left without a pod"))
        }
    }
}

/// The time to live of an ended job is kept.
fn overdue(job: &Value) -> Option<String> {
    let ttl = job.pointer("/spec/runPolicy/ttlSecondsAfterFinished")?;
    (ttl.as_i64()? < 600).then(|| "its time to live is over".to_owned())
}

/// An active job has all its replicas, and none that ended badly.
fn active(job: &Value, pods: &Children<'_>, services: &Children<'_>) -> Option<String> {
    let names = job::names(job);
    for name in &names {
        if !services.contains_key(name.as_str()) {
            return Some(format!("service {name} is missing"));
        }
        match pods.get(name.as_str()) {
            None if job::is_complete(job, name) => {}
            None => return Some(format!("pod {name} is missing")),
            // What the status says of a success is believed, whoever wrote it.
            Some(_) if job::is_complete(job, name) => {}
            Some(pod) if job::phase(pod) == "Failed" => return Some(format!("pod {name} has failed")),
            Some(pod) if i64::from(kubelet::attempt(pod)) < job::attempt(job, name) => {
                return Some(format!("pod {name} is of an earlier attempt"));
            }
            Some(_) => {}
        }
    }
    // A child whose label was edited is seen by no watch.
    let seen = pods.iter().chain(services).filter(|(_, c)| job::is_labelled(c));
    let mut surplus = seen.map(|(name, _)| name).filter(|n| !names.contains(**n));
    if let Some(name) = surplus.next() {
        return Some(format!("{name} is more than the spec asks for"));
    }
    let deadline = job.pointer("/spec/runPolicy/activeDeadlineSeconds");
    if deadline.and_then(Value::as_i64).is_some_and(|limit| limit < 600) {
        return Some("its deadline has passed".to_owned());
    }
    if !pods.is_empty() && pods.values().all(|p| job::phase(p) == "Succeeded") {
        return Some("all its pods ended well, and it goes on".to_owned());
    }
    let running = pods.values().any(|p| job::phase(p) == "Running");
    (running && pods.values().all(|p| job::phase(p) != "Pending") && !job::is(job, "Running"))
        .then(|| "all its pods run, and it does not say so".to_owned())
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn uid(object: &Value) -> Option<&str> {
    object["metadata"]["uid"].as_str()
}
