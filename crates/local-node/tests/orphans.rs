//! The orphans of a process. The process of the other tests must not reap their children.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Processes that a shell leaves behind.
const ORPHANS: usize = 50;

/// In a container whose first process does not reap orphans, a process that is not reaped stays for ever.
#[test]
fn orphans_are_killed_and_reaped() {
    local_node::adopt_orphans();
    for _ in 0..20 {
        let script = format!("for i in $(seq {ORPHANS}); do (sleep 998 & echo $!; wait) & done");
        let mut shell = Command::new("sh");
        let mut shell = shell
            .args(["-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        let pids: Vec<String> = lines.take(ORPHANS).map(Result::unwrap).collect();
        shell.wait().unwrap();
        local_node::end_orphans();
        let is_left = |pid: &&String| Path::new("/proc").join(pid).exists();
        assert_eq!(pids.iter().find(is_left), None);
    }
}
