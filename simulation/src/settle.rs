//! After the last fault: waits until the cluster settles, and checks that it stays settled.

use crate::invariants::Violation;
use crate::simulation::Simulation;
use crate::users;

/// How long a cluster may take to settle, in seconds. The operator's backoff grows to 375 s.
const LONGEST: u64 = 1_800;

/// For how many seconds nothing may have changed in a settled cluster.
const QUIET: u64 = 30;

/// What to do with objects that block jobs if the cluster does not settle by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blockers {
    /// Keep them: the cluster must settle all the same.
    Keep,
    /// Delete them once, and excuse what no operator can know.
    Delete,
}

/// Waits until the cluster is settled, and returns the violations if that takes too long.
pub async fn wait_until_settled(sim: &mut Simulation, blockers: Blockers) -> Vec<Violation> {
    // A watch that failed again and again is retried after 50 s at most, and may need a list then.
    sim.advance_replacing_dead(120).await;
    let mut waited = 0;
    let mut may_delete = blockers == Blockers::Delete;
    loop {
        sim.advance_replacing_dead(5).await;
        waited += 5;
        let quiet = sim.history.now().saturating_sub(sim.monitor.last_change()) >= QUIET * 1_000;
        let quiet = quiet && !sim.has_pending_pods();
        if !quiet && waited < LONGEST {
            continue;
        }
        let mut problems = sim.settled().problems();
        if blockers == Blockers::Delete && sim.was_restored() {
            // Pods may have been rendered from an edit of the spec that the backup undid.
            problems.retain(|(id, _)| *id != "I13");
        }
        if problems.is_empty() && quiet {
            return Vec::new();
        }
        if waited >= LONGEST {
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
            // Jobs that were deleted with the policy Orphan have left children, which may block other jobs.
            users::delete_blockers(&sim.cluster).await;
            may_delete = false;
        }
    }
}

/// Lets so many seconds pass in a settled cluster, then starts another operator. Any call but a watch that is renewed,
/// any change, and any write of the new operator is a violation.
pub async fn check_idle(sim: &mut Simulation, seconds: u64) -> Vec<Violation> {
    let at = sim.history.now();
    let version = sim.cluster.resource_version();
    sim.network.take_calls();
    sim.advance_replacing_dead(seconds).await;
    let mut calls = sim.network.take_calls();
    calls.retain(|call| call.verb != "watch");
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
    if sim.cluster.resource_version() != version {
        violated("I8", "something changed in a settled cluster".to_owned());
    }
    sim.kill().await;
    sim.start();
    sim.advance_replacing_dead(20).await;
    let calls = sim.network.take_calls();
    let mut writes = calls.iter().filter(|c| c.writes() && c.resource != "events");
    if let Some(call) = writes.next() {
        let what = format!("a new operator does {} {}", call.verb_and_resource(), call.name);
        violated("I17", what);
    }
    violations
}
