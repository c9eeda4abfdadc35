//! The plain writer makes only the calls that any operator must make. It creates the services and then the pods of
//! each job as this library renders them, and writes two statuses per job: running and ended. It watches nothing: the
//! driver sends it events over a separate connection. It is a separate process, so that its resource usage is
//! measured like an operator's.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{Client, Config};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use training_job::plan::observed::Observed;
use training_job::{Settings, plan, validate};
use training_job_mxnet::MXJob;

/// Requests only the metadata of created objects, because their content is not needed.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Opens the connection from the driver to the plain writer. Returns its address, and a channel whose messages are
/// sent as lines.
pub(crate) async fn listen() -> (String, mpsc::UnboundedSender<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, mut told) = mpsc::unbounded_channel::<Value>();
    tokio::spawn(async move {
        let (mut writer, _) = listener.accept().await.unwrap();
        while let Some(words) = told.recv().await {
            let line = format!("{words}\n");
            if writer.write_all(line.as_bytes()).await.is_err() {
                break;
            }
        }
    });
    (address, tell)
}

/// A call to make.
enum Call {
    Service(String, Box<Service>),
    Pod(Box<Pod>),
    Again(String, String),
    Status(String, &'static str),
}

/// A job in progress.
struct Job {
    /// The job as it was last stored.
    stored: Value,
    services: usize,
    pods: Vec<Pod>,
}

struct Writer {
    client: Client,
    jobs: Mutex<HashMap<String, Job>>,
    calls: Mutex<VecDeque<Call>>,
    /// Has one permit for each waiting call.
    waiting: Semaphore,
    times: Mutex<Vec<f64>>,
}

/// Acts on the events of the driver at this address, with this number of calls in flight.
pub(crate) async fn run(address: &str, in_flight: usize) {
    let mut config = Config::infer().await.unwrap();
    config.headers.push((USER_AGENT, "floor/1".parse().unwrap()));
    let writer = Arc::new(Writer {
        client: Client::try_from(config).unwrap(),
        jobs: Mutex::default(),
        calls: Mutex::default(),
        waiting: Semaphore::new(0),
        times: Mutex::default(),
    });
    for _ in 0..in_flight {
        let writer = writer.clone();
        tokio::spawn(async move { writer.work().await });
    }
    let driver = TcpStream::connect(address).await.unwrap();
    println!("writing");
    let mut lines = BufReader::new(driver).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        writer.hear(&serde_json::from_str(&line).unwrap());
    }
}

impl Writer {
    fn hear(&self, words: &Value) {
        let name = |value: &Value| value.as_str().unwrap().to_owned();
        if let Some(job) = words.get("job") {
            self.begin(job);
        } else if let Some(job) = words.get("runs") {
            let is_new = self.jobs.lock()[&name(job)].stored["status"].is_null();
            if is_new {
                self.push([Call::Status(name(job), "Running")]);
            }
        } else if let Some(job) = words.get("ended") {
            self.push([Call::Status(name(job), "Succeeded")]);
        } else if let Some(failed) = words.get("failed") {
            self.push([Call::Again(name(&failed[0]), name(&failed[1]))]);
        } else {
            let mut times = self.times.lock();
            times.sort_by(f64::total_cmp);
            let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)] * 1e3;
            let mean = times.iter().sum::<f64>() / times.len() as f64 * 1e3;
            println!(
                "calls: {}",
                json!({"call_mean": mean, "call_p50": at(50), "call_p99": at(99)})
            );
        }
    }

    fn begin(&self, stored: &Value) {
        let job: MXJob = serde_json::from_value(stored.clone()).unwrap();
        let valid = validate(&job, &Settings::default()).unwrap();
        let plan = plan(&valid, &Observed::default(), Timestamp::now());
        let name = job.metadata.name.clone().unwrap();
        let under_way = Job {
            stored: stored.clone(),
            services: plan.create_services.len(),
            pods: plan
                .create_pods
                .iter()
                .filter_map(|pod| pod.render(&valid))
                .collect(),
        };
        self.jobs.lock().insert(name.clone(), under_way);
        let services = plan.create_services.into_iter();
        self.queue(
            services.map(|service| Call::Service(name.clone(), Box::new(service))),
            false,
        );
    }

    /// Inserts calls before all waiting ones, so that a started job is finished first.
    fn push(&self, calls: impl IntoIterator<Item = Call>) {
        self.queue(calls, true);
    }

    fn queue(&self, calls: impl IntoIterator<Item = Call>, first: bool) {
        let mut waiting = self.calls.lock();
        for call in calls {
            if first {
                waiting.push_front(call);
            } else {
                waiting.push_back(call);
            }
            self.waiting.add_permits(1);
        }
    }

    async fn work(&self) {
        loop {
            self.waiting.acquire().await.unwrap().forget();
            let call = self.calls.lock().pop_front().unwrap();
            let begun = Instant::now();
            self.call(call).await;
            self.times.lock().push(begun.elapsed().as_secs_f64());
        }
    }

    async fn call(&self, call: Call) {
        match call {
            Call::Service(job, service) => {
                let path = format!(
                    "/api/v1/namespaces/{}/services",
                    service.metadata.namespace.as_ref().unwrap()
                );
                self.send("POST", path, &service, METADATA_ONLY).await;
                let mut jobs = self.jobs.lock();
                let under_way = jobs.get_mut(&job).unwrap();
                under_way.services -= 1;
                if under_way.services == 0 {
                    // The pods are cloned, because a job that restarts needs them again.
                    let pods: Vec<_> = under_way.pods.iter().rev().cloned().map(Box::new).collect();
                    self.push(pods.into_iter().map(Call::Pod));
                }
            }
            Call::Pod(pod) => {
                let path = format!(
                    "/api/v1/namespaces/{}/pods",
                    pod.metadata.namespace.as_ref().unwrap()
                );
                self.send("POST", path, &pod, METADATA_ONLY).await;
            }
            Call::Again(job, name) => {
                let pod = {
                    let jobs = self.jobs.lock();
                    let pods = jobs[&job].pods.iter();
                    let is_it = |pod: &&Pod| pod.metadata.name.as_ref() == Some(&name);
                    pods.clone().find(is_it).cloned().unwrap()
                };
                let namespace = pod.metadata.namespace.as_ref().unwrap();
                self.send(
                    "DELETE",
                    format!("/api/v1/namespaces/{namespace}/pods/{name}"),
                    &json!({}),
                    METADATA_ONLY,
                )
                .await;
                self.push([Call::Pod(Box::new(pod))]);
            }
            Call::Status(job, type_) => {
                let mut next = self.jobs.lock()[&job].stored.clone();
                let now = Timestamp::now().to_string();
                let condition = |type_: &str| {
                    json!({"type": type_, "status": "True", "reason": type_, "message": "",
                           "lastTransitionTime": now, "lastUpdateTime": now})
                };
                next["status"] =
                    json!({"conditions": [condition("Created"), condition(type_)], "startTime": now});
                let namespace = next["metadata"]["namespace"].as_str().unwrap();
                let path = format!("/apis/kubeflow.org/v1/namespaces/{namespace}/mxjobs/{job}/status");
                let stored = self.send("PUT", path, &next, "application/json").await;
                self.jobs.lock().get_mut(&job).unwrap().stored = serde_json::from_str(&stored).unwrap();
            }
        }
    }

    async fn send(&self, method: &str, path: String, body: &impl serde::Serialize, accept: &str) -> String {
        let request = Request::builder()
            .method(method)
            .uri(&path)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, accept)
            .body(serde_json::to_vec(body).unwrap());
        let answer = self.client.request_text(request.unwrap()).await;
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }
}
