//! `training-operator`. All of it is in the library beside this file, where fuzzing finds it too.

use std::process::ExitCode;

fn main() -> ExitCode {
    training_operator::main()
}
