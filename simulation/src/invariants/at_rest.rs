//! The invariants of a settled cluster: there are no faults, users are idle, and some time has passed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kube_memory::Cluster;
use serde_json::Value;
use training_job::GangScheduler;

use super::{gangs, queue};
use crate::world::job;
use crate::world::pod;

/// The jobs and children of a settled cluster.
pub struct SettledCluster {
    jobs: Vec<Value>,
    /// The children by plural.
    children: BTreeMap<&'static str, Objects>,
    /// The messages of the warnings, by the UIDs of the objects that they concern.
    warnings: BTreeMap<String, Vec<String>>,
    gang_scheduler: Option<GangScheduler>,
    /// The UIDs of jobs whose status others have written. Their operator may not know for which numbers of replicas the
    /// pods were created.
    edited: BTreeSet<String>,
}

/// All objects of one plural, indexed by owners and names because there may be very many.
#[derive(Default)]
struct Objects {
    all: Vec<Value>,
    /// Indexes in `all` by the owner's UID.
    by_owner: HashMap<String, Vec<usize>>,
    /// Indexes in `all` by the name.
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

    /// Returns the children of this job, by name.
    fn children(&self, job: &Value) -> Children<'_> {
        let positions = uid(job).and_then(|owner| self.by_owner.get(owner));
        self.at(positions).map(|child| (name(child), child)).collect()
    }

    /// Returns the objects of this name in all namespaces.
    fn named(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.at(self.by_name.get(name))
    }
}

impl SettledCluster {
    /// Reads the jobs and children of a cluster.
    pub fn read(cluster: &Cluster) -> Self {
        let all = |plural: &str| -> Vec<Value> {
            let objects = cluster.list(plural, None);
            objects.iter().map(|o| o.value().clone()).collect()
        };
        let jobs = job::PLURALS.iter().flat_map(|p| all(p)).collect();
        let mut warnings: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for event in all("events").iter().filter(|event| event["type"] == "Warning") {
            let [about, note] = [&event["involvedObject"]["uid"], &event["message"]].map(Value::as_str);
            let of_object = warnings.entry(about.unwrap_or_default().to_owned()).or_default();
            of_object.push(note.unwrap_or_default().to_owned());
        }
        Self {
            warnings,
            ..Self::new(jobs, job::CHILDREN.map(|plural| (plural, all(plural))))
        }
    }

    /// Creates a state with these jobs, and these children by plural.
    pub fn new(jobs: Vec<Value>, children: impl IntoIterator<Item = (&'static str, Vec<Value>)>) -> Self {
        let children = children.into_iter();
        let children = children.map(|(plural, all)| (plural, Objects::new(all)));
        Self {
            jobs,
            children: children.collect(),
            warnings: BTreeMap::new(),
            gang_scheduler: None,
            edited: BTreeSet::new(),
        }
    }

    /// Sets the UIDs of jobs whose status others have written.
    pub fn with_edited(self, edited: BTreeSet<String>) -> Self {
        Self { edited, ..self }
    }

    /// Sets the scheduler that binds the pods.
    pub fn with_gangs(self, gang_scheduler: Option<GangScheduler>) -> Self {
        Self {
            gang_scheduler,
            ..self
        }
    }

    /// Returns the children of a job that have this plural, by name.
    fn children_of(&self, job: &Value, plural: &str) -> Children<'_> {
        let of_plural = self.children.get(plural);
        of_plural.map(|objects| objects.children(job)).unwrap_or_default()
    }

    /// Returns all objects of this plural and name.
    fn named(&self, plural: &str, name: &str) -> impl Iterator<Item = &Value> {
        let of_plural = self.children.get(plural);
        of_plural.into_iter().flat_map(move |objects| objects.named(name))
    }

    /// Returns all violations: the number of the invariant, and a description.
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
                ("I24", self.check_warned(job)),
                ("I27", self.check_stall(job)),
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

    /// I27: a job all of whose pods hang is stalled, if its output is watched. All pods hang after two minutes.
    fn check_stall(&self, job: &Value) -> Option<String> {
        let progress = job::policy(job, "progress");
        let pods = self.children.get("pods")?.children(job);
        let all_run = !pods.is_empty()
            && pods
                .values()
                .all(|pod| pod::phase(*pod) == "Running" && !job::is_deleting(*pod));
        let is_watched = progress["stalledAfterSeconds"].is_u64() && all_run && job::is(job, "Running");
        // The operator leaves an invalid job as it is. A job whose deciding replica has no pod has no output.
        let is_excused = job::is_invalid(job)
            || self.is_job_blocked(job)
            || uid(job).is_some_and(|uid| self.edited.contains(uid));
        (is_watched && !is_excused && !job::is(job, "Stalled"))
            .then(|| "it hangs and is not stalled".to_owned())
    }

    /// Returns true if a job does not control an object that has the name of one of its children.
    pub fn is_blocked(&self) -> bool {
        self.jobs.iter().any(|job| self.is_job_blocked(job))
    }

    fn is_job_blocked(&self, job: &Value) -> bool {
        !self.blockers(job).is_empty()
    }

    /// Returns the names of objects that have the name of one of a job's children, but are not controlled by the job.
    fn blockers(&self, job: &Value) -> Vec<&str> {
        let (pods, services) = (job::names(job), job::service_names(job));
        let pods = pods.iter().flat_map(|name| self.named("pods", name));
        let services = services.iter().flat_map(|name| self.named("services", name));
        let maps = self.children.get("configmaps").into_iter();
        let maps = maps
            .flat_map(|maps| &maps.all)
            .filter(|map| job::is_shared_environment(job, name(map)));
        // A job runs without its autoscaler.
        let needed = job::CHILDREN.iter().filter(|plural| **plural != job::AUTOSCALERS);
        let objects = needed.flat_map(|plural| {
            let name = job::object_name(job, plural);
            let named = name.map(|name| self.named(plural, &name).collect::<Vec<_>>());
            named.into_iter().flatten()
        });
        pods.chain(services)
            .chain(maps)
            .chain(objects)
            .filter(|holder| holder["metadata"]["namespace"] == job["metadata"]["namespace"])
            .filter(|holder| job::controller(*holder) != uid(job))
            .map(name)
            .collect()
    }

    /// I24: a job that is blocked by an object of another owner has a warning that names the object.
    fn check_warned(&self, job: &Value) -> Option<String> {
        let waits = job::end(job).is_none() && !job::is_suspended(job) && !job::is_left_alone(job);
        if !waits || job::is_deleting(job) || job::is_invalid(job) {
            return None;
        }
        // Only the operator can determine the shared environments that a job needs.
        let mut blockers = self.blockers(job);
        // A completed replica needs no pod.
        blockers.retain(|name| !job::is_shared_environment(job, name) && !job::is_complete(job, name));
        let warnings = uid(job).and_then(|uid| self.warnings.get(uid));
        let mut notes = warnings.into_iter().flatten();
        let is_named = notes.any(|note| blockers.iter().any(|name| note.contains(name)));
        let first = blockers.first().filter(|_| !is_named)?;
        Some(format!("no warning says that {first} is not its own"))
    }

    /// I7: a job has exactly the children that its spec and status request.
    fn check_children(&self, job: &Value) -> Option<String> {
        let [mut pods, mut services, mut maps] =
            ["pods", "services", "configmaps"].map(|plural| self.children_of(job, plural));
        maps.retain(|name, _| job::is_shared_environment(job, name));
        if job::end(job).is_some() || job::is_suspended(job) {
            // A child whose label was edited is not in the operator's watches, and the job needs no child's name in
            // this state.
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
            // A job that has started keeps running, and has an event.
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
            let runs = job::was_found_invalid(job) || !pods.values().all(pod::has_ended);
            return cleaned.or_else(|| self.check_no_objects(job, runs));
        }
        if job::is_suspended(job) {
            if !job::is(job, "Suspended") {
                return Some("it is not suspended".to_owned());
            }
            let mut left = pods.keys().chain(services.keys()).chain(maps.keys());
            return match left.next() {
                Some(left) => Some(format!("it is suspended and has {left}")),
                None => self.check_no_objects(job, false),
            };
        }
        let needed = self.children_of(job, "configmaps");
        check_active(job, &pods, &services, &needed).or_else(|| self.check_objects(job))
    }

    /// Checks that an active job has exactly the objects of its kind beside pods and services.
    fn check_objects(&self, job: &Value) -> Option<String> {
        let mut plurals = job::CHILDREN.iter().filter(|plural| **plural != job::GROUPS);
        plurals.find_map(|plural| {
            let wanted = job::object_name(job, plural);
            let there = self.children_of(job, plural);
            let of_kind = there.keys().filter(|name| !job::is_shared_environment(job, name));
            let is_more = |name: &&str| wanted.as_deref() != Some(*name);
            let is_object = !matches!(*plural, "pods" | "services");
            let surplus = of_kind.copied().find(is_more).filter(|_| is_object);
            // An object of another owner may have the name of an autoscaler.
            let missing = wanted.as_deref().filter(|name| {
                let is_taken = self.named(plural, name).next().is_some();
                !there.contains_key(name) && !is_taken
            });
            let missing = missing.map(|name| format!("{plural} {name} is missing"));
            missing.or_else(|| surplus.map(|name| format!("{plural} {name} is more than its kind has")))
        })
    }

    /// I22: a running job has a group with the right minimum, and all its pods are bound. A job that does not run has
    /// no group once its pods are gone.
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

    /// Checks that a job that has ended or is suspended has no autoscaler, and no other objects once none of its pods runs.
    fn check_no_objects(&self, job: &Value, runs: bool) -> Option<String> {
        let plurals = job::CHILDREN[2..7].iter();
        let mut plurals = plurals.filter(|plural| !runs || **plural == job::AUTOSCALERS);
        plurals.find_map(|plural| {
            let left = self.children_of(job, plural);
            let left = left.into_iter().find(|(_, object)| job::is_labelled(object))?;
            Some(format!("{plural} {} is left", left.0))
        })
    }

    /// I10: the counts in an unfinished job's status match its pods.
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
        // A pod whose label was edited is not in the operator's watches. It is found only if its name is needed.
        pods.retain(|name, pod| job::is_labelled(pod) || names.contains(*name));
        for role in job::roles(job).keys() {
            let of_role = job::names_of_role(job, role);
            let running = pods.values().filter(|pod| {
                of_role.contains(name(pod))
                    && pod::phase(pod) == "Running"
                    && !job::is_complete(job, name(pod))
            });
            let running = running.count() as i64;
            let counts = &job["status"]["replicaStatuses"][role];
            let count = |what: &str| counts[what].as_i64().unwrap_or(0);
            let wanted = match queue::is_queued(job) {
                // The replicas that have not ended.
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

    /// I13: the pods of a job have the same configuration of the cluster, and each pod has a rank of its own.
    fn check_ranks(&self, job: &Value) -> Option<String> {
        let is_active = job::end(job).is_none() && !job::is_suspended(job) && !job::is_invalid(job);
        let is_edited = uid(job).is_some_and(|uid| self.edited.contains(uid));
        // The servers of a tuning job may come and go, and only new pods have the new number.
        let is_tuning = job["spec"]["jobMode"] == "MXTune";
        let is_scaled = job["metadata"]["generation"].as_i64().unwrap_or(1) > 1;
        if is_scaled && (!is_active || is_edited || is_tuning) {
            return None;
        }
        let (pods, maps) = (self.children_of(job, "pods"), self.children_of(job, "configmaps"));
        let mut clusters = BTreeSet::new();
        let mut ranks = BTreeSet::new();
        for pod in pods.values().filter(|p| !pod::has_ended(p)) {
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

/// Returns the value of a pod's variable as its process reads it.
fn value(pod: &Value, variable: &Value, maps: &Children<'_>) -> String {
    let name = variable["name"].as_str().unwrap_or_default();
    let text = variable["value"].as_str().unwrap_or_default();
    let shared = pod::shared_environments(pod).filter_map(|map| maps.get(map)?["data"][name].as_str());
    let rest = text.strip_prefix(&format!("$({name})"));
    match (rest, shared.last()) {
        (Some(rest), Some(shared)) => [shared, rest].concat(),
        _ => text.to_owned(),
    }
}

/// Checks that the cleanPodPolicy of a finished job was carried out, and that its TTL has not passed.
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
    let none_runs = pods.values().all(pod::has_ended);
    if let Some(map) = maps.keys().next().filter(|_| none_runs) {
        return Some(format!("{map} is left, though no pod runs"));
    }
    let listens = |pod: &str| pods.get(pod).is_some_and(|pod| !pod::has_ended(pod));
    let mut services_left = services.iter();
    let idle = services_left.find(|(name, s)| s["spec"]["clusterIP"] != "None" && !listens(name));
    if let Some((service, _)) = idle {
        return Some(format!(
            "service {service} keeps its cluster IP, and nothing listens there"
        ));
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
            let runs = pods.values().find(|p| !pod::has_ended(p));
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

/// Checks that the TTL of a finished job has not passed.
fn check_ttl(job: &Value) -> Option<String> {
    let ttl = job.pointer("/spec/runPolicy/ttlSecondsAfterFinished")?;
    (ttl.as_i64()? < 600).then(|| "its TTL has passed".to_owned())
}

/// Checks that an active job has all its replicas, and no failed ones.
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
            // The operator trusts the status, whoever wrote it.
            Some(_) if job::is_complete(job, name) => {}
            Some(pod) if pod::phase(pod) == "Failed" => return Some(format!("pod {name} has failed")),
            Some(pod) if i64::from(pod::attempt(pod)) < job::attempt(job, name) => {
                return Some(format!("pod {name} is of an earlier attempt"));
            }
            Some(_) => {}
        }
    }
    // A child whose label was edited is not in the operator's watches.
    let unasked = |(name, child): &(&&str, &&Value), names: &BTreeSet<String>| {
        job::is_labelled(child) && !names.contains(**name)
    };
    let more_pods = pods.iter().filter(|pod| unasked(pod, &names));
    let more_services = services.iter().filter(|service| unasked(service, &of_services));
    let mut surplus = more_pods.chain(more_services).map(|(name, _)| name);
    if let Some(name) = surplus.next() {
        return Some(format!("{name} is more than the spec asks for"));
    }
    // A ConfigMap that only pods from before an edit of the spec use is not created again.
    if job["metadata"]["generation"].as_i64().unwrap_or(1) == 1 {
        let mut referred = pods.values().flat_map(pod::needed_maps);
        if let Some(map) = referred.find(|map| !maps.contains_key(map)) {
            return Some(format!("ConfigMap {map} is missing"));
        }
    }
    let deadline = job.pointer("/spec/runPolicy/activeDeadlineSeconds");
    if deadline.and_then(Value::as_i64).is_some_and(|limit| limit < 600) {
        return Some("its deadline has passed".to_owned());
    }
    if !pods.is_empty() && pods.values().all(|p| pod::phase(p) == "Succeeded") {
        return Some("all its pods succeeded, and it is not finished".to_owned());
    }
    let running = pods.values().any(|p| pod::phase(p) == "Running");
    (running && pods.values().all(|p| pod::phase(p) != "Pending") && !job::is(job, "Running"))
        .then(|| "all its pods run, and it has no condition Running".to_owned())
}

/// Returns true if a replica has no pod yet because it waits for other replicas to start or to succeed.
fn waits_for_others(job: &Value, pod: &str, pods: &Children<'_>) -> bool {
    let has_come = |(other, must_succeed): &(String, bool)| {
        let phase = pods.get(&**other).map_or("Pending", |pod| pod::phase(*pod));
        let has = match must_succeed {
            true => phase == "Succeeded",
            false => phase != "Pending",
        };
        job::is_complete(job, other) || has
    };
    !job::waits_for(job, pod).iter().all(has_come)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn uid(object: &Value) -> Option<&str> {
    object["metadata"]["uid"].as_str()
}
