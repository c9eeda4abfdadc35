//! What processes use, as Linux counts it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Pid;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Clock ticks in a second, in `/proc`.
const TICKS: f64 = 100.0;

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Seconds of CPU.
    pub(crate) cpu: f64,
    /// The most memory that it had at once, in MiB.
    pub(crate) peak_rss: f64,
}

impl Usage {
    pub(crate) fn of(pid: i32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Behind the name, which may have blanks.
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let ticks = |n: usize| {
            fields
                .get(n)
                .and_then(|field| field.parse::<f64>().ok())
                .unwrap_or_default()
        };
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
        Self {
            cpu: (ticks(11) + ticks(12)) / TICKS,
            peak_rss: peak.unwrap_or_default() / 1024.0,
        }
    }

    /// Of this process.
    pub(crate) fn own() -> Self {
        Self::of(rustix::process::getpid().as_raw_nonzero().get())
    }
}

/// The process of this program that has the directory in its command line.
pub(crate) fn find(program: &str, directory: &Path) -> Option<i32> {
    let directory = directory.to_string_lossy();
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let is_it = line.split('\0').next()?.ends_with(program) && line.contains(&*directory);
        is_it.then_some(pid)
    })
}

/// Counts a process's sockets again and again, until it is dropped.
pub(crate) struct Sockets {
    most: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Sockets {
    /// The most that were open at once.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn watch_sockets(pid: Pid) -> Sockets {
    let most = Arc::new(AtomicUsize::new(0));
    let counted = most.clone();
    let task = tokio::spawn(async move {
        loop {
            let open = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()));
            let is_socket = |link: &std::path::PathBuf| link.to_string_lossy().starts_with("socket:");
            let links = open
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|fd| fs::read_link(fd.path()).ok());
            counted.fetch_max(links.filter(is_socket).count(), Ordering::Relaxed);
            sleep(Duration::from_millis(200)).await;
        }
    });
    Sockets { most, task }
}
