//! The resource usage of processes as Linux counts it.

use std::fs;
use std::path::Path;

/// Clock ticks per second in `/proc`.
const TICKS_PER_SECOND: f64 = 100.0;

/// The resource usage of a process so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU time in seconds.
    pub cpu: f64,
    /// The peak of the resident memory in MiB.
    pub peak_rss: f64,
    /// The current resident memory in MiB.
    pub rss: f64,
}

impl Usage {
    pub fn of(pid: i32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mebibytes = |name: &str| {
            let text = status.lines().find_map(|line| line.strip_prefix(name));
            let value = text.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
            value.unwrap_or_default() / 1024.0
        };
        Self {
            cpu: (field(pid, 11) + field(pid, 12)) / TICKS_PER_SECOND,
            peak_rss: mebibytes("VmHWM:"),
            rss: mebibytes("VmRSS:"),
        }
    }

    /// Returns the usage of this process.
    pub fn own() -> Self {
        Self::of(rustix::process::getpid().as_raw_nonzero().get())
    }
}

/// Returns the age of a process in seconds.
pub fn age(pid: i32) -> f64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let uptime = uptime
        .split_whitespace()
        .next()
        .and_then(|text| text.parse::<f64>().ok());
    uptime.unwrap_or_default() - field(pid, 19) / TICKS_PER_SECOND
}

/// Returns a number of `/proc/PID/stat`, counted after the name, because the name may contain blanks.
fn field(pid: i32, n: usize) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let number = fields.skip(n).find_map(|field| field.parse().ok());
    number.unwrap_or_default()
}

/// Returns the process of this program that has the directory in its command line.
pub fn find(program: &str, directory: &Path) -> Option<i32> {
    let directory = directory.to_string_lossy();
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let is_it = line.split('\0').next()?.ends_with(program) && line.contains(&*directory);
        is_it.then_some(pid)
    })
}
