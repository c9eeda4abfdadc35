//! Waits until the cluster settles after the last fault, and checks that it stays settled.

use std::collections::BTreeSet;

use crate::call::Call;
use crate::invariants::Violation;
use crate::scenario::users;
use crate::simulation::Simulation;

/// The maximum time for a cluster to settle, in seconds. The operator's backoff grows to 375 s.
const SETTLE_TIMEOUT_SECONDS: u64 = 1_800;

/// The number of seconds without changes after which a cluster counts as settled.
const QUIET_SECONDS: u64 = 30;

/// The number of seconds without output, because progress is read every 15 s and written once a minute.
const SILENT_SECONDS: u64 = 90;

/// The handling of objects that block jobs if the cluster does not settle by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blockers {
    /// Keep them. The cluster must settle nevertheless.
    Keep,
    /// Delete them once, and excuse violations that an operator cannot detect.
    Delete,
}

/// Waits until the cluster is settled. Returns the violations if that takes too long.
pub async fn wait_until_settled(sim: &mut Simulation, blockers: Blockers) -> Vec<Violation> {
    // A watch that failed repeatedly is retried after at most 50 s, and may need a list then.
    sim.advance_replacing_dead(120).await;
    let mut waited = 0;
    let mut may_delete = blockers == Blockers::Delete;
    loop {
        sim.advance_replacing_dead(5).await;
        waited += 5;
        let quiet = sim.history.now().saturating_sub(sim.monitor.last_change()) >= QUIET_SECONDS * 1_000;
        let silence = sim.monitor.silence(sim.history.now());
        let is_silent = silence.is_none_or(|silence| silence >= SILENT_SECONDS * 1_000);
        let quiet = quiet && is_silent && !sim.has_pending_steps();
        if !quiet && waited < SETTLE_TIMEOUT_SECONDS {
            continue;
        }
        let mut problems = sim.settled().problems();
        if blockers == Blockers::Delete && sim.was_restored() {
            // Pods may have been rendered from an edit of the spec that the restore undid.
            problems.retain(|(id, _)| *id != "I13");
        }
        // An event is sent once: a fault that hit the call, or a restored backup, may have lost it.
        let may_lack_events = sim.network.may_lack_events() || sim.was_restored();
        problems.retain(|(id, _)| *id != "I24" || !may_lack_events);
        if problems.is_empty() && quiet {
            return Vec::new();
        }
        if waited >= SETTLE_TIMEOUT_SECONDS {
            let at = sim.history.now();
            let mut violations: Vec<_> = problems
                .into_iter()
                .map(|(id, what)| Violation { id, at, what })
                .collect();
            if violations.is_empty() {
                let what = "the cluster still changes".to_owned();
                violations.push(Violation { id: "I8", at, what });
            }
            return violations;
        }
        if may_delete {
            // Jobs that were deleted with the policy Orphan have left children behind, which may block other jobs.
            users::delete_blockers(&sim.cluster).await;
            may_delete = false;
        }
    }
}

/// Waits this many seconds in a settled cluster, then starts another operator. Calls other than the renewal of a
/// watch, the count of an event, one event for each pending pod, and the reason in the status of its job are violations. So
/// are other changes, and any write of the new operator.
pub async fn check_idle(sim: &mut Simulation, seconds: u64) -> Vec<Violation> {
    let at = sim.history.now();
    let version = sim.cluster.resource_version();
    sim.network.take_calls();
    sim.advance_replacing_dead(seconds).await;
    let mut calls = sim.network.take_calls();
    calls.retain(|call| call.verb != "watch" && !call.is("get", "pods/log"));
    // Each operator writes the count of an event once, after its last repetition.
    let mut counted = BTreeSet::new();
    calls.retain(|call| !(call.is("patch", "events") && counted.insert((call.operator, call.name.clone()))));
    // Each operator reports a pending pod once, five minutes after it cached the pod.
    let mut named = 0;
    let due = sim.pending_pods() * sim.operators();
    calls.retain(|call| {
        let is_due = call.is("create", "events") && named < due;
        named += usize::from(is_due);
        !is_due
    });
    let mut explained = BTreeSet::new();
    calls.retain(|call| {
        let explanation = (call.operator, call.name.clone());
        // The event itself may be missing, because a job may write 25 events at once, and then one in five minutes.
        !(due > 0 && explains_wait(sim, call) && explained.insert(explanation))
    });
    let mut violations = Vec::new();
    let mut violated = |id: &'static str, what: String| violations.push(Violation { id, at, what });
    if let Some(call) = calls.first() {
        let (sort, name) = (call.verb_and_resource(), &call.name);
        let what = format!(
            "{} calls in a settled cluster, such as {sort} {name}",
            calls.len()
        );
        violated("I8", what);
    }
    if sim.cluster.resource_version() > version + (counted.len() + named + explained.len()) as u64 {
        violated("I8", "something changed in a settled cluster".to_owned());
    }
    sim.kill().await;
    sim.start();
    sim.advance_replacing_dead(20).await;
    let calls = sim.network.take_calls();
    let writes = calls.iter().filter(|c| c.writes() && c.resource != "events");
    let mut writes = writes.filter(|call| {
        let is_explained = explained.iter().any(|(_, name)| *name == call.name);
        !explains_wait(sim, call) || is_explained
    });
    if let Some(call) = writes.next() {
        let what = format!("a new operator does {} {}", call.verb_and_resource(), call.name);
        violated("I17", what);
    }
    violations
}

/// Returns true if the call writes the status of a job that waits for a pod. Together with the event about the pod, the
/// status gets the reason.
fn explains_wait(sim: &Simulation, call: &Call) -> bool {
    let job = call
        .resource
        .strip_suffix("/status")
        .filter(|_| call.verb == "patch");
    let job = job.map(|resource| sim.stored(resource, &call.name));
    job.is_some_and(|job| job["status"]["waitingReason"].is_string())
}
