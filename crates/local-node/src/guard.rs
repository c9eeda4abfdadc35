//! Kills left-over processes when the agent ends for any reason.
//!
//! Each agent has one guard process: a shell that receives the id of every process group over a pipe. The pipe closes
//! when the agent ends, also by SIGKILL. The guard then kills the remaining groups. It is not needed while the agent
//! lives, because a [`Group`] kills its processes when it is dropped.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rustix::process::Signal;

use super::kill::{MARKER, signal_group, sweep};

/// Reads `+GROUP` and `-GROUP`. At the end of input it kills the remaining groups, and then all processes with the
/// marker ($1), repeatedly while it finds some. It removes the agent's folder ($2) last.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
live=' '
while read -r line; do
    group=${line#?}
    case $line in
    +*) live="$live$group " ;;
    -*) case $live in *" $group "*) live="${live%% "$group" *} ${live#* "$group" }" ;; esac ;;
    esac
done
for group in $live; do kill -s KILL -- "-$group"; done
rounds=100
while [ "$rounds" -gt 0 ]; do
    found=$(grep -lsF -e "$1" /proc/[0-9]*/environ)
    [ -n "$found" ] || break
    for file in $found; do
        pid=${file#/proc/}
        kill -s KILL "${pid%/environ}"
    done
    rounds=$((rounds - 1))
done
rm -rf -- "$2"
"#;

/// The longest wait for the end of the guard process.
const GUARD_END_TIMEOUT: Duration = Duration::from_secs(5);

/// All process groups of one agent, and the process that guards them.
#[derive(Debug)]
pub(super) struct Guard {
    /// Distinguishes this agent's processes from those of all others, including earlier ones.
    agent: String,
    groups: Mutex<Groups>,
}

#[derive(Debug)]
struct Groups {
    child: Child,
    /// `None` once nothing may run any more.
    pipe: Option<ChildStdin>,
    live: BTreeSet<u32>,
}

impl Guard {
    /// Starts the guard process, which removes `folder` at its end.
    ///
    /// # Errors
    /// `/bin/sh` cannot be run.
    pub(super) fn start(folder: &Path) -> io::Result<Arc<Self>> {
        static AGENTS: AtomicU32 = AtomicU32::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let number = AGENTS.fetch_add(1, Ordering::Relaxed);
        let agent = format!("{}-{number}-{}", std::process::id(), now.as_nanos());
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "training-job-guard"])
            .arg(format!("{MARKER}={agent}/"))
            .arg(folder)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The guard must not receive the signals that a terminal sends to the agent's group.
            .process_group(0)
            .spawn()?;
        let pipe = child.stdin.take();
        Ok(Arc::new(Self {
            agent,
            groups: Mutex::new(Groups {
                child,
                pipe,
                live: BTreeSet::new(),
            }),
        }))
    }

    /// Returns the marker's value for one container.
    pub(super) fn marker(&self, pod_uid: &str, container: &str) -> String {
        format!("{}/{pod_uid}/{container}/", self.agent)
    }

    /// Adds a new process group to the guarded groups. If the agent has ended meanwhile, the group is killed.
    pub(super) fn add(self: &Arc<Self>, group: u32, marker: String) -> Group {
        let mut groups = self.groups.lock();
        groups.live.insert(group);
        if groups.pipe.is_none() {
            signal_group(group, Signal::KILL);
        }
        groups.send('+', group);
        Group {
            guard: Arc::clone(self),
            id: group,
            marker,
            ended: false,
        }
    }

    /// Kills all groups, and every group that is added later. Blocks for some milliseconds, at most about five
    /// seconds.
    pub(super) fn close(&self) {
        let mut groups = self.groups.lock();
        let Some(pipe) = groups.pipe.take() else { return };
        sweep(groups.live.iter().copied(), &format!("{}/", self.agent));
        drop(pipe);
        let give_up = Instant::now() + GUARD_END_TIMEOUT;
        while matches!(groups.child.try_wait(), Ok(None)) && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn remove(&self, group: u32) {
        let mut groups = self.groups.lock();
        groups.live.remove(&group);
        groups.send('-', group);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.close();
    }
}

impl Groups {
    /// Informs the guard process of a new group (`+`) or an ended one (`-`).
    fn send(&mut self, sign: char, group: u32) {
        let Some(pipe) = &mut self.pipe else { return };
        if let Err(error) = writeln!(pipe, "{sign}{group}") {
            tracing::warn!(%error, "the guard process has ended; processes may outlive an agent that is killed");
        }
    }
}

/// The processes of one run of a container. Dropping it kills them.
#[derive(Debug)]
pub(super) struct Group {
    guard: Arc<Guard>,
    id: u32,
    marker: String,
    ended: bool,
}

impl Group {
    /// Kills all remaining processes of the run, in the group and outside. Blocks for some milliseconds.
    pub(super) fn kill(mut self) {
        self.kill_all();
    }

    fn kill_all(&mut self) {
        if !self.ended {
            self.ended = true;
            sweep([self.id], &self.marker);
            self.guard.remove(self.id);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill_all();
    }
}
