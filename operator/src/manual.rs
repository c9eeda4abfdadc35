//! `training-operator completions` and `training-operator man`, both generated from the command line.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;

use crate::exit::Failure;
use crate::write;

const COMPLETIONS_HELP: &str = "\
Examples:
  training-operator completions bash > /etc/bash_completion.d/training-operator
  source <(training-operator completions zsh)
  training-operator completions fish > ~/.config/fish/completions/training-operator.fish

Exit codes:
  0  success
  2  bad usage";

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct Completions {
    /// The shell that runs the script.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

const MAN_HELP: &str = "\
Examples:
  training-operator man | man -l -
  training-operator man --dir /usr/local/share/man/man1

Exit codes:
  0  success
  2  the files cannot be written, or bad usage";

/// Print the manual page.
#[derive(Debug, clap::Args)]
#[command(after_help = MAN_HELP)]
pub(crate) struct Man {
    /// Write one page per command into this directory instead.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}

pub(crate) fn completions(arguments: &Completions, mut command: Command) -> Result<ExitCode, Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    write::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(arguments: &Man, command: Command) -> Result<ExitCode, Failure> {
    if let Some(directory) = &arguments.dir {
        fs::create_dir_all(directory)
            .and_then(|()| clap_mangen::generate_to(command, directory))
            .map_err(|error| Failure::new(&directory.display().to_string(), error))?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        write::print(&String::from_utf8_lossy(&page))?;
    }
    Ok(ExitCode::SUCCESS)
}
