//! One run of the operator: its output and its end.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::processes;

/// The time limit for each wait. It allows for other load on the machine.
pub const LIMIT: Duration = Duration::from_secs(180);

/// A running operator. Dropping it kills the operator, and its guard then ends the operator's processes.
pub struct Run {
    child: Child,
    lines: Receiver<Line>,
    /// The lines of standard output so far.
    out: Vec<String>,
    err: Vec<String>,
}

enum Line {
    Out(String),
    Err(String),
}

/// The exit code and the output of a run.
pub struct Ended {
    /// The exit code, or 128 plus the signal.
    pub code: i32,
    pub out: Vec<String>,
    pub err: Vec<String>,
}

/// A row of the summary's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub phase: String,
    pub exit: Option<i32>,
    pub restarts: u32,
}

impl Run {
    pub fn start(command: &mut Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (sender, lines) = channel();
        read(child.stdout.take().unwrap(), sender.clone(), Line::Out);
        read(child.stderr.take().unwrap(), sender, Line::Err);
        Self {
            child,
            lines,
            out: Vec::new(),
            err: Vec::new(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line of standard output that contains all the words, and returns it. Earlier lines are skipped.
    pub fn line(&mut self, words: &[&str]) -> String {
        let give_up = Instant::now() + LIMIT;
        while let Some(line) = self.next(give_up) {
            if let Line::Out(line) = line {
                self.out.push(line.clone());
                if words.iter().all(|word| line.contains(word)) {
                    return line;
                }
            }
        }
        panic!("ended without a line with {words:?}\n{}", self.so_far());
    }

    pub fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits for the end. No process of the run may be left.
    pub fn end(self) -> Ended {
        let pid = self.pid();
        let ended = self.end_anyhow();
        let left = processes::of_run(pid);
        assert!(left.is_empty(), "left behind: {left:?}\n{}", ended.transcript());
        ended
    }

    /// Waits for the end. Processes may be left.
    pub fn end_anyhow(mut self) -> Ended {
        let give_up = Instant::now() + LIMIT;
        while let Some(line) = self.next(give_up) {
            if let Line::Out(line) = line {
                self.out.push(line);
            }
        }
        let status = self.child.wait().unwrap();
        Ended {
            code: status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            out: std::mem::take(&mut self.out),
            err: std::mem::take(&mut self.err),
        }
    }

    /// Returns the next line, or `None` once both outputs have ended.
    fn next(&mut self, give_up: Instant) -> Option<Line> {
        let left = give_up.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(Line::Err(line)) => {
                self.err.push(line.clone());
                Some(Line::Err(line))
            }
            Ok(line) => Some(line),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                panic!("nothing came for {} s\n{}", LIMIT.as_secs(), self.so_far())
            }
        }
    }

    fn so_far(&self) -> String {
        transcript(&self.out, &self.err)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Returns the exit code and the output, for messages of failed tests.
    pub fn transcript(&self) -> String {
        format!("exit code {}\n{}", self.code, transcript(&self.out, &self.err))
    }

    #[track_caller]
    pub fn expect_code(&self, code: i32) {
        assert_eq!(self.code, code, "{}", self.transcript());
    }

    /// Returns the only line of standard output that contains all the words.
    #[track_caller]
    pub fn only(&self, words: &[&str]) -> &str {
        match self.all(words)[..] {
            [line] => line,
            ref lines => panic!("{} lines with {words:?}\n{}", lines.len(), self.transcript()),
        }
    }

    /// Returns the lines of standard output that contain all the words.
    pub fn all(&self, words: &[&str]) -> Vec<&str> {
        let has = |line: &&String| words.iter().all(|word| line.contains(word));
        self.out.iter().filter(has).map(String::as_str).collect()
    }

    /// Returns the conditions of a job in the summary, each once, in the order in which they last became true.
    pub fn conditions(&self, job: &str) -> Vec<&str> {
        let mut lines = self
            .out
            .iter()
            .rev()
            .skip_while(|line| !line.starts_with("REPLICA"));
        let summary: Vec<&String> = lines.by_ref().take_while(|line| *line != job).collect();
        let fields = |line: &&'_ String| line.starts_with("  ") && line.as_bytes().get(4) == Some(&b':');
        let mut found: Vec<&str> = Vec::new();
        for line in summary.into_iter().rev() {
            if !line.starts_with("  ") {
                // The next job of the summary, or the table.
                break;
            }
            if !fields(&line) {
                continue;
            }
            let type_ = line.split_whitespace().nth(1).unwrap();
            found.retain(|known| *known != type_);
            found.push(type_);
        }
        found
    }

    /// Returns the summary's table.
    pub fn table(&self) -> BTreeMap<&str, Row> {
        let start = self.out.iter().rposition(|line| line.starts_with("REPLICA"));
        let start = start.unwrap_or_else(|| panic!("no table\n{}", self.transcript()));
        let rows = self.out[start + 1..].iter().map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let exit = words[2..words.len() - 1]
                .iter()
                .find_map(|word| word.parse().ok());
            let restarts = words[words.len() - 1].parse().unwrap();
            (
                words[0],
                Row {
                    phase: words[1].to_owned(),
                    exit,
                    restarts,
                },
            )
        });
        rows.collect()
    }

    /// Checks that all replicas have succeeded after this number of restarts.
    #[track_caller]
    pub fn expect_all_succeeded(&self, replicas: &[&str], restarts: u32) {
        let row = Row {
            phase: "Succeeded".to_owned(),
            exit: Some(0),
            restarts,
        };
        let expected = replicas.iter().map(|name| (*name, row.clone())).collect();
        assert_eq!(self.table(), expected, "{}", self.transcript());
    }
}

pub fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, signal).unwrap();
}

fn read(pipe: impl Read + Send + 'static, lines: Sender<Line>, of: fn(String) -> Line) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if lines.send(of(line)).is_err() {
                return;
            }
        }
    });
}

fn transcript(out: &[String], err: &[String]) -> String {
    format!("--- out\n{}\n--- err\n{}\n---", out.join("\n"), err.join("\n"))
}
