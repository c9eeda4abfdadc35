//! `training-operator local run`: the operator, an in-memory Kubernetes API and a node agent in one
//! process, so that a job's replicas run as processes of this machine.

mod board;
mod screen;
mod summary;
mod view;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use futures::FutureExt;
use local_node::{Jobs, NodeConfig, Run, RunEvent};
use tokio::time::{Instant, Interval, sleep_until};

use crate::kinds::kinds;
use crate::machine::Machine;
use crate::signals::Signals;

use board::Board;
use view::View;

/// Events that are shown before the table is.
const AT_ONCE: usize = 256;

/// What to run, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Job manifests: files, or `-` for standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Where the replicas' processes start [default: the folder of the first FILE]
    #[arg(long, value_name = "DIR")]
    pub workdir: Option<PathBuf>,

    #[command(flatten)]
    pub machine: Machine,

    /// Give up after so many seconds, with exit code 1
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .trim_end_matches('s')
        .parse()
        .map_err(|_| "a number of seconds is needed".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}

/// How a run ended.
enum End {
    /// All jobs have ended, or cannot go on.
    Finished,
    /// The time was up.
    TimedOut(Duration),
    /// A signal came; its exit code.
    Interrupted(u8),
}

/// Runs the jobs, and returns how it ended: 0 if all jobs succeeded, 1 if not, 130 after Ctrl-C.
///
/// # Errors
/// The machine lacks something that is needed, or the API refuses a job.
pub(crate) async fn run(args: &Args, jobs: Jobs) -> anyhow::Result<ExitCode> {
    args.machine.check()?;
    let mut signals = Signals::listen()?;
    let run = jobs.start(node_config(args)).await?;
    let mut stage = Stage {
        board: Board::new(&run, &kinds()),
        run,
        view: View::new(std::io::stdout().is_terminal(), args.machine.why),
        ticks: tokio::time::interval(Duration::from_secs(1)),
    };
    stage.view.note(&format!(
        "images are not pulled: commands run on this machine, in {}",
        workdir(args).display()
    ));
    let end = stage.play(args, &mut signals).await;

    stage.run.stop();
    let stopped = stage.play_out(&mut signals).await;
    let Stage {
        run, board, mut view, ..
    } = stage;
    view.close();
    if !stopped {
        view.note("killed");
    }
    screen::write(&summary::of(&run, &board));
    Ok(match end {
        End::Finished if run.succeeded() => ExitCode::SUCCESS,
        End::Finished => {
            for why in run.dead_ends() {
                eprintln!("training-operator: {why}");
            }
            ExitCode::from(1)
        }
        End::TimedOut(after) => {
            eprintln!(
                "training-operator: not finished after {} s (--timeout)",
                after.as_secs_f64()
            );
            ExitCode::from(1)
        }
        End::Interrupted(code) => ExitCode::from(code),
    })
}

/// Jobs of all kinds, none yet.
pub(crate) fn jobs() -> Jobs {
    kinds().iter().fold(Jobs::default(), |jobs, kind| {
        (kind.add_local)(jobs, kind.adjust_local)
    })
}

fn workdir(args: &Args) -> PathBuf {
    let of_file = args
        .files
        .first()
        .and_then(|file| file.parent())
        .filter(|dir| !dir.as_os_str().is_empty());
    args.workdir
        .clone()
        .or(of_file.map(Into::into))
        .unwrap_or_else(|| PathBuf::from("."))
}

fn node_config(args: &Args) -> NodeConfig {
    args.machine.node_config(workdir(args), &[])
}

/// All that is shown, and where it comes from.
struct Stage {
    run: Run,
    board: Board,
    view: View,
    ticks: Interval,
}

impl Stage {
    /// Shows what happens until all jobs have ended or the user has had enough.
    async fn play(&mut self, args: &Args, signals: &mut Signals) -> End {
        let give_up = args.timeout.map(|timeout| (timeout, Instant::now() + timeout));
        loop {
            tokio::select! {
                // Processes that write without pause must not hold up the rest.
                biased;
                code = signals.next() => {
                    self.view.note("stopping; once more to kill at once");
                    return End::Interrupted(code);
                }
                () = until(give_up.map(|(_, at)| at)) => {
                    return End::TimedOut(give_up.map_or(Duration::ZERO, |(timeout, _)| timeout));
                }
                more = self.show_next() => if !more {
                    return End::Finished;
                }
            }
        }
    }

    /// Shows what happens while the node stops; returns whether it did before the user lost patience.
    async fn play_out(&mut self, signals: &mut Signals) -> bool {
        loop {
            tokio::select! {
                biased;
                _ = signals.next() => return false,
                more = self.show_next() => if !more {
                    return true;
                }
            }
        }
    }

    /// Shows the next event, and those that are there already; returns whether there is more to come.
    async fn show_next(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.ticks.tick() => {}
            event = self.run.next() => if !self.show(event) {
                return false;
            }
        }
        // One table for many lines, but not for ever: there may be a signal.
        for _ in 0..AT_ONCE {
            match self.run.next().now_or_never() {
                Some(event) => {
                    if !self.show(event) {
                        return false;
                    }
                }
                None => break,
            }
        }
        self.view.tick(&self.board);
        true
    }

    fn show(&mut self, event: Option<RunEvent>) -> bool {
        match event {
            None => return false,
            Some(RunEvent::Node(event)) => self.view.output(&event, &self.board),
            Some(event) => {
                let news = self.board.take(&event);
                self.view.changed(news.as_ref(), &self.board);
            }
        }
        true
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
