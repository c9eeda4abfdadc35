//! `training-operator`. The code is in the library beside this file, because fuzzing uses it as well.

use std::process::ExitCode;

fn main() -> ExitCode {
    training_operator::main()
}
