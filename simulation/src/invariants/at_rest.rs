//! The invariants of a cluster that has settled: there are no faults, users do nothing, and time has passed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kube_memory::Cluster;
use serde_json::Value;
use training_job::GangScheduler;

use super::{gangs, queue};
use crate::job;
use crate::kubelet;

/// The jobs and children of a cluster that has settled.
pub struct SettledCluster {
    jobs: Vec<Value>,
    /// Their children, by plural.
    children: BTreeMap<&'static str, Objects>,
    gang_scheduler: Option<GangScheduler>,
}

/// All pods, services, or other children, indexed by owners and names, since there may be very many.
#[derive(Default)]
struct Objects {
    all: Vec<Value>,
    /// Positions in `all` by the owner's UID.
    by_owner: HashMap<String, Vec<usize>>,
    /// Positions in `all` by the name.
    by_name: HashMap<String, Vec<usize>>,
}

impl Objects {
    fn new(all: Vec<Value>) -> Self {
        let mut objects = Self::default();
        for (at, child) in all.iter().enumerate() {
            objects
                .by_name
                .entry(name(child).to_owned())
                .or_default()
                .push(at);
            if let Some(owner) = job::controller(child) {
                objects.by_owner.entry(owner.to_owned()).or_default().push(at);
            }
        }
        Self { all, ..objects }
    }

    fn at<'a>(&'a self, positions: Option<&'a Vec<usize>>) -> impl Iterator<Item = &'a Value> {
        positions.into_iter().flatten().map(|at| &self.all[*at])
    }

    /// The children of this job, by name.
    fn children(&self, job: &Value) -> Children<'_> {
        let positions = uid(job).and_then(|owner| self.by_owner.get(owner));
        self.at(positions).map(|child| (name(child), child)).collect()
    }

    /// The objects of this name, in all namespaces.
    fn named(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.at(self.by_name.get(name))
    }
}

impl SettledCluster {
    /// Reads a cluster.
    pub fn read(cluster: &Cluster) -> Self {
        let all = |plural: &str| -> Vec<Value> {
            let objects = cluster.list(plural, None);
            objects.iter().map(|o| o.value().clone()).collect()
        };
        let jobs = job::PLURALS.iter().flat_map(|p| all(p)).collect();
        Self::new(jobs, job::CHILDREN.map(|plural| (plural, all(plural))))
    }

    /// A cluster with these jobs, and these children by plural.
    pub fn new(jobs: Vec<Value>, children: impl IntoIterator<Item = (&'static str, Vec<Value>)>) -> Self {
        let children = children.into_iter();
        let children = children.map(|(plural, all)| (plural, Objects::new(all)));
        Self {
            jobs,
            children: children.collect(),
            gang_scheduler: None,
        }
    }

    /// The same, in which this scheduler binds the pods.
    pub fn with_gangs(self, gang_scheduler: Option<GangScheduler>) -> Self {
        Self {
            gang_scheduler,
            ..self
        }
    }

    /// The children of a job that have this plural, by name.
    fn children_of(&self, job: &Value, plural: &str) -> Children<'_> {
        let of_plural = self.children.get(plural);
        of_plural.map(|objects| objects.children(job)).unwrap_or_default()
    }

    /// All objects of this plural and name.
    fn named(&self, plural: &str, name: &str) -> impl Iterator<Item = &Value> {
        let of_plural = self.children.get(plural);
        of_plural.into_iter().flat_map(move |objects| objects.named(name))
    }

    /// All violations: the number of the invariant, and what is wrong.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let uids: BTreeSet<&str> = self.jobs.iter().filter_map(uid).collect();
        for child in self.children.values().flat_map(|objects| &objects.all) {
            if job::controller(child).is_some_and(|owner| !uids.contains(owner)) {
                problems.push(("I5", format!("{} is left of a job that was deleted", name(child))));
            }
        }
        for job in &self.jobs {
            let found = [
                ("I7", self.check_children(job)),
                ("I10", self.check_counts(job)),
                ("I13", self.check_ranks(job)),
                ("I22", self.check_gang(job)),
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

    /// Whether an object that a job does not control has the name of one of its children.
    pub fn is_blocked(&self) -> bool {
        self.jobs.iter().any(|job| self.is_job_blocked(job))
    }

    fn is_job_blocked(&self, job: &Value) -> bool {
        let (pods, services) = (job::names(job), job::service_names(job));
        let pods = pods.iter().flat_map(|name| self.named("pods", name));
        let services = services.iter().flat_map(|name| self.named("services", name));
        let maps = self.children.get("configmaps").into_iter();
        let maps = maps
            .flat_map(|maps| &maps.all)
            .filter(|map| job::is_shared_environment(job, name(map)));
        // A job does without its autoscaler.
        let needed = job::CHILDREN.iter().filter(|plural| **plural != job::AUTOSCALERS);
        let objects = needed.flat_map(|plural| {
            let name = job::object_name(job, plural);
            let named = name.map(|name| self.named(plural, &name).collect::<Vec<_>>());
            named.into_iter().flatten()
        });
        pods.chain(services)
            .chain(maps)
            .chain(objects)
            .any(|holder| job::controller(holder) != uid(job))
    }

    /// I7: a job has the children that its spec and status ask for, and no others.
    fn check_children(&self, job: &Value) -> Option<String> {
        let [mut pods, mut services, mut maps] =
            ["pods", "services", "configmaps"].map(|plural| self.children_of(job, plural));
        maps.retain(|name, _| job::is_shared_environment(job, name));
        if job::end(job).is_some() || job::is_suspended(job) {
            // The operator's watches do not show a child whose label was edited, and it needs no child's name here.
            pods.retain(|_, pod| job::is_labelled(pod));
            services.retain(|_, service| job::is_labelled(service));
        }
        if job::is_deleting(job) {
            return Some("it is being deleted".to_owned());
        }
        if let Some(at) = pods.values().find(job::is_deleting) {
            return Some(format!("{} is being deleted", name(at)));
        }
        if self.is_job_blocked(job) {
            return None;
        }
        if job::is_left_alone(job) {
            let left = pods.keys().chain(services.keys()).chain(maps.keys()).next()?;
            return Some(format!("it is another controller's and has {left}"));
        }
        if job::is_invalid(job) {
            let end = job::end(job);
            // A job that has started runs on, and has an event.
            let started = !job["status"]["startTime"].is_null();
            let reported = end.is_some() || started || job::is(job, "Created");
            let message = "it is invalid, and its status does not say so".to_owned();
            return match end {
                Some(_) => check_ttl(job),
                None => (!reported).then_some(message),
            };
        }
        if let Some(end) = job::end(job) {
            let cleaned = check_cleanup(job, end, &pods, &services, &maps);
            return cleaned.or_else(|| self.check_no_autoscaler(job));
        }
        if job::is_suspended(job) {
            if !job::is(job, "Suspended") {
                return Some("it is not suspended".to_owned());
            }
            let mut left = pods.keys().chain(services.keys()).chain(maps.keys());
            return match left.next() {
                Some(left) => Some(format!("it is suspended and has {left}")),
                None => self.check_no_autoscaler(job),
            };
        }
        let needed = self.children_of(job, "configmaps");
        check_active(job, &pods, &services, &needed).or_else(|| self.check_objects(job))
    }

    /// An active job has what its kind has beside pods and services.
    fn check_objects(&self, job: &Value) -> Option<String> {
        let mut plurals = job::CHILDREN.iter().filter(|plural| **plural != job::GROUPS);
        plurals.find_map(|plural| {
            let wanted = job::object_name(job, plural);
            let there = self.children_of(job, plural);
            let of_kind = there.keys().filter(|name| !job::is_shared_environment(job, name));
            let is_more = |name: &&str| wanted.as_deref() != Some(*name);
            let is_object = !matches!(*plural, "pods" | "services");
            let surplus = of_kind.copied().find(is_more).filter(|_| is_object);
            // Somebody else's may have the name of an autoscaler.
            let missing = wanted.as_deref().filter(|name| {
                let is_taken = self.named(plural, name).next().is_some();
                !there.contains_key(name) && !is_taken
            });
            let missing = missing.map(|name| format!("{plural} {name} is missing"));
            missing.or_else(|| surplus.map(|name| format!("{plural} {name} is more than its kind has")))
        })
    }

    /// I22: a job that runs has a group that says what it needs, and all its pods have their places. One that does not has none,
    /// once its pods are gone.
    fn check_gang(&self, job: &Value) -> Option<String> {
        let scheduler = self.gang_scheduler.as_ref()?;
        if job::is_deleting(job)
            || job::is_left_alone(job)
            || job::is_invalid(job)
            || self.is_job_blocked(job)
        {
            return None;
        }
        let pods = self.children_of(job, "pods");
        let group = self.children_of(job, job::GROUPS).remove(name(job));
        gangs::check_at_rest(job, scheduler, &pods, group)
    }

    /// Nothing scales a job that does not run.
    fn check_no_autoscaler(&self, job: &Value) -> Option<String> {
        let left = self.children_of(job, job::AUTOSCALERS);
        let left = left.into_iter().find(|(_, object)| job::is_labelled(object))?;
        Some(format!("autoscaler {} is left", left.0))
    }

    /// I10: the counts of an unfinished job are those of its pods.
    fn check_counts(&self, job: &Value) -> Option<String> {
        if job::end(job).is_some()
            || job::is_invalid(job)
            || job::is_suspended(job)
            || job::is_deleting(job)
            || job::is_left_alone(job)
            || self.is_job_blocked(job)
        {
            return None;
        }
        let mut pods = self.children_of(job, "pods");
        let names = job::names(job);
        // The operator's watches do not show a pod whose label was edited. It is found only when its name is needed.
        pods.retain(|name, pod| job::is_labelled(pod) || names.contains(*name));
        for role in job::roles(job).keys() {
            let of_role = job::names_of_role(job, role);
            let running = pods.values().filter(|pod| {
                of_role.contains(name(pod))
                    && job::phase(pod) == "Running"
                    && !job::is_complete(job, name(pod))
            });
            let running = running.count() as i64;
            let counts = &job["status"]["replicaStatuses"][role];
            let count = |what: &str| counts[what].as_i64().unwrap_or(0);
            let wanted = match queue::is_queued(job) {
                // Those that have not ended.
                true => of_role.len() as i64 - count("succeeded") - count("failed"),
                false => running,
            };
            if count("active") != wanted || wanted < running {
                let active = count("active");
                return Some(format!("{running} {role} run, and the status says {active}"));
            }
        }
        None
    }

    /// I13: the pods of a job have the same configuration of the cluster, and each has its own rank.
    fn check_ranks(&self, job: &Value) -> Option<String> {
        // Only new pods get an edit of the spec.
        if job["metadata"]["generation"].as_i64().unwrap_or(1) > 1 {
            return None;
        }
        let (pods, maps) = (self.children_of(job, "pods"), self.children_of(job, "configmaps"));
        let mut clusters = BTreeSet::new();
        let mut ranks = BTreeSet::new();
        for pod in pods.values().filter(|p| !job::has_ended(p)) {
            let env = pod.pointer("/spec/containers/0/env").and_then(Value::as_array);
            let config = env
                .into_iter()
                .flatten()
                .find(|v| matches!(v["name"].as_str(), Some("MX_CONFIG" | "TF_CONFIG" | "TOY_CONFIG")));
            let text = config
                .map(|variable| value(pod, variable, &maps))
                .and_then(|text| serde_json::from_str::<Value>(&text).ok());
            if let Some(config) = text {
                clusters.insert(config["cluster"].to_string());
                if !ranks.insert(config["task"].to_string()) {
                    return Some(format!("two pods are {}", config["task"]));
                }
            }
        }
        (clusters.len() > 1).then(|| "its pods have different configurations of the cluster".to_owned())
    }
}

type Children<'a> = BTreeMap<&'a str, &'a Value>;

/// The value of a pod's variable as its process has it.
fn value(pod: &Value, variable: &Value, maps: &Children<'_>) -> String {
    let name = variable["name"].as_str().unwrap_or_default();
    let text = variable["value"].as_str().unwrap_or_default();
    let shared = job::shared_environments(pod).filter_map(|map| maps.get(map)?["data"][name].as_str());
    let rest = text.strip_prefix(&format!("$({name})"));
    match (rest, shared.last()) {
        (Some(rest), Some(shared)) => [shared, rest].concat(),
        _ => text.to_owned(),
    }
}

/// The cleanPodPolicy of a finished job is carried out, and its TTL kept.
fn check_cleanup(
    job: &Value,
    end: &str,
    pods: &Children<'_>,
    services: &Children<'_>,
    maps: &Children<'_>,
) -> Option<String> {
    let overdue = check_ttl(job);
    if overdue.is_some() || job::was_found_invalid(job) {
        return overdue;
    }
    let none_runs = pods.values().all(job::has_ended);
    if let Some(map) = maps.keys().next().filter(|_| none_runs) {
        return Some(format!("{map} is left, though no pod runs"));
    }
    let reason = job["status"]["failure"]["reason"].as_str().unwrap_or_default();
    let limit = end == "Failed" && matches!(reason, "DeadlineExceeded" | "BackoffLimitExceeded");
    let clean = job.pointer("/spec/runPolicy/cleanPodPolicy");
    let clean = clean.and_then(Value::as_str).unwrap_or("Running");
    match clean {
        "All" => {
            let left = pods.keys().chain(services.keys()).next()?;
            Some(format!("{left} is left, though cleanPodPolicy is All"))
        }
        "None" if !limit => None,
        _ => {
            let runs = pods.values().find(|p| !job::has_ended(p));
            if let Some(pod) = runs {
                return Some(format!("{} still runs after the job finished", name(pod)));
            }
            let is_used = |service: &str| match job::is_compact(job) {
                true => !pods.is_empty(),
                false => pods.contains_key(service),
            };
            let unused = services.keys().find(|service| !is_used(service))?;
            Some(format!("service {unused} is left without a pod"))
        }
    }
}

/// The TTL of a finished job is kept.
fn check_ttl(job: &Value) -> Option<String> {
    let ttl = job.pointer("/spec/runPolicy/ttlSecondsAfterFinished")?;
    (ttl.as_i64()? < 600).then(|| "its TTL has passed".to_owned())
}

/// An active job has all its replicas, and none that failed.
fn check_active(
    job: &Value,
    pods: &Children<'_>,
    services: &Children<'_>,
    maps: &Children<'_>,
) -> Option<String> {
    let (names, of_services) = (job::names(job), job::service_names(job));
    let missing = of_services
        .iter()
        .find(|name| !services.contains_key(name.as_str()));
    if let Some(name) = missing {
        return Some(format!("service {name} is missing"));
    }
    for name in &names {
        match pods.get(name.as_str()) {
            None if job::is_complete(job, name) => {}
            None if waits_for_others(job, name, pods) => {}
            None => return Some(format!("pod {name} is missing")),
            // The operator believes the status, whoever wrote it.
            Some(_) if job::is_complete(job, name) => {}
            Some(pod) if job::phase(pod) == "Failed" => return Some(format!("pod {name} has failed")),
            Some(pod) if i64::from(kubelet::attempt(pod)) < job::attempt(job, name) => {
                return Some(format!("pod {name} is of an earlier attempt"));
            }
            Some(_) => {}
        }
    }
    // The operator's watches do not show a child whose label was edited.
    let unasked = |(name, child): &(&&str, &&Value), names: &BTreeSet<String>| {
        job::is_labelled(child) && !names.contains(**name)
    };
    let more_pods = pods.iter().filter(|pod| unasked(pod, &names));
    let more_services = services.iter().filter(|service| unasked(service, &of_services));
    let mut surplus = more_pods.chain(more_services).map(|(name, _)| name);
    if let Some(name) = surplus.next() {
        return Some(format!("{name} is more than the spec asks for"));
    }
    // A map that pods have from before an edit of the spec is not made again.
    if job["metadata"]["generation"].as_i64().unwrap_or(1) == 1 {
        let mut referred = pods.values().flat_map(job::needed_maps);
        if let Some(map) = referred.find(|map| !maps.contains_key(map)) {
            return Some(format!("ConfigMap {map} is missing"));
        }
    }
    let deadline = job.pointer("/spec/runPolicy/activeDeadlineSeconds");
    if deadline.and_then(Value::as_i64).is_some_and(|limit| limit < 600) {
        return Some("its deadline has passed".to_owned());
    }
    if !pods.is_empty() && pods.values().all(|p| job::phase(p) == "Succeeded") {
        return Some("all its pods succeeded, and it is not finished".to_owned());
    }
    let running = pods.values().any(|p| job::phase(p) == "Running");
    (running && pods.values().all(|p| job::phase(p) != "Pending") && !job::is(job, "Running"))
        .then(|| "all its pods run, and it has no condition Running".to_owned())
}

/// Whether a replica has no pod because others have not started: a launcher's workers.
fn waits_for_others(job: &Value, pod: &str, pods: &Children<'_>) -> bool {
    let is_launcher = job::names_of_role(job, "Launcher").contains(pod);
    let has_started = |worker: &String| {
        let is_pending = pods.get(&**worker).is_none_or(|pod| job::phase(pod) == "Pending");
        job::is_complete(job, worker) || !is_pending
    };
    is_launcher && !job::names_of_role(job, "Worker").iter().all(has_started)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn uid(object: &Value) -> Option<&str> {
    object["metadata"]["uid"].as_str()
}
