//! The processes of a run, read from the kernel.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// The polling interval for changes without events.
const INTERVAL: Duration = Duration::from_millis(5);
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Process {
    pub pid: u32,
    pub command: String,
    environment: Vec<String>,
}

/// Returns all living processes that an operator has started: those of its pods, their children, and the guard.
pub fn of_run(operator: u32) -> Vec<Process> {
    let marker = format!("TRAINING_JOB_POD={operator}-");
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let marked = |process: &Process| {
        // The guard has the marker in its arguments.
        process.command.contains(&marker) || process.environment.iter().any(|v| v.starts_with(&marker))
    };
    pids.filter_map(process).filter(marked).collect()
}

/// Returns the first process of a pod, which has started the others.
#[track_caller]
pub fn first_of_pod(operator: u32, pod: &str) -> u32 {
    let name = format!("HOSTNAME={pod}");
    let of_pod = of_run(operator)
        .into_iter()
        .filter(|process| process.environment.contains(&name));
    // The numbers of processes begin anew at a maximum, so a later process may have a smaller one.
    of_pod
        .map(|process| process.pid)
        .min_by_key(|pid| start_time(*pid))
        .expect("a process of the pod")
}

/// Returns the time at which a process started, in ticks since the machine did; the largest one if it has ended.
fn start_time(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program is in parentheses, and may contain any characters. The time is field 22.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let time = fields.split_whitespace().nth(19);
    time.and_then(|time| time.parse().ok()).unwrap_or(u64::MAX)
}

/// Returns the only process of a run whose host name is that of a pod.
#[track_caller]
pub fn of_pod(operator: u32, pod: &str) -> u32 {
    let name = format!("HOSTNAME={pod}");
    let mut found = of_run(operator);
    found.retain(|process| process.environment.contains(&name));
    match &found[..] {
        [process] => process.pid,
        _ => panic!("of {pod}: {found:?}"),
    }
}

/// Returns the host names of a run's processes, sorted.
pub fn of_pods(operator: u32) -> Vec<String> {
    let processes = of_run(operator);
    let variables = processes.iter().flat_map(|process| &process.environment);
    let mut names: Vec<String> = variables
        .filter_map(|variable| variable.strip_prefix("HOSTNAME="))
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names
}

/// Waits until no process of a run is left.
#[track_caller]
pub fn expect_gone(operator: u32) {
    poll(
        || of_run(operator).is_empty(),
        || format!("{:?}", of_run(operator)),
    );
}

/// Polls a condition, because there is no event for the end of processes that are not children.
#[track_caller]
fn poll(done: impl Fn() -> bool, state: impl Fn() -> String) {
    let give_up = Instant::now() + LIMIT;
    while !done() {
        assert!(
            Instant::now() < give_up,
            "after {} s: {}",
            LIMIT.as_secs(),
            state()
        );
        thread::sleep(INTERVAL);
    }
}

fn process(pid: u32) -> Option<Process> {
    let read = |file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).ok()?;
        let words = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        Some(words.map(|word| word.into_owned()).collect::<Vec<_>>())
    };
    // Ended processes and zombies have none, and those of other users are unreadable.
    let environment = read("environ")?;
    Some(Process {
        pid,
        command: read("cmdline")?.join(" "),
        environment,
    })
}
