//! Shared parts of the tests: small workloads, faults at each of their calls, and checks of the final state.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeBounds;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use training_job_controller::{Metrics, Operator};
use training_job_simulation::faults::PodFate::{self, Fails, Succeeds};
use training_job_simulation::faults::{CallFault, CallSite};
use training_job_simulation::invariants::AllowedStaleness;
use training_job_simulation::modes::exhaustive::{self, Case, run_case, run_without_faults};
use training_job_simulation::modes::report::Report;
use training_job_simulation::modes::run::{RunSummary, run};
use training_job_simulation::modes::settle::{Blockers, check_idle, wait_until_settled};
use training_job_simulation::scenario::Scenario;
use training_job_simulation::scenario::config::RunConfig;
use training_job_simulation::scenario::interventions::ScheduledIntervention;
use training_job_simulation::scenario::planned_job::PlannedJob;
use training_job_simulation::scenario::users::UserAction;
use training_job_simulation::scenario::workloads::Workload;
use training_job_simulation::simulation::{SMALL, Setup, Simulation, train, with_spec};
use training_job_simulation::world::direct::{path, request};
use training_job_simulation::world::job::{self, JobType};

/// The smallest training job with two roles.
pub(crate) const PAIR: [(&str, i32); 2] = [("Scheduler", 1), ("Worker", 1)];

/// Returns the fate of a pod by its name and attempt.
pub(crate) type PodFates = fn(&str, u32) -> PodFate;

/// All pods succeed. The scheduler ends last, even if a fault delays another pod.
pub(crate) fn succeeds(name: &str, _: u32) -> PodFate {
    Succeeds(if name.contains("scheduler") { 200 } else { 100 })
}

/// The worker is killed once.
pub(crate) fn is_killed_once(name: &str, attempt: u32) -> PodFate {
    match attempt {
        0 if name.ends_with("worker-0") => Fails(137, 100),
        _ => succeeds(name, attempt),
    }
}

/// Returns a workload of one job. `actions` are the users' actions after its creation, with their times in seconds.
pub(crate) fn workload(
    name: &str,
    pod_fates: PodFates,
    policy: Value,
    actions: Vec<(u64, UserAction)>,
) -> Workload {
    let mut object = job::new(JobType::Train, "job", &PAIR, "ExitCode");
    object["spec"]["runPolicy"] = policy;
    let mut config = RunConfig::without_faults();
    config.seconds = 500;
    let job = PlannedJob {
        job_type: JobType::Train,
        name: "job".to_owned(),
        object,
    };
    let scheduled = |(seconds, action)| ScheduledIntervention::user(seconds * 1_000, action);
    let created = (0, UserAction::Create(0));
    Workload {
        name: name.to_owned(),
        scenario: Scenario {
            config,
            jobs: vec![job],
            interventions: std::iter::once(created).chain(actions).map(scheduled).collect(),
            call_faults: Some(BTreeMap::new()),
            pod_fates: Some(pod_fates),
        },
    }
}

/// Returns a workload in which the job succeeds, after which everything is deleted.
pub(crate) fn success() -> Workload {
    workload("success", succeeds, json!({"cleanPodPolicy": "All"}), Vec::new())
}

/// Returns a workload in which a worker fails and the whole job restarts.
pub(crate) fn restart() -> Workload {
    workload(
        "restart",
        is_killed_once,
        json!({"cleanPodPolicy": "Running"}),
        Vec::new(),
    )
}

/// Returns the call sites of a run without faults.
pub(crate) fn sites(workload: &Workload) -> Vec<CallSite> {
    exhaustive::sites(&run_without_faults(workload))
}

/// Returns true if the site is that of a write.
pub(crate) fn writes(site: &CallSite) -> bool {
    !reads(site)
}

/// Returns true if the site is that of a list, a watch or a get.
pub(crate) fn reads(site: &CallSite) -> bool {
    ["list", "watch", "get"].iter().any(|v| site.calls.starts_with(v))
}

/// Runs the workload once for each of these faults at each of these sites. Asserts that no invariant is violated, and
/// that the final state is that of the run without faults.
pub(crate) fn everywhere(workload: &Workload, at: impl Fn(&CallSite) -> bool, faults: &[CallFault]) {
    let expected = run_without_faults(workload);
    let mut report = Report::default();
    for site in exhaustive::sites(&expected).into_iter().filter(|site| at(site)) {
        for fault in faults.iter().filter(|fault| fault.applies_to(&site.calls)) {
            let case = Case::new(workload, BTreeMap::from([(site.clone(), fault.clone())]));
            let summary = run_case(workload, &expected, &case, &mut report);
            assert!(
                !summary.call_faults.is_empty(),
                "{}: no fault was injected",
                case.name
            );
        }
    }
    assert!(
        report.runs > 0 && report.violations.is_empty(),
        "{:#?}",
        report.violations
    );
}

/// Waits until the cluster has settled. Asserts that its state is correct, that operators make no calls except
/// watches, and that a new operator has nothing to do.
pub(crate) async fn settle_and_check(sim: &mut Simulation) {
    sim.network.heal();
    let problems = wait_until_settled(sim, Blockers::Keep).await;
    assert!(problems.is_empty(), "{problems:#?}\n{}", sim.history.text());
    sim.assert_no_violations();
    assert_eq!(
        sim.network.deletes_without_uid(),
        [""; 0],
        "deletes without a UID"
    );
    assert_eq!(
        sim.network.writes_without_change(),
        [""; 0],
        "writes that changed nothing"
    );
    let problems = check_idle(sim, 130).await;
    assert!(problems.is_empty(), "{problems:#?}");
    sim.assert_no_violations();
}

/// Runs a scenario, and asserts that no invariant is violated.
pub(crate) fn run_without_violations(scenario: &Scenario, case: &str) -> RunSummary {
    let summary = run(scenario);
    let found = &summary.violations;
    assert!(found.is_empty(), "{case}: {found:#?}\n{}", summary.history);
    summary
}

/// Creates a cluster with an operator, and a job of four replicas with this run policy.
pub(crate) async fn sim_of(
    pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static,
    policy: Value,
) -> Simulation {
    let sim = Simulation::new(pod_fates);
    sim.create(with_policy("job", &SMALL, policy)).await;
    sim
}

/// Creates a cluster without an operator, whose operators may act on changes by others and by operators that are this many
/// milliseconds old.
pub(crate) fn stale(
    pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static,
    of_others: u64,
    of_own: u64,
) -> Simulation {
    Simulation::with_setup(Setup {
        staleness: AllowedStaleness { of_others, of_own },
        ..Setup::mxjobs(pod_fates)
    })
}

/// Returns a job with these roles and this run policy.
pub(crate) fn with_policy(name: &str, roles: &[(&str, i32)], policy: Value) -> Value {
    with_spec(train(name, roles), json!({"runPolicy": policy}))
}

/// Returns the first fate for the pods with this part of a name, and the second for the others.
pub(crate) fn either(name: &str, part: &str, fate: PodFate, other: PodFate) -> PodFate {
    if name.contains(part) { fate } else { other }
}

/// Asserts that the last condition of a job is this one.
#[track_caller]
pub(crate) fn assert_ends(sim: &Simulation, job: &str, end: &str, case: impl Display) {
    let conditions = sim.conditions(job);
    assert!(conditions.ends_with(end), "{case}: {job} is {conditions}");
}

/// Asserts that a number, such as that of calls, is in this range.
#[track_caller]
pub(crate) fn assert_within<T: PartialOrd + Display>(
    number: T,
    range: impl RangeBounds<T>,
    what: impl Display,
) {
    assert!(range.contains(&number), "{what}: {number}");
}

/// Asserts that no job has pods or services.
#[track_caller]
pub(crate) fn assert_no_children(sim: &Simulation, case: impl Display) {
    let left = (sim.pods_now(), sim.services_now());
    assert!(left.0.is_empty() && left.1.is_empty(), "{case}: {left:?}");
}

/// Asserts the counts of the job's workers.
#[track_caller]
pub(crate) fn assert_workers(sim: &Simulation, counts: &Value, case: impl Display) {
    assert_eq!(sim.status("job")["replicaStatuses"]["Worker"], *counts, "{case}");
}

/// Asserts how many times a pod or service, such as `pods job-worker-0`, was created.
#[track_caller]
pub(crate) fn assert_made(sim: &Simulation, child: &str, times: u64, case: impl Display) {
    let made = created_and_deleted(sim, child).0;
    assert_eq!(made, times, "{case}: {child} was created {made} times");
}

/// Asserts that operators have made no calls except watches since the last [`take_calls`](Network::take_calls).
#[track_caller]
pub(crate) fn assert_idle(sim: &Simulation, case: impl Display) {
    let calls = sim.network.take_calls();
    assert!(calls.iter().all(|call| call.verb == "watch"), "{case}: {calls:?}");
}

/// Starts an operator of the simulation's kinds of jobs. Returns its metrics.
pub(crate) fn start_with_metrics(
    sim: &mut Simulation,
    concurrency: usize,
    manage: fn(Operator) -> Operator,
) -> Metrics {
    let metrics = Metrics::default();
    let counted = metrics.clone();
    sim.start_as(move |client, mut options| {
        (options.metrics, options.concurrency) = (counted, concurrency);
        manage(Operator::new(client, options)).run()
    });
    metrics
}

/// Returns the sum of the metrics whose names and labels contain all of these words.
pub(crate) fn metric(metrics: &Metrics, words: &[&str]) -> f64 {
    let mut registry = Registry::with_prefix("training_operator");
    metrics.register(&mut registry);
    let mut page = String::new();
    encode(&mut page, &registry).unwrap();
    let lines = page
        .lines()
        .filter(|line| words.iter().all(|word| line.contains(word)));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

/// Waits until `what` holds.
pub(crate) async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Returns the number of events with this reason.
pub(crate) fn event_count(sim: &Simulation, reason: &str) -> usize {
    sim.events().iter().filter(|e| *e == reason).count()
}

/// Returns the numbers of created and deleted pods or services of this name.
pub(crate) fn created_and_deleted(sim: &Simulation, child: &str) -> (u64, u64) {
    sim.monitor.child_counts().get(child).copied().unwrap_or_default()
}

/// Makes a user's call. Returns the response body, or the status code of an error.
pub(crate) async fn call(sim: &Simulation, method: &str, path: &str, body: Value) -> Result<Value, u16> {
    let method = method.parse().unwrap();
    match sim.user.request::<Value>(request(method, path, &body)).await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{error}"),
    }
}

pub(crate) async fn make(sim: &Simulation, plural: &str, object: Value) {
    call(sim, "POST", &path(plural, ""), object).await.unwrap();
}

/// Creates 500 pods with the operator's label and no owner, so that a list of all pods has two pages.
pub(crate) async fn fill_a_page(sim: &Simulation) {
    for number in 0..500 {
        let metadata = json!({
            "name": format!("a-{number}"),
            "labels": {"training.kubeflow.org/operator-name": "mxjob-controller"},
        });
        make(sim, "pods", job::foreign("pods", &metadata)).await;
    }
}

/// Merges a patch into an object.
pub(crate) async fn edit(sim: &Simulation, plural: &str, name: &str, patch: Value) {
    call(sim, "PATCH", &path(plural, name), patch).await.unwrap();
}

/// Merges a patch into the job named `job`.
pub(crate) async fn edit_job(sim: &Simulation, patch: Value) {
    sim.edit("job", patch).await;
}

/// Creates a cluster with an operator of ToyJobs.
pub(crate) fn toys(pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static) -> Simulation {
    let mut sim = Simulation::with_setup(Setup::toyjobs(pod_fates));
    sim.start();
    sim
}

/// Returns a ToyJob with these roles.
pub(crate) fn toy_job(name: &str, roles: &[(&str, i32)]) -> Value {
    job::new(JobType::Toy, name, roles, "ExitCode")
}

/// Merges a patch into the status of an object.
pub(crate) async fn edit_status(sim: &Simulation, plural: &str, name: &str, status: Value) {
    let path = format!("{}/status", path(plural, name));
    call(sim, "PATCH", &path, json!({"status": status}))
        .await
        .unwrap();
}

/// Deletes an object by force. Returns true if it existed.
pub(crate) async fn remove(sim: &Simulation, plural: &str, name: &str) -> bool {
    let now = json!({"gracePeriodSeconds": 0});
    call(sim, "DELETE", &path(plural, name), now).await.is_ok()
}

/// Returns an edit of the replica spec of the workers.
pub(crate) fn worker(patch: Value) -> Value {
    json!({"spec": {"mxReplicaSpecs": {"Worker": patch}}})
}

/// Returns an edit of the run policy.
pub(crate) fn policy(policy: Value) -> Value {
    json!({"spec": {"runPolicy": policy}})
}
