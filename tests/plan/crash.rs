//! The operator dies between any two of its calls, in any story. The story must end as without the crash.

use std::collections::BTreeMap;

use training_job::api::JobStatus;

use training_job_testbed::steps;

use crate::harness::{Act, PlanHarness, Stories};

struct Story {
    name: &'static str,
    start: fn() -> PlanHarness,
    /// Each happens once the cluster is at rest.
    acts: &'static [Act],
}

const STORIES: &[Story] = &[
    Story {
        name: "success",
        start: || PlanHarness::train("Scheduler=1 Server=1 Worker=2", ""),
        acts: &[
            run,
            |w| w.pod("worker-0").succeeds(),
            |w| w.pod("scheduler-0").succeeds(),
            PlanHarness::finish_deletions,
        ],
    },
    Story {
        name: "restart of the job",
        start: || PlanHarness::train("Scheduler=1 Worker=2:ExitCode", "backoffLimit: 2"),
        acts: &[
            run,
            |w| w.pod("worker-1").exits(137),
            PlanHarness::finish_deletions,
            run,
            |w| w.pod("scheduler-0").succeeds(),
            PlanHarness::finish_deletions,
        ],
    },
    Story {
        name: "restart of replicas",
        start: || {
            PlanHarness::train(
                "Scheduler=1 Worker=2:OnFailure",
                "restartScope: Replica, backoffLimit: 3",
            )
        },
        acts: &[
            run,
            |w| w.pod("worker-0").exits(1).pod("worker-1").exits(1),
            run,
            |w| w.pod("worker-0").restarts_in_place(1),
            |w| w.pod("worker-0").exits(1),
            PlanHarness::finish_deletions,
        ],
    },
    Story {
        name: "restart of a role",
        start: || PlanHarness::train("Scheduler=1 Worker=2:OnFailure", "restartScope: Role"),
        acts: &[
            run,
            |w| w.pod("worker-0").exits(1),
            PlanHarness::finish_deletions,
            run,
        ],
    },
    Story {
        name: "failure",
        start: || PlanHarness::train("Scheduler=1 Server=1 Worker=2", ""),
        acts: &[
            run,
            |w| w.pod("worker-1").exits(1),
            |w| w.pod("worker-0").exits(1),
            PlanHarness::finish_deletions,
        ],
    },
    Story {
        name: "limit",
        start: || {
            PlanHarness::train(
                "Scheduler=1 Worker=2:OnFailure",
                "backoffLimit: 0, cleanPodPolicy: None",
            )
        },
        acts: &[
            run,
            |w| w.pod("worker-0").restarts_in_place(1),
            PlanHarness::finish_deletions,
        ],
    },
    Story {
        name: "deadline and time to live",
        start: || {
            PlanHarness::train(
                "Worker=2",
                "activeDeadlineSeconds: 60, ttlSecondsAfterFinished: 60",
            )
        },
        acts: &[
            run,
            |w| w.after(60),
            PlanHarness::finish_deletions,
            |w| w.after(60),
        ],
    },
    Story {
        name: "suspension",
        start: || PlanHarness::train("Scheduler=1 Worker=2", "backoffLimit: 0"),
        acts: &[
            run,
            |w| w.suspend(true),
            |w| w.suspend(false),
            PlanHarness::finish_deletions,
            run,
            |w| w.suspend(true),
            PlanHarness::finish_deletions,
        ],
    },
    Story {
        name: "scaling",
        start: || PlanHarness::train("Scheduler=1 Worker=3", "backoffLimit: 0"),
        acts: &[
            run,
            |w| w.scale("Worker", 1),
            PlanHarness::finish_deletions,
            |w| w.scale("Worker", 2),
            run,
        ],
    },
    Story {
        name: "loss",
        start: || PlanHarness::train("Scheduler=1 Worker=2", "backoffLimit: 1"),
        acts: &[
            run,
            |w| w.pod("worker-0").deleted_by_user(),
            PlanHarness::finish_deletions,
            PlanHarness::finish_deletions,
            run,
        ],
    },
    Story {
        name: "helpers that restart alone",
        start: || PlanHarness::train("Server=3:OnFailure Worker=1", "restartScope: Replica"),
        acts: &[
            run,
            |w| w.pod("server-0").exits(1),
            run,
            |w| w.pod("worker-0").succeeds(),
            PlanHarness::finish_deletions,
        ],
    },
    Story {
        name: "mistake",
        start: || PlanHarness::train("Worker=-1", ""),
        acts: &[|w| w.scale("Worker", 1), run, |w| w.pod("worker-0").succeeds()],
    },
];

fn run(w: &mut PlanHarness) -> &mut PlanHarness {
    let names = w.pod_names();
    let pending = |n: &&String| !n.starts_with('(') && w.pods[&format!("job-{n}")].status.is_none();
    let pending: Vec<String> = names.iter().filter(pending).cloned().collect();
    for name in pending {
        w.pod(&name).running();
    }
    w
}

/// Runs a pass in which only the first `calls` calls are made, and the status is stored or not.
fn crashed_pass(w: &mut PlanHarness, calls: usize, stored: bool) {
    let plan = w.plan();
    w.check_plan(&plan);
    for step in steps(&plan).iter().take(calls) {
        w.carry_out(step);
    }
    if stored {
        w.store(&plan);
    }
    w.restart_operator();
}

/// The final state that a user can see, without events, which a crash may lose.
#[derive(Debug, PartialEq)]
struct End {
    pods: Vec<String>,
    services: Vec<String>,
    attempts: BTreeMap<String, u32>,
    status: JobStatus,
    job_deleted: bool,
}

fn end(w: &PlanHarness) -> End {
    End {
        pods: w.pod_names(),
        services: w.service_names(),
        attempts: w.attempts(),
        status: w.status(),
        job_deleted: w.job_deleted,
    }
}

/// Plays a story. After act `crash_at.0`, pass `crash_at.1` ends early.
fn play(story: &Story, crash_at: Option<(usize, usize)>, calls: usize, stored: bool) -> PlanHarness {
    let mut w = (story.start)();
    for n in 0..=story.acts.len() {
        if n > 0 {
            story.acts[n - 1](&mut w);
        }
        if let Some((_, pass)) = crash_at.filter(|(act, _)| *act == n) {
            for _ in 0..pass {
                w.reconcile_once();
            }
            crashed_pass(&mut w, calls, stored);
        }
        w.reconcile();
    }
    w
}

/// Returns the number of calls in each pass after each act, without crashes.
fn passes(story: &Story) -> Vec<(usize, usize, usize)> {
    let mut w = (story.start)();
    let mut found = Vec::new();
    for n in 0..=story.acts.len() {
        if n > 0 {
            story.acts[n - 1](&mut w);
        }
        let mut pass = 0;
        while !w.job_deleted && !w.plan().is_idle() {
            found.push((n, pass, steps(&w.plan()).len()));
            w.reconcile_once();
            pass += 1;
        }
    }
    found
}

#[test]
fn every_story_ends_the_same_wherever_the_operator_dies() {
    for story in STORIES {
        let undisturbed = end(&play(story, None, 0, false));
        let mut crashes = 0;
        for (act, pass, calls) in passes(story) {
            for made in 0..=calls {
                for stored in [false, true] {
                    let w = play(story, Some((act, pass)), made, stored);
                    assert_eq!(
                        end(&w),
                        undisturbed,
                        "{}: crash after act {act}, pass {pass}, with {made} of {calls} calls made, status stored: {stored}",
                        story.name
                    );
                    crashes += 1;
                }
            }
        }
        assert!(
            crashes >= story.acts.len(),
            "{}: the story has passes to crash in",
            story.name
        );
    }
}

#[test]
fn stories_end_as_they_should() {
    // The reference of the crash test must itself be correct.
    let ends: Vec<String> = STORIES
        .iter()
        .map(|story| {
            let w = play(story, None, 0, false);
            format!(
                "{}: {} restarts {} pods {:?}",
                story.name,
                w.state(),
                w.status().restart_count,
                w.pod_names()
            )
        })
        .collect();
    insta::assert_snapshot!(ends.join("\n"));
}
