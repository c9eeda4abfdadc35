//! What the rows share: small lives, faults at each of their calls, and what must hold at the end.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use training_job_simulation::calm::{Help, settle, stay};
use training_job_simulation::exhaustive::{self, try_case, undisturbed};
use training_job_simulation::fault::{Fault, Site};
use training_job_simulation::job::{self, Kind};
use training_job_simulation::kubelet::Fate::{self, Fails, Succeeds};
use training_job_simulation::report::Report;
use training_job_simulation::run::{Outcome, Scenario, run};
use training_job_simulation::settings::{Settings, suits};
use training_job_simulation::users::{Act, Deed, JobPlan};
use training_job_simulation::wire::{path, request};
use training_job_simulation::workloads::Workload;
use training_job_simulation::world::World;

/// The smallest training that has two roles.
pub(crate) const PAIR: [(&str, i32); 2] = [("Scheduler", 1), ("Worker", 1)];

/// Says what becomes of pods.
pub(crate) type Script = fn(&str, u32) -> Fate;

/// Ends well, the scheduler last, also after a pod that a fault made late.
pub(crate) fn ends_well(name: &str, _: u32) -> Fate {
    Succeeds(if name.contains("scheduler") { 200 } else { 100 })
}

/// The worker is killed once.
pub(crate) fn is_killed_once(name: &str, attempt: u32) -> Fate {
    match attempt {
        0 if name.ends_with("worker-0") => Fails(137, 100),
        _ => ends_well(name, attempt),
    }
}

/// The life of one job; what users do after it was made comes with its seconds.
pub(crate) fn life(
    name: &str,
    fates: fn(&str, u32) -> Fate,
    policy: Value,
    deeds: Vec<(u64, Deed)>,
) -> Workload {
    let mut object = job::of(Kind::Train, "job", &PAIR, "ExitCode");
    object["spec"]["runPolicy"] = policy;
    let mut settings = Settings::calm();
    settings.span = 500;
    let act = |(seconds, deed)| Act {
        at: seconds * 1_000,
        deed,
    };
    let made = (0, Deed::Create(0));
    let plan = JobPlan {
        kind: Kind::Train,
        name: "job".to_owned(),
        object,
    };
    Workload {
        name: name.to_owned(),
        scenario: Scenario {
            settings,
            jobs: vec![plan],
            acts: std::iter::once(made).chain(deeds).map(act).collect(),
            faults: Some(BTreeMap::new()),
            fates: Some(fates),
        },
    }
}

/// From creation to success, after which everything is deleted.
pub(crate) fn success() -> Workload {
    life("success", ends_well, json!({"cleanPodPolicy": "All"}), Vec::new())
}

/// A failure in between, and the restart of the whole job.
pub(crate) fn restart() -> Workload {
    life(
        "restart",
        is_killed_once,
        json!({"cleanPodPolicy": "Running"}),
        Vec::new(),
    )
}

/// The places of the calls of an undisturbed life.
pub(crate) fn sites(workload: &Workload) -> Vec<Site> {
    exhaustive::sites(&undisturbed(workload))
}

/// Whether a place is that of a write.
pub(crate) fn writes(site: &Site) -> bool {
    !reads(site)
}

/// Whether a place is that of a list, a watch or a get.
pub(crate) fn reads(site: &Site) -> bool {
    ["list", "watch", "get"].iter().any(|v| site.calls.starts_with(v))
}

/// Lives the life once for each of these places, with one of these faults after the other: no invariant breaks, and the
/// end is that of the life without faults. (`make sim` has every fault at every place.)
pub(crate) fn in_turn(workload: &Workload, at: impl Fn(&Site) -> bool, faults: &[Fault]) {
    let mut cases = Vec::new();
    let sites = sites(workload);
    for (number, site) in sites.iter().filter(|site| at(site)).enumerate() {
        let fault = faults
            .iter()
            .cycle()
            .skip(number)
            .find(|fault| suits(fault, &site.calls));
        cases.extend(fault.map(|fault| BTreeMap::from([(site.clone(), fault.clone())])));
    }
    each(workload, cases);
}

/// Lives the life once for each of these faults at each of these places: no invariant breaks, and the end is
/// that of the life without faults.
pub(crate) fn everywhere(workload: &Workload, at: impl Fn(&Site) -> bool, faults: &[Fault]) {
    let mut cases = Vec::new();
    for site in sites(workload).iter().filter(|site| at(site)) {
        for fault in faults.iter().filter(|fault| suits(fault, &site.calls)) {
            cases.push(BTreeMap::from([(site.clone(), fault.clone())]));
        }
    }
    each(workload, cases);
}

/// Lives the life once with each of these sets of faults.
pub(crate) fn each(workload: &Workload, cases: Vec<BTreeMap<Site, Fault>>) {
    let expected = undisturbed(workload);
    let mut report = Report::default();
    assert!(!cases.is_empty());
    for faults in cases {
        let told: Vec<_> = faults
            .iter()
            .map(|(site, f)| format!("{f:?} at {site}"))
            .collect();
        let case = (format!("{}: {}", workload.name, told.join(", ")), faults);
        let outcome = try_case(workload, &expected, &case, &mut report);
        assert!(!outcome.met.is_empty(), "{}: it never happened", case.0);
    }
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
}

/// Waits until nothing changes any more, then: everything is as it should be, nothing is called but watches,
/// and a new operator finds nothing to do.
pub(crate) async fn rest(world: &mut World) {
    world.network.heal();
    let problems = settle(world, Help::None).await;
    assert!(problems.is_empty(), "{problems:#?}\n{}", world.history.text());
    world.check();
    assert_eq!(world.network.blind(), [""; 0], "deletes without a UID");
    assert_eq!(world.network.vain(), [""; 0], "writes that changed nothing");
    let restless = stay(world, 130).await;
    assert!(restless.is_empty(), "{restless:#?}");
    world.check();
}

/// Lives through a scenario, in which no invariant breaks.
pub(crate) fn sound(scenario: &Scenario, case: &str) -> Outcome {
    let outcome = run(scenario);
    let found = &outcome.violations;
    assert!(found.is_empty(), "{case}: {found:#?}\n{}", outcome.history);
    outcome
}

/// How many events there are of this reason.
pub(crate) fn told(world: &World, reason: &str) -> usize {
    world.events().iter().filter(|e| *e == reason).count()
}

/// How often pods and services of this name were made, and how many of them are gone.
pub(crate) fn made(world: &World, child: &str) -> (u64, u64) {
    world.monitor.counts().get(child).copied().unwrap_or_default()
}

/// A user's call: the answer, or the refusal's code.
pub(crate) async fn call(world: &World, method: &str, path: &str, body: Value) -> Result<Value, u16> {
    let method = method.parse().unwrap();
    match world.user.request::<Value>(request(method, path, &body)).await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{error}"),
    }
}

/// Makes an object.
pub(crate) async fn make(world: &World, plural: &str, object: Value) {
    call(world, "POST", &path(plural, ""), object).await.unwrap();
}

/// Makes so many pods that look like ours, and are nobody's, that a list of all has two pages.
pub(crate) async fn fill_a_page(world: &World) {
    for number in 0..500 {
        let metadata = json!({
            "name": format!("a-{number}"),
            "labels": {"training.kubeflow.org/operator-name": "mxjob-controller"},
        });
        make(world, "pods", job::foreign("pods", &metadata)).await;
    }
}

/// Merges a patch into an object.
pub(crate) async fn edit(world: &World, plural: &str, name: &str, patch: Value) {
    call(world, "PATCH", &path(plural, name), patch).await.unwrap();
}

/// Merges a patch into the status of an object.
pub(crate) async fn edit_status(world: &World, plural: &str, name: &str, status: Value) {
    let path = format!("{}/status", path(plural, name));
    call(world, "PATCH", &path, json!({"status": status}))
        .await
        .unwrap();
}

/// Deletes an object at once; whether it was there.
pub(crate) async fn remove(world: &World, plural: &str, name: &str) -> bool {
    let now = json!({"gracePeriodSeconds": 0});
    call(world, "DELETE", &path(plural, name), now).await.is_ok()
}

/// Merges this into the spec of the worker.
pub(crate) fn worker(patch: Value) -> Value {
    json!({"spec": {"mxReplicaSpecs": {"Worker": patch}}})
}

/// A run policy, as a part of a job.
pub(crate) fn policy(policy: Value) -> Value {
    json!({"spec": {"runPolicy": policy}})
}
