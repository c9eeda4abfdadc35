//! Kills process groups, and finds processes that left theirs.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper, wait,
};

/// The variable that marks every process of this agent's pods, inherited by their children.
///
/// Its value is `AGENT/POD_UID/CONTAINER/`: see [`sweep`].
pub(super) const MARKER: &str = "TRAINING_JOB_POD";

/// The variable with the markers of the callers of a command in another pod, one for each step from pod to pod. The
/// command belongs to the callers too.
pub(super) const CALLERS: &str = "TRAINING_JOB_CALLERS";

/// The number of times that [`sweep`] looks again, a millisecond apart, for processes that were forked meanwhile or
/// take long to die.
const MAX_SWEEP_ROUNDS: u32 = 1000;

/// Sends a signal to a process group, if it still exists.
pub(super) fn signal_group(group: u32, signal: Signal) {
    // Group 1 and below would address processes that are not ours.
    let Some(pid) = i32::try_from(group)
        .ok()
        .filter(|pid| *pid > 1)
        .and_then(Pid::from_raw)
    else {
        return;
    };
    // The only failures are a missing group, or one of another user; both can be ignored.
    let _ = kill_process_group(pid, signal);
}

/// Kills process groups, and every process whose marker's value begins with `value`. Waits until they are gone,
/// because their resources (above all ports) may be needed next. A process that cleared its environment *and* left
/// its process group is not found.
pub(super) fn sweep(groups: impl IntoIterator<Item = u32>, value: &str) {
    kill_all(groups, |marker| marker.starts_with(value));
}

/// Kills all processes of a pod, including those of other agents.
pub(super) fn sweep_pod(uid: &str) {
    kill_all([], |marker| marker.split('/').nth(1) == Some(uid));
}

fn kill_all(groups: impl IntoIterator<Item = u32>, wanted: impl Fn(&str) -> bool) {
    // They are found before the kill, because a dying process has no environment.
    let mut dying: HashSet<Pid> = marked(&wanted).collect();
    for group in groups {
        signal_group(group, Signal::KILL);
    }
    for pid in &dying {
        let _ = kill_process(*pid, Signal::KILL);
    }
    for _ in 0..MAX_SWEEP_ROUNDS {
        for pid in marked(&wanted) {
            let _ = kill_process(pid, Signal::KILL);
            dying.insert(pid);
        }
        dying.retain(|pid| !is_over(*pid));
        if dying.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Makes this process the parent of all processes below it whose parent ends, such as daemons that left their session.
/// [`end_orphans`] then finds them. For a program that runs a node, not for a library: it concerns the whole process.
pub fn adopt_orphans() {
    // Only Linux before 3.4 lacks it. Then such a process is missed, as before.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Kills all children of this process, and those that it then inherits, until none is left. To be called after the end
/// of all nodes of this process.
pub fn end_orphans() {
    for _ in 0..MAX_SWEEP_ROUNDS {
        loop {
            match wait(WaitOptions::NOHANG) {
                // A child that has ended stays in the table of processes until it is reaped.
                Ok(Some(_)) => {}
                Ok(None) => break,
                // The process has no child.
                Err(_) => return,
            }
        }
        for pid in children_of(getpid()) {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the children of a process, with those that have ended and are not reaped yet.
fn children_of(parent: Pid) -> impl Iterator<Item = Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(move |pid| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        // The state and the parent follow the program's name, which is in brackets.
        let rest = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        rest.split_whitespace().nth(1) == Some(parent.as_raw_nonzero().to_string().as_str())
    })
}

/// Returns true if a process is gone, or is a zombie that its parent has to reap.
fn is_over(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    // The state follows the program's name, which is in brackets and may contain any characters.
    stat.rsplit_once(')')
        .is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// Returns the processes with a marker whose value is wanted.
fn marked(wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = Pid> {
    let own = std::process::id();
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(move |entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            // Other users' processes cannot be read, and zombies have no environment.
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let mut values = environment.split(|byte| *byte == 0).flat_map(markers);
            let marked = values.any(&wanted);
            (marked && pid != own)
                .then(|| i32::try_from(pid).ok().and_then(Pid::from_raw))
                .flatten()
        })
}

/// Returns the markers in a variable.
fn markers(variable: &[u8]) -> impl Iterator<Item = &str> {
    let value = [MARKER, CALLERS]
        .iter()
        .find_map(|name| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    let text = value.and_then(|value| std::str::from_utf8(value).ok());
    text.unwrap_or_default().split_ascii_whitespace()
}
