//! Help texts with the name of the program.

use training_job_controller::process::program;

/// Returns a help text with the program's name in the place of each `{program}`.
pub fn help(text: &str) -> String {
    text.replace("{program}", &program().name)
}
