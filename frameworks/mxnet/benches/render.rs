//! Measures the rendering of jobs to pods and services: `cargo bench --package training-job-mxnet --bench render`.
//!
//! * 1,000 jobs of five replicas, from their YAML to the JSON that would be sent.
//! * Growth: one job with more and more workers. `MX_CONFIG` contains every replica in every pod, so the bytes grow with
//!   the square. The time for each byte should not grow.

#![expect(clippy::unwrap_used, reason = "a measurement may fail by panic")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use training_job::{Settings, render, validate};
use training_job_mxnet::MXJob;

const JOBS: u32 = 1_000;

fn yaml(name: &str, servers: u32, workers: u32) -> String {
    let role = |role: &str, replicas: u32| {
        format!(
            "    {role}:
      replicas: {replicas}
      restartPolicy: ExitCode
      template:
        spec:
          containers:
          - name: mxnet
            image: example.com/mxnet-train:1.9.1
            command: [python3, train.py, --kv-store, dist_sync]
            env:
            - {{name: OMP_NUM_THREADS, value: \"1\"}}
            resources:
              limits: {{cpu: \"2\", memory: 4Gi, nvidia.com/gpu: \"1\"}}
"
        )
    };
    format!(
        "apiVersion: kubeflow.org/v1
kind: MXJob
metadata: {{name: {name}, namespace: team, uid: 3f0f4b0e-5f3c-4d1b-9a52-0a3a5f0e8f11}}
spec:
  jobMode: MXTrain
  mxReplicaSpecs:
{}{}{}",
        role("Scheduler", 1),
        role("Server", servers),
        role("Worker", workers)
    )
}

/// Returns the bytes of all rendered objects of a job, and the time for the rendering.
fn make(yaml: &str) -> (usize, Duration) {
    let begun = Instant::now();
    let job: MXJob = serde_saphyr::from_str(yaml).unwrap();
    let (bytes, _) = make_of(&job);
    (bytes, begun.elapsed())
}

fn make_of(job: &MXJob) -> (usize, Duration) {
    let begun = Instant::now();
    let valid = validate(job, &Settings::default()).unwrap();
    let rendered = render::all(&valid);
    let services = rendered
        .services
        .iter()
        .map(|s| serde_json::to_string(s).unwrap().len());
    let pods = rendered
        .pods
        .iter()
        .map(|p| serde_json::to_string(p).unwrap().len());
    let bytes = black_box(services.sum::<usize>() + pods.sum::<usize>());
    (bytes, begun.elapsed())
}

fn main() {
    let jobs: Vec<String> = (0..JOBS).map(|n| yaml(&format!("job-{n}"), 2, 2)).collect();
    let took: Duration = jobs.iter().map(|job| make(job).1).sum();
    println!(
        "{JOBS} jobs of 5 replicas: {:.3} s on one core, {:.0} µs a job",
        took.as_secs_f64(),
        took.as_secs_f64() * 1e6 / f64::from(JOBS)
    );

    println!(
        "\n{:>8} {:>12} {:>12} {:>12} {:>10}",
        "workers", "ms", "KiB", "µs/replica", "ns/byte"
    );
    for workers in [1, 10, 100, 1_000] {
        let job: MXJob = serde_saphyr::from_str(&yaml("grow", 1, workers)).unwrap();
        // The fastest of several runs counts, because other work of the machine only adds time.
        let (bytes, took) = (0..5)
            .map(|_| make_of(&job))
            .min_by_key(|(_, took)| *took)
            .unwrap();
        let seconds = took.as_secs_f64();
        println!(
            "{workers:>8} {:>12.3} {:>12} {:>12.1} {:>10.2}",
            seconds * 1e3,
            bytes / 1024,
            seconds * 1e6 / f64::from(workers + 2),
            seconds * 1e9 / bytes as f64
        );
    }
}
