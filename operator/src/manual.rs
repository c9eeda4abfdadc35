//! `training-operator completions` and `training-operator man`: both made from the command line itself.

use std::fs;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::cli::{Cli, Completions, Man};
use crate::exit::Failure;
use crate::write;

/// Prints what a shell needs to complete commands.
pub(crate) fn completions(arguments: &Completions) -> Result<ExitCode, Failure> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    write::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes one for each command.
pub(crate) fn man(arguments: &Man) -> Result<ExitCode, Failure> {
    if let Some(directory) = &arguments.dir {
        fs::create_dir_all(directory)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
            .map_err(|error| Failure::new(&directory.display().to_string(), error))?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        write::print(&String::from_utf8_lossy(&page))?;
    }
    Ok(ExitCode::SUCCESS)
}
