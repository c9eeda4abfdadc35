//! When faults are over: waiting until all is at rest, and seeing that it stays so.

use crate::invariants::{Violation, rest::Rest};
use crate::users;
use crate::world::World;

/// How long a job may take to come to rest when all is well again, in seconds. Waits between tries grow
/// to 375 s.
const LONGEST: u64 = 1_800;

/// How long nothing may have changed for all to be at rest, in seconds.
const CALM: u64 = 30;

/// What is done for a world that does not come to rest by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// Nothing, and all must be as it should.
    None,
    /// Once, what blocks jobs is taken away; and what no operator can know is excused.
    ClearAway,
}

/// Waits until all is as it should be, and returns what is not if that takes too long.
pub async fn settle(world: &mut World, help: Help) -> Vec<Violation> {
    // A watch that failed again and again waits 50 s at most for its next try, and may list after another.
    world.pass_with_deaths(120).await;
    let mut waited = 0;
    let mut clear = help == Help::ClearAway;
    loop {
        world.pass_with_deaths(5).await;
        waited += 5;
        let calm = world.history.now().saturating_sub(world.monitor.last_change()) >= CALM * 1_000;
        let calm = calm && !world.is_busy();
        if !calm && waited < LONGEST {
            continue;
        }
        let mut problems = Rest::of(&world.cluster).problems();
        if help == Help::ClearAway && world.was_restored() {
            // Pods may have been made by a spec that was edited, and is as before again.
            problems.retain(|(id, _)| *id != "I13");
        }
        if problems.is_empty() && calm {
            return Vec::new();
        }
        if waited >= LONGEST {
            let at = world.history.now();
            let mut found: Vec<_> = problems
                .into_iter()
                .map(|(id, what)| Violation { id, at, what })
                .collect();
            if found.is_empty() {
                let what = "it changes and changes".to_owned();
                found.push(Violation { id: "I8", at, what });
            }
            return found;
        }
        if clear {
            // Orphans of jobs that were deleted with them stay; what blocks a job does not.
            users::clear_away(&world.cluster).await;
            clear = false;
        }
    }
}

/// Lets so many seconds pass at rest, then starts another operator: returns what is called but watches that are
/// renewed, what changes, and what the new operator does.
pub async fn stay(world: &mut World, seconds: u64) -> Vec<Violation> {
    let at = world.history.now();
    let version = world.cluster.resource_version();
    world.network.take();
    world.pass_with_deaths(seconds).await;
    let mut busy = world.network.take();
    busy.retain(|call| call.verb != "watch");
    let mut found = Vec::new();
    let mut broken = |id: &'static str, what: String| found.push(Violation { id, at, what });
    if let Some(call) = busy.first() {
        let (kind, name) = (call.kind(), &call.name);
        broken(
            "I8",
            format!("{} calls at rest, such as {kind} {name}", busy.len()),
        );
    }
    if world.cluster.resource_version() != version {
        broken("I8", "something changed at rest".to_owned());
    }
    world.kill().await;
    world.start();
    world.pass_with_deaths(20).await;
    let calls = world.network.take();
    let mut writes = calls.iter().filter(|c| c.writes() && c.resource != "events");
    if let Some(call) = writes.next() {
        broken(
            "I17",
            format!("a new operator does {} {}", call.kind(), call.name),
        );
    }
    found
}
