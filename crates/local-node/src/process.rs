//! One run of a container: its process, its output, its end.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join;
use parking_lot::Mutex;
use rustix::fs::{Access, access};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::event::{LogLine, LogLost, NodeEvent, Stream};
use super::exec::Opened;
use super::guard::{Group, Guard};
use super::launch::Launch;
use super::logs::{LineSplitter, OutputLine, RunLog};

/// The longest wait for output after the last process has ended. Output usually ends at once, unless a surviving
/// process holds the pipe or the lines are not received.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// The destinations of the output.
pub(super) struct Output {
    pub(super) namespace: String,
    pub(super) pod: String,
    pub(super) container: Option<String>,
    pub(super) log: RunLog,
    pub(super) events: mpsc::Sender<NodeEvent>,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) code: i32,
    pub(super) signal: Option<i32>,
    /// The last lines of output, if it failed.
    pub(super) message: Option<String>,
}

/// A process that has been started.
pub(super) struct Process {
    pub(super) pid: u32,
    child: Child,
    group: Group,
    output: Output,
    /// While this exists, other pods may run commands in the pod.
    pub(super) opened: Option<Opened>,
}

/// Starts a process in a group of its own. The caller must have put the marker into the process's environment.
///
/// # Errors
/// The exit code that a shell would return (127 not found, 126 not runnable), with a message for the user.
pub(super) fn start(
    launch: &Launch,
    output: Output,
    guard: &Arc<Guard>,
    marker: String,
) -> Result<Process, Exit> {
    let mut command = Command::new(program_file(launch));
    command
        .arg0(&launch.program)
        .args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&launch.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let child = command.spawn().map_err(|error| cannot_run(launch, &error))?;
    let Some(pid) = child.id() else {
        return Err(cannot_run(
            launch,
            &io::Error::other("it ended before its process ID was read"),
        ));
    };
    Ok(Process {
        pid,
        child,
        group: guard.add(pid, marker),
        output,
        opened: None,
    })
}

/// Returns the file of the program, as the process's own PATH leads to it. With a path and without `pre_exec`, the
/// standard library starts the process by `posix_spawn`. A fork would copy the page tables of this process: with the
/// objects of a thousand jobs in its memory, that was two thirds of the time of a job.
fn program_file(launch: &Launch) -> PathBuf {
    let program = Path::new(&launch.program);
    if launch.program.contains('/') {
        return program.to_owned();
    }
    let path = launch.env.iter().find(|(name, _)| name == "PATH");
    let folders = path.map_or("", |(_, path)| path).split(':');
    // A relative folder is one of the process's working directory.
    let mut files = folders.map(|folder| launch.directory.join(folder).join(program));
    let file = files.find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok());
    file.unwrap_or_else(|| program.to_owned())
}

/// Makes the linker keep the function, without which the standard library forks a process that has a working
/// directory. It refers to the function weakly, and a weak reference does not take it out of a static library.
#[cfg(target_env = "musl")]
#[used]
static CHANGE_OF_DIRECTORY: unsafe extern "C" fn(
    *mut libc::posix_spawn_file_actions_t,
    *const libc::c_char,
) -> libc::c_int = libc::posix_spawn_file_actions_addchdir_np;

impl Process {
    /// Forwards the output until the process ends, then kills all its children and returns the exit.
    pub(super) async fn run(mut self) -> Exit {
        let Output {
            namespace,
            pod,
            container,
            log,
            events,
        } = self.output;
        let log = Arc::new(Mutex::new(log));
        let reader = |stream| {
            let line = LogLine {
                namespace: namespace.clone(),
                pod: pod.clone(),
                container: container.clone(),
                text: String::new(),
                stream,
                is_update: false,
            };
            Reader {
                line,
                log: Arc::clone(&log),
                events: events.clone(),
            }
        };
        let stdout = self
            .child
            .stdout
            .take()
            .map(|pipe| reader(Stream::Stdout).read(pipe));
        let stderr = self
            .child
            .stderr
            .take()
            .map(|pipe| reader(Stream::Stderr).read(pipe));
        let output = join(
            futures::future::OptionFuture::from(stdout),
            futures::future::OptionFuture::from(stderr),
        );
        let mut output = std::pin::pin!(output);

        let mut drained = false;
        let status = loop {
            tokio::select! {
                status = self.child.wait() => break status,
                _ = &mut output, if !drained => drained = true,
            }
        };
        // Dropped before the others are killed, so that no new command starts.
        drop(self.opened);
        // Children of the process would keep the pipes, the pod's ports and the machine busy.
        let group = self.group;
        let ended = spawn_blocking(move || group.kill());
        let (_, _) = join(ended, async {
            if !drained {
                let _ = tokio::time::timeout(OUTPUT_TIMEOUT, output).await;
            }
        })
        .await;
        let tail = log.lock().tail.message();
        exit(&status, tail)
    }
}

/// Returns the exit code as of a shell, and the signal that ended the process.
pub(super) fn exit_code(status: &io::Result<ExitStatus>) -> (i32, Option<i32>) {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => (code, None),
            (None, signal) => (128 + signal.unwrap_or(0), signal),
        },
        Err(_) => (137, None),
    }
}

fn exit(status: &io::Result<ExitStatus>, tail: Option<String>) -> Exit {
    let (code, signal) = exit_code(status);
    Exit {
        code,
        signal,
        message: tail.filter(|_| code != 0),
    }
}

fn cannot_run(launch: &Launch, error: &io::Error) -> Exit {
    let program = &launch.program;
    let path = launch
        .env
        .iter()
        .find(|(name, _)| name == "PATH")
        .map_or("", |(_, path)| path);
    // For a program that is in no directory of PATH, the system returns "permission denied" if one of them is
    // unreadable.
    let in_path = || {
        path.split(':')
            .any(|directory| Path::new(directory).join(program).exists())
    };
    let nowhere = !program.contains('/') && !in_path();
    let (code, message) = match error.kind() {
        io::ErrorKind::NotFound if !launch.directory.is_dir() => (
            127,
            format!(
                "the working directory {} does not exist",
                launch.directory.display()
            ),
        ),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied if nowhere => (
            127,
            format!(
                "{program:?} is not in PATH; images are not pulled; name its directory with --path or --venv"
            ),
        ),
        io::ErrorKind::NotFound => (
            127,
            format!("{program:?} (or its interpreter) does not exist on this machine; images are not pulled"),
        ),
        _ => (126, format!("{program:?} cannot be run: {error}")),
    };
    Exit {
        code,
        signal: None,
        message: Some(message),
    }
}

/// The least time between two states of a line that overwrites itself.
const UPDATE_INTERVAL: Duration = Duration::from_secs(1);

struct Reader {
    line: LogLine,
    log: Arc<Mutex<RunLog>>,
    events: mpsc::Sender<NodeEvent>,
}

impl Reader {
    async fn read(self, mut pipe: impl AsyncRead + Unpin) {
        let mut lines = LineSplitter::default();
        let mut buffer = vec![0; 16 * 1024];
        let mut updated = None;
        // A failed pipe is treated as ended.
        while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
            for line in lines.push(&buffer[..length]) {
                self.emit(&line).await;
            }
            let is_due = updated.is_none_or(|at: Instant| at.elapsed() >= UPDATE_INTERVAL);
            if let Some(text) = lines.update().filter(|_| is_due) {
                updated = Some(Instant::now());
                let stored = self.log.lock().store(self.line.stream, lines.store());
                self.report(stored).await;
                self.send(text, true).await;
            }
        }
        if let Some(line) = lines.finish() {
            self.emit(&line).await;
        }
    }

    async fn emit(&self, line: &OutputLine) {
        let written = self.log.lock().write(self.line.stream, line);
        self.report(written).await;
        self.send(line.text(), false).await;
    }

    async fn report(&self, written: io::Result<()>) {
        if let Err(error) = written {
            let lost = LogLost {
                namespace: self.line.namespace.clone(),
                pod: self.line.pod.clone(),
                error: error.to_string(),
            };
            let _ = self.events.send(NodeEvent::LogLost(lost)).await;
        }
    }

    async fn send(&self, text: String, is_update: bool) {
        let event = NodeEvent::Log(LogLine {
            text,
            is_update,
            ..self.line.clone()
        });
        // The receiver may be closed.
        let _ = self.events.send(event).await;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_is_found_in_the_path_of_its_process() {
        let folder = std::env::temp_dir().join(format!("local-node-path-{}", std::process::id()));
        for (name, mode) in [("first/train", 0o644), ("second/train", 0o755)] {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let launch = |program: &str| Launch {
            program: program.to_owned(),
            args: Vec::new(),
            env: vec![("PATH".to_owned(), "/none:first:second:/bin".to_owned())],
            directory: folder.clone(),
            entrance: None,
        };
        assert_eq!(program_file(&launch("train")), folder.join("second/train"));
        assert_eq!(program_file(&launch("sh")), Path::new("/bin/sh"));
        assert_eq!(program_file(&launch("none")), Path::new("none"));
        assert_eq!(program_file(&launch("./train")), Path::new("./train"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn exits() {
        for (raw, code, signal) in [
            (0, 0, None),
            (3 << 8, 3, None),
            (9, 137, Some(9)),
            (15 | 0x80, 143, Some(15)),
        ] {
            let exit = exit(&Ok(ExitStatus::from_raw(raw)), Some("tail".into()));
            assert_eq!((exit.code, exit.signal), (code, signal));
            assert_eq!(exit.message.is_some(), code != 0);
        }
    }
}
