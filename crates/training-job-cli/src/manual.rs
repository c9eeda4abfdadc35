//! `completions` and `man`, both generated from the command line.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Command, Subcommand};

use crate::exit::Failure;
use crate::help::help;
use crate::write;

const COMPLETIONS_HELP: &str = "\
Examples:
  {program} completions bash > /etc/bash_completion.d/{program}
  source <({program} completions zsh)
  {program} completions fish > ~/.config/fish/completions/{program}.fish

Exit codes:
  0  success
  2  bad usage";

/// The commands that print the command line itself, for `#[command(flatten)]` in a program's command line.
#[derive(Debug, Subcommand)]
pub enum Manual {
    /// Print a completion script for a shell.
    Completions(Completions),
    /// Print the manual page.
    Man(Man),
}

impl Manual {
    /// Runs the command. `command` is the whole command line of the program.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn run(&self, command: Command) -> Result<ExitCode, Failure> {
        match self {
            Self::Completions(arguments) => completions(arguments, command),
            Self::Man(arguments) => man(arguments, command),
        }
    }
}

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = help(COMPLETIONS_HELP))]
pub struct Completions {
    /// The shell that runs the script.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

const MAN_HELP: &str = "\
Examples:
  {program} man | man -l -
  {program} man --dir /usr/local/share/man/man1

Exit codes:
  0  success
  2  the files cannot be written, or bad usage";

/// Print the manual page.
#[derive(Debug, clap::Args)]
#[command(after_help = help(MAN_HELP))]
pub struct Man {
    /// Write one page per command into this directory instead.
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn completions(arguments: &Completions, mut command: Command) -> Result<ExitCode, Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    write::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

fn man(arguments: &Man, command: Command) -> Result<ExitCode, Failure> {
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
