//! A program's `local` command.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use kube_manifest::Source;
use tokio::signal::unix::{SignalKind, signal};

use local_node::{NodeConfig, NodeError};

use super::{Jobs, Run, RunError};

/// Runs the jobs of a manifest on this machine, and prints their events line by line ([`RunEvent::line`]). A
/// program's `main` can end with this call. Processes start in the manifest's folder.
///
/// A bad manifest is rejected before anything starts. All of its errors are printed, one line for each:
/// `file:line:column: field: problem; remedy`.
///
/// Exit codes: 0 if all jobs succeeded, 1 if a job did not or the machine lacks something, 2 for a bad manifest, 130
/// after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP. No process is left behind. A second signal ends the wait for
/// them.
///
/// [`RunEvent::line`]: super::RunEvent::line
pub fn main(file: &Path, jobs: Jobs) -> ExitCode {
    let name = file.display().to_string();
    let fail = |code: u8, why: &dyn std::fmt::Display| {
        eprintln!("{name}: {why}");
        ExitCode::from(code)
    };
    let manifest = match Source::from_file(file, 0).text {
        Ok(manifest) => manifest,
        Err(error) => return fail(2, &error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &error),
    };
    let config = NodeConfig {
        // The folder of a file name without a directory is empty.
        workdir: Path::new(".").join(file.parent().unwrap_or(Path::new(""))),
        ..NodeConfig::default()
    };
    let ended = runtime.block_on(async {
        let run = jobs.manifest(&name, &manifest)?.start(config).await?;
        run_to_end(run)
            .await
            .map_err(|error| RunError::Node(NodeError::Machine(error)))
    });
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error @ RunError::Manifest(_)) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
        Err(error) => fail(if error.is_bad_input() { 2 } else { 1 }, &error),
    }
}

async fn run_to_end(mut run: Run) -> io::Result<u8> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut stopped = None;
    loop {
        let code = tokio::select! {
            biased;
            Some(()) = interrupt.recv() => 130,
            Some(()) = terminate.recv() => 143,
            Some(()) = hangup.recv() => 129,
            event = run.next() => match event {
                Some(event) => {
                    if let Some(line) = event.line() {
                        // A closed standard output must not stop the jobs.
                        let _ = writeln!(io::stdout(), "{line}");
                    }
                    continue;
                }
                None => break,
            }
        };
        if stopped.is_some() {
            break;
        }
        run.stop();
        stopped = Some(code);
    }
    for why in run.dead_ends() {
        eprintln!("{why}");
    }
    Ok(stopped.unwrap_or(if run.succeeded() { 0 } else { 1 }))
}
