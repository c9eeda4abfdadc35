//! Measures `training-operator render` from files to text: `cargo bench --package training-operator --bench render`.
//!
//! Renders one file with 1,000 jobs of five replicas, and files with fewer jobs. The difference is the cost of a job,
//! the rest is the cost of the start.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot read its own job has found an error"
)]

use std::process::Command;
use std::time::Instant;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/mxnet/train.yaml");

fn main() {
    let example = std::fs::read_to_string(EXAMPLE).unwrap();
    let (_, job) = example.split_once("\napiVersion").unwrap();
    let dir = std::env::temp_dir().join(format!("bench-render-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    println!(
        "{:>8} {:>10} {:>10} {:>12} {:>10}",
        "jobs", "seconds", "µs/job", "KiB in", "KiB out"
    );
    for jobs in [1, 10, 100, 1_000] {
        let of = |n: u32| {
            format!(
                "---\napiVersion{}",
                job.replacen("name: spirals", &format!("name: job-{n}"), 1)
            )
        };
        let text: String = (0..jobs).map(of).collect();
        let file = dir.join(format!("{jobs}.yaml"));
        std::fs::write(&file, &text).unwrap();
        // The fastest of several runs counts, because other load on the machine only adds time.
        let run = || {
            let begun = Instant::now();
            let render = Command::new(env!("CARGO_BIN_EXE_training-operator"))
                .arg("render")
                .arg(&file)
                .output();
            let output = render.unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            (begun.elapsed().as_secs_f64(), output.stdout.len())
        };
        let (seconds, bytes) = (0..3).map(|_| run()).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        let each = seconds * 1e6 / f64::from(jobs);
        println!(
            "{jobs:>8} {seconds:>10.3} {each:>10.0} {:>12} {:>10}",
            text.len() / 1_024,
            bytes / 1_024
        );
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
