//! `completions` and `man`, both generated from the command line.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, Subcommand, ValueHint};
use clap_complete::Shell;
use training_job_review::{Failure, help, write};

use crate::kinds::Kinds;

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
    /// Runs the command. `command` is the whole command line of the program, and `kinds` are its kinds of job.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn run(&self, command: Command, kinds: &Kinds) -> Result<ExitCode, Failure> {
        match self {
            Self::Completions(arguments) => completions(arguments, command, kinds),
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
    shell: Shell,
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
    /// Write one page per command, and per verb of kubectl training, into this directory instead.
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn completions(arguments: &Completions, command: Command, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let name = command.get_name().to_owned();
    let mut command = with_values(command, kinds);
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, &name, &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if arguments.shell == Shell::Bash {
        script = mended_bash(&script, &name);
    }
    write::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Adds the values that the shell can complete: kinds of job, gang schedulers, files and directories. The command line
/// itself accepts more, such as kinds in another case.
fn with_values(command: Command, kinds: &Kinds) -> Command {
    // The leak is small, because a process builds one script.
    let names = kinds.iter().map(|kind| &*String::from(kind.name()).leak());
    let names: Vec<&'static str> = names.collect();
    let of_arg = |arg: Arg| {
        let value = arg
            .get_value_names()
            .and_then(|names| names.first())
            .map(ToString::to_string);
        match value.as_deref() {
            Some("KIND") => arg.value_parser(PossibleValuesParser::new(names.clone())),
            Some("DIR") => arg.value_hint(ValueHint::DirPath),
            Some("FILE") => arg.value_hint(ValueHint::FilePath),
            _ if arg.get_long() == Some("gang-scheduler-name") => {
                arg.value_parser(PossibleValuesParser::new(GANG_SCHEDULERS))
            }
            _ => arg,
        }
    };
    command
        .mut_args(of_arg)
        .mut_subcommands(|subcommand| with_values(subcommand, kinds))
}

/// The gang schedulers to complete: Volcano, and the usual name of a scheduler with the coscheduling plugin.
const GANG_SCHEDULERS: [&str; 2] = ["volcano", "scheduler-plugins-scheduler"];

/// The lines of a script that add directories to the files, and those that take their place.
const ADD_DIRECTORIES: &str = "\
                    COMPREPLY=()
                    if [[ \"${BASH_VERSINFO[0]}\" -ge 4 ]]; then
                        compopt -o plusdirs
                    fi
";
const REPLY_DIRECTORIES: &str = "                    COMPREPLY=($(compgen -d \"${cur}\"))\n";

/// The line that completes options where no option precedes.
const REPLY_OPTIONS: &str = "            COMPREPLY=( $(compgen -W \"${opts}\"";

/// Corrects the script of `clap_complete` for bash. It writes the program's name in two ways if the name has a hyphen, so
/// that no subcommand completes (clap-rs/clap#6421). It also offers the names of arguments, such as `<FILE>...`, as words,
/// and options where files are expected, and it offers files for directories.
fn mended_bash(script: &str, name: &str) -> String {
    let script = script
        .replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"))
        .replace(ADD_DIRECTORIES, REPLY_DIRECTORIES);
    let mut mended = String::with_capacity(script.len());
    let mut takes_files = false;
    for line in script.lines() {
        let code = line.trim_start();
        let line = if let Some(words) = code.strip_prefix("opts=\"-") {
            let words = format!("-{}", words.trim_end_matches('"'));
            let is_word = |word: &&str| !word.starts_with(['<', '[']);
            let kept: Vec<&str> = words.split(' ').filter(is_word).collect();
            takes_files = kept.iter().all(|word| word.starts_with('-'));
            line.replace(&words, &kept.join(" "))
        } else if takes_files && code.starts_with("if [[ ${cur} == -*") {
            line.replace(code, "if [[ ${cur} == -* ]] ; then")
        } else if takes_files && line.starts_with(REPLY_OPTIONS) {
            // Without a reply, bash completes files.
            continue;
        } else {
            line.to_owned()
        };
        mended += &line;
        mended.push('\n');
    }
    mended
}

fn man(arguments: &Man, command: Command) -> Result<ExitCode, Failure> {
    if let Some(directory) = &arguments.dir {
        let commands = [
            command,
            #[cfg(feature = "views")]
            crate::Kubectl::command(training_job_program::program().version),
        ];
        let mut commands = commands.into_iter();
        fs::create_dir_all(directory)
            .and_then(|()| commands.try_for_each(|command| clap_mangen::generate_to(command, directory)))
            .map_err(|error| Failure::new(&directory.display().to_string(), error))?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        write::print(&String::from_utf8_lossy(&page))?;
    }
    Ok(ExitCode::SUCCESS)
}
