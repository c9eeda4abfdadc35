//! Measures the parts of a reconcile for a job of 5 replicas and one of 1,000: `make bench-micro`. Reports times, and
//! allocations with their bytes.
//!
//! `make bench-instructions BASE=COMMIT` compares the same parts by instructions, which do not depend on other load
//! on the machine. `micro names` prints the names of the benchmarks. `micro once NAME` runs one of them once in a
//! function that Callgrind can find.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot read its own job has found an error"
)]

use std::convert::Infallible;
use std::env::args;
use std::future::pending;
use std::hint::black_box;
use std::sync::Arc;

use divan::{AllocProfiler, Bencher};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use training_job::plan::observed::{Observed, Phase};
use training_job::validate::validate_any;
use training_job::{Kind, Settings, ValidJob, plan, render};
use training_job_controller::Options;
use training_job_controller::fuzzing::{Caches, Object, Pod};
use training_job_mxnet::MXJob;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// The benchmarks, with the number of replicas of their jobs. [`prepare`] implements them.
const NAMES: [&str; 14] = [
    "validate 5",
    "validate 1000",
    "render 5",
    "render 1000",
    "plan-new 5",
    "plan-new 1000",
    "plan-calm 5",
    "plan-calm 1000",
    "decode-job 5",
    "decode-pod 5",
    "decode-pod 1000",
    "cache-job 5",
    "cache-pod 5",
    "cache-pod 1000",
];

fn main() {
    // A client requires a runtime, although it is not used.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _entered = runtime.enter();
    let arguments: Vec<String> = args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["names", ..] => println!("{}", NAMES.join("\n")),
        ["once", name, ..] => {
            let mut run = prepare(name);
            // The first run initializes everything that is created once per process.
            run();
            count_instructions_here(&mut *run);
        }
        _ => divan::main(),
    }
}

#[divan::bench(args = NAMES)]
fn micro(bencher: Bencher<'_, '_>, name: &str) {
    bencher.bench_local(prepare(name));
}

#[inline(never)]
fn count_instructions_here(run: &mut dyn FnMut()) {
    run();
    // Prevents a tail call, so that this function stays on the stack.
    black_box(());
}

/// Prepares a benchmark and returns its measured part. The data lives as long as the process.
fn prepare(name: &str) -> Box<dyn FnMut()> {
    let (part, replicas) = name.split_once(' ').unwrap();
    let settings = Settings::default();
    let new: &MXJob = Box::leak(Box::new(job(replicas.parse().unwrap())));
    let kind = Arc::new(Kind::of::<MXJob>());
    let valid = validate_any(&kind, new, &settings).unwrap();
    match part {
        "validate" => Box::new(move || drop(black_box(validate_any(&kind, new, &settings)))),
        "render" => Box::new(move || drop(black_box(render::all(&valid)))),
        "plan-new" => {
            let nothing = Observed::default();
            Box::new(move || drop(black_box(plan(&valid, &nothing, now()))))
        }
        "plan-calm" => {
            let (job, observed) = calm(new);
            let valid = validate_any(&kind, Box::leak(Box::new(job)), &settings).unwrap();
            Box::new(move || assert!(plan(&valid, &observed, now()).is_idle()))
        }
        "decode-job" => {
            let text = job_text(new);
            Box::new(move || drop(black_box(Object::from_text(&kind, &text).unwrap())))
        }
        "cache-job" => {
            let (text, caches) = (job_text(new), caches());
            Box::new(move || caches.job_applied(Object::from_text(&kind, &text).unwrap()))
        }
        "decode-pod" => {
            let text = pod_texts(&valid).pop().unwrap();
            Box::new(move || drop(black_box(Pod::from_text(&text).unwrap())))
        }
        "cache-pod" => {
            let caches = caches();
            let pods = pod_texts(&valid);
            let mut pods: Vec<Pod> = pods.iter().map(|text| Pod::from_text(text).unwrap()).collect();
            pods.iter().for_each(|pod| caches.pod_applied(pod));
            let last = pods.pop().unwrap();
            Box::new(move || caches.pod_applied(&last))
        }
        _ => unreachable!("{name}"),
    }
}

/// Returns a time during the job's life.
fn now() -> Timestamp {
    Timestamp::from_second(1_893_456_000).unwrap()
}

/// Returns a job with a scheduler, two servers, and workers.
fn job(replicas: u32) -> MXJob {
    let role = |replicas: u32| {
        json!({"replicas": replicas, "restartPolicy": "ExitCode", "template": {"spec": {"containers": [{
            "name": "mxnet", "image": "example.com/mxnet-train:1.9.1",
            "command": ["python3", "train.py", "--kv-store", "dist_sync"],
            "env": [{"name": "OMP_NUM_THREADS", "value": "1"}],
            "resources": {"limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}},
        }]}}})
    };
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MXJob",
        "metadata": {"name": "grow", "namespace": "team", "uid": "3f0f4b0e-5f3c-4d1b-9a52-0a3a5f0e8f11",
            "resourceVersion": "7", "generation": 1},
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs":
            {"Scheduler": role(1), "Server": role(2), "Worker": role(replicas - 3)}},
    });
    serde_json::from_value(job).unwrap()
}

/// Returns a job whose pods all run, and its observed state. Its plan is idle.
fn calm(new: &MXJob) -> (MXJob, Observed) {
    let (mut job, mut observed) = (new.clone(), Observed::default());
    let kind = Kind::of::<MXJob>();
    loop {
        let valid = validate_any(&kind, &job, &Settings::default()).unwrap();
        let plan = plan(&valid, &observed, now());
        if plan.is_idle() {
            return (job, observed);
        }
        observed.carry_out(&plan);
        for pod in observed.pods.values_mut() {
            Arc::make_mut(pod).phase = Phase::Running;
        }
        if let Some(change) = plan.status {
            let mut stored = serde_json::to_value(&job).unwrap();
            stored["status"] = serde_json::to_value(change.status).unwrap();
            job = serde_json::from_value(stored).unwrap();
        }
    }
}

/// Returns a running job as a watch sends it.
fn job_text(new: &MXJob) -> String {
    serde_json::to_string(&calm(new).0).unwrap()
}

/// Returns the running pods of a job as a watch sends them.
fn pod_texts(valid: &ValidJob<'_>) -> Vec<String> {
    let pods = (0..).zip(render::all(valid).pods);
    let text = |(number, mut pod): (u32, k8s_openapi::api::core::v1::Pod)| {
        pod.metadata.uid = Some(format!("6c1b2f0e-5f3c-4d1b-9a52-{number:012}"));
        pod.metadata.resource_version = Some(number.to_string());
        let status = json!({"phase": "Running", "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "containerStatuses": [{
            "name": "mxnet", "image": "example.com/mxnet-train:1.9.1", "imageID": "sha256:0", "ready": true,
            "restartCount": 0, "state": {"running": {"startedAt": "2030-01-01T00:00:00Z"}},
        }]});
        pod.status = Some(serde_json::from_value(status).unwrap());
        serde_json::to_string(&pod).unwrap()
    };
    pods.map(text).collect()
}

/// Returns the empty caches of an operator.
fn caches() -> Caches {
    let unreachable = tower::service_fn(|_| pending::<Result<http::Response<Body>, Infallible>>());
    Caches::new(
        Kind::of::<MXJob>(),
        Client::new(unreachable, "team"),
        Options::default(),
    )
}
