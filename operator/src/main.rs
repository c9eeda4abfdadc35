//! x
use training_job::TrainingJob;
fn main() {
    println!(
        "{}",
        serde_json::to_string(&training_job_mxnet::MXJob::definition()).unwrap_or_default()
    );
}
