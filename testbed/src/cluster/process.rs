//! Programs that end with the test process.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, PipeReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::sync::watch;
use tokio::time::timeout;

use super::directory::Directory;
use super::{WAIT_TIMEOUT, tail};

/// The shell becomes the program, so that the process and its exit status are the program's own. The shell's
/// background process waits for the end of the test process, which is the only holder of the pipe.
const SCRIPT: &str = r#"
exec 3<&0 4>&2
(read -r _ <&3; kill -s KILL -- "-$$") >/dev/null 2>&1 &
exec "$@" </dev/null 2>&1 3<&-
"#;

/// A program to start.
#[derive(Clone, Debug)]
pub struct Program {
    path: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
}

impl Program {
    /// Creates a program from a path or a name.
    pub fn new(path: impl AsRef<OsStr>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: None,
        }
    }

    /// Appends arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the working directory.
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets an environment variable unless it is set.
    pub(super) fn default_env(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let set = self.environment.iter().any(|(n, _)| n == name);
        if set { self } else { self.env(name, value) }
    }

    pub(super) fn default_directory(mut self, directory: PathBuf) -> Self {
        self.directory.get_or_insert(directory);
        self
    }

    pub(super) fn start(&self, directory: &Arc<Directory>) -> io::Result<Background> {
        let (output, writer) = io::pipe()?;
        let mut command = Command::new("sh");
        command
            .args(["-c", SCRIPT, "sh"])
            .arg(&self.path)
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(writer)
            .stderr(directory.hold()?)
            .process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let name = PathBuf::from(&self.path)
            .file_name()
            .unwrap_or(&self.path)
            .to_owned();
        let shared = Arc::new(Shared {
            pid,
            running: Mutex::new(true),
            output: watch::Sender::new(ProcessOutput::default()),
        });
        let attend = Arc::clone(&shared);
        let attendant = thread::spawn(move || attend.attend(child, output));
        Ok(Background {
            name: name.to_string_lossy().into_owned(),
            shared,
            attendant: Some(attendant),
            _directory: Arc::clone(directory),
        })
    }
}

/// The observed output and exit code of a process.
#[derive(Default)]
struct ProcessOutput {
    text: String,
    code: Option<i32>,
}

struct Shared {
    pid: Pid,
    /// True while the process ID still belongs to the process.
    running: Mutex<bool>,
    output: watch::Sender<ProcessOutput>,
}

impl Shared {
    /// Follows a process to its end. The shell's pipe, which is in `child`, stays open until then.
    fn attend(self: Arc<Self>, mut child: Child, output: PipeReader) {
        let guard = child.stdin.take();
        let reading = Arc::clone(&self);
        let reader = thread::spawn(move || reading.read(output));
        // The process is not reaped yet, so its process group still belongs to it.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(self.pid), options));
        let _ = kill_process_group(self.pid, Signal::KILL);
        let status = {
            let mut running = self.running.lock();
            *running = false;
            child.wait()
        };
        drop(guard);
        // The whole output is available before the exit code is.
        let _ = reader.join();
        let code = status
            .ok()
            .and_then(|s| s.code().or_else(|| s.signal().map(|n| 128 + n)));
        self.output
            .send_modify(|output| output.code = Some(code.unwrap_or(-1)));
    }

    fn read(&self, output: PipeReader) {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while matches!(output.read_until(b'\n', &mut line), Ok(1..)) {
            self.output
                .send_modify(|output| output.text.push_str(&String::from_utf8_lossy(&line)));
            line.clear();
        }
    }

    fn signal(&self, signal: Signal) {
        let running = self.running.lock();
        if *running {
            let _ = kill_process(self.pid, signal);
        }
    }
}

/// A program that runs until it ends, is dropped, or the test process ends.
pub struct Background {
    name: String,
    shared: Arc<Shared>,
    attendant: Option<JoinHandle<()>>,
    /// Keeps the directory until all its users are dropped.
    _directory: Arc<Directory>,
}

impl Background {
    /// Returns the program's file name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the process ID of the program.
    pub fn pid(&self) -> Pid {
        self.shared.pid
    }

    /// Returns the output so far, standard output and standard error.
    pub fn text(&self) -> String {
        self.shared.output.borrow().text.clone()
    }

    /// Returns the exit code if the program has ended, or 128 plus the signal number if a signal ended it.
    pub fn ended(&self) -> Option<i32> {
        self.shared.output.borrow().code
    }

    /// Sends a signal, unless the program has ended.
    pub fn signal(&self, signal: Signal) {
        self.shared.signal(signal);
    }

    /// Waits for the end. Returns the exit code, or 128 plus the signal number.
    pub async fn exit_code(&self) -> i32 {
        self.until("it to end", |output| output.code).await
    }

    /// Waits for the first line that contains this text, and returns the line.
    pub async fn wait_for_line(&self, text: &str) -> String {
        self.wait_for_lines(text, 1).await.remove(0)
    }

    /// Waits until this many lines contain this text, and returns them.
    pub async fn wait_for_lines(&self, text: &str, count: usize) -> Vec<String> {
        self.until(&format!("{count} × {text:?}"), |output| {
            let whole = &output.text[..output.text.rfind('\n').map_or(0, |end| end + 1)];
            let lines: Vec<_> = whole
                .lines()
                .filter(|line| line.contains(text))
                .map(str::to_owned)
                .collect();
            (lines.len() >= count).then_some(lines)
        })
        .await
    }

    /// Waits for a state of the program. Fails when the program has ended, because no more output will come.
    async fn until<T>(&self, what: &str, look: impl Fn(&ProcessOutput) -> Option<T>) -> T {
        let mut receiver = self.shared.output.subscribe();
        let awaited = receiver.wait_for(|output| look(output).is_some() || output.code.is_some());
        let found = match timeout(WAIT_TIMEOUT, awaited).await {
            Ok(Ok(output)) => look(&output),
            _ => None,
        };
        found.unwrap_or_else(|| panic!("{}: awaited {what}; {}", self.name, self.state()))
    }

    /// Returns the state and the last lines of output.
    pub(super) fn state(&self) -> String {
        let state = match self.ended() {
            Some(code) => format!("ended with {code}"),
            None => "runs".to_owned(),
        };
        format!("it {state}; its last lines:\n{}", tail(&self.text()))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(attendant) = self.attendant.take() {
            let _ = attendant.join();
        }
    }
}
