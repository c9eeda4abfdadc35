//! Suspend and resume (#4, #15, #17, #25, #26).

use crate::world::World;

#[test]
fn a_running_job_is_stopped_and_begins_anew() {
    let mut w = World::train("Scheduler=1 Worker=1", "activeDeadlineSeconds: 60").started();
    let start = w.status().start_time;
    w.after(50).suspend(true).settle();
    assert_eq!(
        w.conditions(),
        [
            "Created=True(MXJobCreated)",
            "Running=False(MXJobSuspended)",
            "Suspended=True(MXJobSuspended)"
        ]
    );
    assert_eq!((w.counts("Worker"), w.status().start_time), ((0, 0, 0), start));
    w.after(50).reap().settle();
    assert_eq!((w.pod_names().len(), w.service_names().len()), (0, 0));
    assert_eq!(w.state(), ["Created", "Suspended"], "the deadline does not run");
    w.after(500).suspend(false).settle();
    assert_eq!(w.status().start_time.unwrap().0, w.now);
    w.all_running();
    assert_eq!(w.state(), ["Created", "Running"]);
    w.after(59).settle();
    assert_eq!(w.state(), ["Created", "Running"]);
    w.after(1).settle();
    assert_eq!(
        w.state(),
        ["Created", "Failed"],
        "the deadline counts from the resumption"
    );
}

#[test]
fn a_restarting_job_that_is_suspended_is_not_restarting() {
    let mut w = World::train("Scheduler=1:ExitCode Worker=1", "").started();
    w.pod("scheduler-0").exits(137);
    w.settle();
    assert_eq!(w.state(), ["Created", "Restarting"]);
    w.suspend(true).settle();
    assert_eq!(w.state(), ["Created", "Suspended"]);
    w.reap().settle();
    w.suspend(false).settle();
    w.all_running();
    assert_eq!(
        (w.state(), w.status().restart_count),
        (vec!["Created".into(), "Running".to_owned()], 1)
    );
}

#[test]
fn nothing_that_was_done_before_a_suspension_counts_after_it() {
    let mut w = World::train("Worker=2", "").started();
    w.pod("worker-0").succeeds();
    w.pod("worker-0").vanishes();
    w.settle();
    w.suspend(true).settle().reap().settle();
    w.suspend(false).settle();
    assert_eq!(w.pod_names(), ["worker-0", "worker-1"]);
}

#[test]
fn a_finished_job_cannot_be_suspended() {
    let mut w = World::train("Worker=1", "").started();
    w.pod("worker-0").succeeds();
    w.settle();
    w.suspend(true).settle();
    assert_eq!(
        (w.state(), w.pod_names()),
        (
            vec!["Created".into(), "Succeeded".to_owned()],
            vec!["worker-0".to_owned()]
        )
    );
}
