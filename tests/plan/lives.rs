//! The verdict about a job depends only on what happened to its pods: not on the order in which the updates of different
//! pods are observed, on updates that a watch skips, on delays, on restarts of the operator, or on the clocks of nodes.
//!
//! A verdict is the final condition of the job, its number of restarts, the replicas that have succeeded, and those that
//! are replaced. The facts that decide it are the writes of the pods in their order, with these limits:
//!
//! * The last write of a pod is observed. For a pod that is removed, the watch delivers its last state.
//! * An operator that restarts has stored the status of what it had observed.
//! * A node's clock differs from that of the API server by at most five minutes.
//! * If a container ended while another one of its pod runs on, and the pod is deleted less than ten minutes later, an
//!   operator that has observed neither the one nor the other alone cannot order them. No life below has that.
//! * A restart in place stops the other replicas only if it is observed before the container ends, because a replica
//!   that has ended well needs no others.
//! * Which of two replicas failed first is not decided here: at most one fails by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use training_job::Settings;
use training_job::api::{ConditionType, JobStatus};
use training_job::plan::observed::{Observed, PodRecord};
use training_job::plan::plan;
use training_job_testbed::ToyJob;

use crate::harness::{PlanHarness, Stories};
use crate::properties::{config, validate};

/// A state of a pod that a kubelet, a user or a controller writes.
#[derive(Clone, Debug, Default)]
struct Write {
    /// The time in seconds, by the clock of the API server.
    at: i64,
    phase: &'static str,
    /// The exit codes and times of the containers that have ended.
    ends: BTreeMap<&'static str, (i32, i64)>,
    /// The restarts of the framework's container, and its last exit code.
    restarts: (i32, i32),
    deletion: Option<(i64, i64)>,
    disruption: Option<(&'static str, i64)>,
    is_removed: bool,
}

/// The life of a pod, written as one change after the other.
struct Life(Vec<Write>);

impl Life {
    fn new() -> Self {
        let phase = "Running";
        Self(vec![Write {
            at: 10,
            phase,
            ..Write::default()
        }])
    }

    fn at(mut self, at: i64, change: impl FnOnce(&mut Write)) -> Self {
        let mut next = self.0.last().unwrap().clone();
        next.at = at;
        change(&mut next);
        self.0.push(next);
        self
    }

    fn ends(self, container: &'static str, code: i32, at: i64, phase: &'static str) -> Self {
        self.at(at, |write| {
            write.ends.insert(container, (code, at));
            write.phase = phase;
        })
    }

    fn deleted(self, at: i64, grace: i64) -> Self {
        self.at(at, |write| write.deletion = Some((at, grace)))
    }

    fn disrupted(self, reason: &'static str, at: i64) -> Self {
        self.at(at, |write| write.disruption = Some((reason, at)))
    }

    fn restarts(self, at: i64) -> Self {
        self.at(at, |write| {
            let (code, _) = write.ends.remove("toy").unwrap();
            write.restarts = (write.restarts.0 + 1, code);
        })
    }

    fn removed(self, at: i64) -> Self {
        self.at(at, |write| write.is_removed = true)
    }
}

/// The lives in which something may happen. A restart rule of the framework's container restarts it after 42, and one of
/// `logs` restarts all containers after 88.
const LIVES: [&str; 18] = [
    "succeeds",
    "fails",
    "killed",
    "drained",
    "drained 143",
    "deleted",
    "ended, then removed",
    "ended, then held",
    "failed, then removed",
    "shut down",
    "lost",
    "sidecar works",
    "sidecar fails",
    "sidecar stays",
    "restarts by policy",
    "restarts by rule",
    "restarts all",
    "evicted",
];

fn life(name: &str) -> Vec<Write> {
    let (new, drain) = (Life::new, "EvictionByEvictionAPI");
    let life = match name {
        "runs" => new(),
        "succeeds" => new().ends("toy", 0, 100, "Succeeded"),
        "fails" => new().ends("toy", 3, 100, "Failed"),
        "killed" => new().ends("toy", 137, 100, "Failed"),
        "drained" => new()
            .disrupted(drain, 100)
            .deleted(100, 30)
            .ends("toy", 0, 105, "Succeeded")
            .removed(106),
        "drained 143" => new()
            .disrupted(drain, 100)
            .deleted(100, 30)
            .ends("toy", 143, 100, "Failed")
            .removed(101),
        "deleted" => new()
            .deleted(100, 30)
            .ends("toy", 0, 129, "Succeeded")
            .removed(130),
        "ended, then removed" => new().ends("toy", 0, 100, "Succeeded").removed(160),
        "ended, then held" => new()
            .ends("toy", 0, 100, "Succeeded")
            .deleted(160, 0)
            .removed(900),
        "failed, then removed" => new().ends("toy", 3, 100, "Failed").removed(101),
        "shut down" => new()
            .disrupted("TerminationByKubelet", 100)
            .ends("toy", 0, 101, "Succeeded"),
        "lost" => new()
            .disrupted("DeletionByTaintManager", 400)
            .deleted(400, 30)
            .removed(700),
        "sidecar works" => new()
            .ends("toy", 0, 100, "Running")
            .ends("logs", 0, 130, "Succeeded"),
        "sidecar fails" => new()
            .ends("toy", 0, 100, "Running")
            .ends("logs", 1, 100, "Failed"),
        "sidecar stays" => {
            let life = new().ends("toy", 0, 100, "Running").deleted(1_000, 30);
            life.ends("logs", 143, 1_005, "Failed").removed(1_006)
        }
        "restarts by policy" => {
            new()
                .ends("toy", 1, 100, "Running")
                .restarts(110)
                .ends("toy", 0, 200, "Succeeded")
        }
        "restarts by rule" => {
            new()
                .ends("toy", 42, 100, "Running")
                .restarts(110)
                .ends("toy", 0, 200, "Succeeded")
        }
        "restarts all" => new()
            .ends("logs", 88, 100, "Running")
            .ends("toy", 137, 100, "Running"),
        "evicted" => new()
            .disrupted("TerminationByKubelet", 100)
            .ends("toy", 137, 100, "Failed"),
        other => panic!("no life {other}"),
    };
    life.0
}

fn time(seconds: i64) -> Timestamp {
    "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

/// Returns the record of a pod with this state. The clock of its node is ahead by `skew` seconds.
fn record(name: &str, policy: &str, write: &Write, skew: i64) -> PodRecord {
    let container = |name: &str| {
        let (restarts, last) = match name {
            "toy" => write.restarts,
            _ => (0, 0),
        };
        let end = |code: i32, at: i64| json!({"terminated": {"exitCode": code, "reason": "Error", "startedAt": time(skew), "finishedAt": time(at + skew)}});
        let state = match write.ends.get(name) {
            Some((code, at)) => end(*code, *at),
            None => json!({"running": {}}),
        };
        let last = if restarts > 0 { end(last, 100) } else { json!({}) };
        json!({"name": name, "image": "", "imageID": "", "ready": true, "restartCount": restarts, "state": state,
            "lastState": last})
    };
    let conditions = write.disruption.map(|(reason, at)| {
        let at = if reason == "TerminationByKubelet" { at + skew } else { at };
        json!([{"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": time(at)}])
    });
    let mut meta = json!({"name": name, "uid": name});
    if let Some((at, grace)) = write.deletion {
        meta["deletionTimestamp"] = json!(time(at + grace));
        meta["deletionGracePeriodSeconds"] = json!(grace);
    }
    let rule = |action: &str, code: i32| {
        let codes = json!({"operator": "In", "values": [code]});
        json!([{"action": action, "exitCodes": codes}])
    };
    let spec = json!({"restartPolicy": policy, "containers": [
        {"name": "toy", "restartPolicy": policy, "restartPolicyRules": rule("Restart", 42)},
        {"name": "logs", "restartPolicy": "Never", "restartPolicyRules": rule("RestartAllContainers", 88)}]});
    let containers = [container("toy"), container("logs")];
    // A sidecar that no life mentions is not there.
    let count = if write.ends.contains_key("logs") || write.phase == "Running" {
        2
    } else {
        1
    };
    let status =
        json!({"phase": write.phase, "conditions": conditions, "containerStatuses": containers[..count]});
    let pod = json!({"metadata": meta, "spec": spec, "status": status});
    PodRecord::from(&serde_json::from_value::<k8s_openapi::api::core::v1::Pod>(pod).unwrap())
}

/// The choices of one observation, as far as the facts allow them.
#[derive(Clone, Copy, Debug)]
struct Choice {
    /// True if the update of the second pod is observed before that of the first.
    second: bool,
    is_skipped: bool,
    is_planned: bool,
    is_restarted: bool,
    delay: i64,
}

const IN_ORDER: Choice = Choice {
    second: false,
    is_skipped: false,
    is_planned: true,
    is_restarted: false,
    delay: 0,
};

/// The result of a life that is compared.
#[derive(Debug, PartialEq)]
struct Verdict {
    end: Option<ConditionType>,
    restarts: i32,
    completed: BTreeMap<String, String>,
    replaced: BTreeMap<String, bool>,
}

struct Controller {
    job: ToyJob,
    observed: Observed,
    now: Timestamp,
    created: Vec<String>,
}

impl Controller {
    fn observe(&mut self, name: &str, mut record: PodRecord, is_removed: bool) {
        let before = self.observed.pods.get(name).cloned();
        record.follow(before.as_deref(), self.now);
        if is_removed {
            self.observed.pods.remove(name);
            if record.has_own_end() {
                self.observed.removed.insert(name.to_owned(), Arc::new(record));
            }
        } else {
            self.observed.pods.insert(name.to_owned(), Arc::new(record));
        }
    }

    /// Plans and stores the status until it is stable, as far as grace periods last.
    fn plan(&mut self) {
        for _ in 0..10 {
            let valid = validate(&self.job, &Settings::default()).unwrap();
            let plan = plan(&valid, &self.observed, self.now);
            self.created
                .extend(plan.create_pods.iter().map(|pod| pod.name.clone()));
            let grace = plan
                .requeue
                .filter(|requeue| requeue.why.starts_with("grace period"));
            match plan.status {
                Some(change) => self.job.status = Some(change.status),
                None => match grace {
                    Some(requeue) => self.now = requeue.at,
                    None => return,
                },
            }
        }
        panic!("the status does not become stable");
    }
}

fn verdict(job: &ToyJob, policy: &str, lives: [&[Write]; 2], skews: [i64; 2], choices: &[Choice]) -> Verdict {
    let names = ["job-worker-0", "job-worker-1"];
    let mut controller = Controller {
        job: job.clone(),
        observed: Observed::default(),
        now: time(0),
        created: Vec::new(),
    };
    for (name, life, skew) in [(names[0], lives[0], skews[0]), (names[1], lives[1], skews[1])] {
        controller.observe(name, record(name, policy, &life[0], skew), false);
    }
    controller.plan();
    controller.created.clear();
    let mut next = [1, 1];
    let mut choices = choices.iter().copied().chain(std::iter::repeat(IN_ORDER));
    while next[0] < lives[0].len() || next[1] < lives[1].len() {
        let choice = choices.next().unwrap();
        let due = |pod: usize| lives[pod].get(next[pod]).map_or(i64::MAX, |write| write.at);
        // The updates are written in order, and those of different pods may be observed in another one.
        let pod = match choice.second && next[1] < lives[1].len() || next[0] == lives[0].len() {
            true => 1,
            false if due(1) < due(0) && !choice.second => 1,
            false => 0,
        };
        let write = &lives[pod][next[pod]];
        next[pod] += 1;
        let is_last = next[pod] == lives[pod].len();
        controller.now = controller.now.max(time(write.at + choice.delay));
        let is_restart = write.restarts.0 > 0 && !write.ends.contains_key("toy");
        if choice.is_skipped && !is_last && !is_restart {
            continue;
        }
        controller.observe(
            names[pod],
            record(names[pod], policy, write, skews[pod]),
            write.is_removed,
        );
        if choice.is_planned || is_restart || choice.is_restarted {
            controller.plan();
        }
        if choice.is_restarted {
            controller.observed.removed.clear();
            for pod in controller.observed.pods.values_mut() {
                let bare = match names.iter().position(|name| *name == pod.name) {
                    Some(n) => record(&pod.name, policy, &lives[n][next[n] - 1], skews[n]),
                    None => continue,
                };
                *pod = Arc::new(bare);
            }
            let known: Vec<_> = controller.observed.pods.keys().cloned().collect();
            for name in known {
                let record = (*controller.observed.pods.remove(&name).unwrap()).clone();
                controller.observe(&name, record, false);
            }
        }
    }
    controller.now += SignedDuration::from_secs(10);
    controller.plan();
    let status: JobStatus = controller.job.status.clone().unwrap();
    let end = [ConditionType::Succeeded, ConditionType::Failed]
        .into_iter()
        .find(|end| status.is(*end));
    let replaced = names.map(|name| {
        let index = &name[name.len() - 1..];
        let restarts = status.recovery.job
            + status
                .recovery
                .replicas
                .get(&format!("worker-{index}"))
                .unwrap_or(&0);
        (
            name.to_owned(),
            restarts > 0 || controller.created.iter().any(|created| created == name),
        )
    });
    Verdict {
        end,
        restarts: status.restart_count,
        completed: if end.is_some() {
            BTreeMap::new()
        } else {
            status.recovery.completed
        },
        replaced: replaced.into(),
    }
}

fn choice() -> impl Strategy<Value = Choice> {
    let flag = prop::bool::weighted;
    (flag(0.3), flag(0.5), flag(0.5), flag(0.2), 0_i64..100).prop_map(
        |(second, is_skipped, is_planned, is_restarted, delay)| Choice {
            second,
            is_skipped,
            is_planned,
            is_restarted,
            delay,
        },
    )
}

fn job(policy: &str, scope: &str) -> ToyJob {
    let harness = PlanHarness::train(&format!("Worker=2:{policy}"), &format!("restartScope: {scope}"));
    harness.job
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn the_verdict_follows_from_the_facts_alone(
        life_of_first in select(&LIVES[..]),
        life_of_second in select(&["runs", "succeeds", "sidecar works", "the same"][..]),
        policy in select(&["Never", "OnFailure", "ExitCode"][..]),
        scope in select(&["Job", "Replica"][..]),
        skews in [-300_i64..=300, -300..=300],
        choices in prop::collection::vec(choice(), 0..12),
    ) {
        let is_alone = ["fails", "killed", "failed, then removed"].contains(&life_of_first);
        prop_assume!(life_of_second != "the same" || !is_alone);
        // A kubelet restarts a container that failed only under this policy.
        let policy = if life_of_first == "restarts by policy" { "OnFailure" } else { policy };
        let of_pod = if policy == "ExitCode" { "Never" } else { policy };
        let first = life(life_of_first);
        let second = if life_of_second == "the same" { life(life_of_first) } else { life(life_of_second) };
        let job = job(policy, scope);
        let expected = verdict(&job, of_pod, [&first, &second], [0, 0], &[]);
        let found = verdict(&job, of_pod, [&first, &second], skews, &choices);
        prop_assert_eq!(found, expected);
    }
}

/// The verdicts under `Never` and `OnFailure` where the job restarts as a whole, and where replicas restart alone.
#[test]
fn the_verdicts_in_order_are_these() {
    const WELL: &str = "Succeeded 0";
    const FAILED: &str = "Failed 0";
    const LOST: [&str; 4] = ["replaced 1", "replaced 1", "replaced 0", "replaced 0"];
    for (name, expected) in [
        ("succeeds", [WELL; 4]),
        ("fails", [FAILED, "replaced 1", FAILED, "replaced 1"]),
        ("killed", [FAILED, "replaced 1", FAILED, "replaced 1"]),
        ("drained", LOST),
        ("drained 143", LOST),
        ("deleted", LOST),
        ("ended, then removed", [WELL; 4]),
        ("ended, then held", [WELL; 4]),
        (
            "failed, then removed",
            [FAILED, "replaced 1", FAILED, "replaced 1"],
        ),
        ("shut down", ["replaced 1"; 4]),
        ("lost", LOST),
        ("sidecar works", [WELL; 4]),
        ("sidecar fails", [WELL; 4]),
        ("sidecar stays", [WELL; 4]),
        (
            "restarts by rule",
            ["replaced 1", "replaced 1", "Succeeded 1", "Succeeded 1"],
        ),
        ("restarts all", ["goes on 0"; 4]),
        ("evicted", ["replaced 1"; 4]),
    ] {
        let policies = [
            ("Never", "Job"),
            ("OnFailure", "Job"),
            ("Never", "Replica"),
            ("OnFailure", "Replica"),
        ];
        let found = policies.map(|(policy, scope)| {
            let lives = [life(name), life("succeeds")];
            let found = verdict(&job(policy, scope), policy, [&lives[0], &lives[1]], [0, 0], &[]);
            let end = match (&found.end, found.replaced["job-worker-0"]) {
                (Some(end), _) => end.as_str(),
                (None, true) => "replaced",
                (None, false) => "goes on",
            };
            format!("{end} {}", found.restarts)
        });
        assert_eq!(found, expected, "{name}");
    }
}
