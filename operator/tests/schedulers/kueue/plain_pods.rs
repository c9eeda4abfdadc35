//! Jobs of a kind that Kueue does not know: it queues their pods as a group.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use ray_train_operator::RayTrainJob;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use training_job::TrainingJob;
use training_job::api::ConditionType;
use training_job_controller::{Operator, Options};
use training_job_testbed::cluster::wait_for_all;

use super::process::{Queues, Setup};
use super::queue::{QUEUE, queue};
use crate::jobs::{MX, PODS};
use crate::stage::{Operators, Stage, of, runs};
use crate::{built, node};

/// Returns a Kueue that queues pods.
async fn plain() -> &'static Queues {
    static SHARED: OnceCell<Queues> = OnceCell::const_new();
    let setup = Setup {
        plain_pods: true,
        ..Setup::default()
    };
    SHARED.get_or_init(|| Queues::start(setup)).await
}

/// Puts the pods of a template into the group of this name.
fn group(template: &mut Value, name: &str) {
    template["metadata"] = json!({
        "labels": {QUEUE: "queue", "kueue.x-k8s.io/pod-group-name": name},
        "annotations": {
            "kueue.x-k8s.io/pod-group-total-count": PODS.to_string(),
            "kueue.x-k8s.io/retriable-in-group": "false",
        },
    });
    template["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
}

/// Returns the job of the example, whose head and workers are a group of one queue. The submitter stays outside,
/// because it is created when these are ready.
fn job(name: &str) -> RayTrainJob {
    let text = include_str!("../../../../examples/ray-train/jobs/mnist.yaml");
    let mut job: Value = serde_saphyr::from_str(text).unwrap();
    job["metadata"]["name"] = name.into();
    let spec = &mut job["spec"];
    group(&mut spec["head"]["template"], name);
    for workers in spec["workerGroups"].as_array_mut().unwrap() {
        group(&mut workers["template"], name);
    }
    // The simulated nodes have only what the queue's taint lets on them.
    spec["submitter"]["template"]["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    serde_json::from_value(job).unwrap()
}

/// Returns true if these are all pods of a group, and none may be scheduled.
fn are_gated(pods: &[Pod]) -> bool {
    let is_gated = |pod: &Pod| {
        let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
        gates.is_some_and(|gates| !gates.is_empty())
    };
    pods.len() == PODS && pods.iter().all(is_gated)
}

#[tokio::test]
async fn two_jobs_of_a_new_kind_run_in_turn() {
    let queues = plain().await;
    let plane = &queues.plane;
    let definition = RayTrainJob::definition();
    built::apply(plane, &[serde_json::to_value(definition).unwrap()]).await;
    plane.served("raytrainjobs.example.dev").await;
    let team = plane.namespace("ray").await;
    let pool = json!({"pool": team});
    node::create(plane, &team, 64, pool.clone(), json!([])).await;
    built::apply(plane, &queue(&team, &pool, PODS)).await;
    let nodes = plane.nodes_behind_scheduler(&team).await;
    let kubelet = plane.kubelet(&team).await;
    let mut options = Options::default();
    options.namespace = Some(team.clone());
    let operator = Operator::new(plane.client(), options).manage::<RayTrainJob>();
    let operator = tokio::spawn(operator.run());

    let jobs: Api<RayTrainJob> = Api::namespaced(plane.client(), &team);
    let pods: Api<Pod> = Api::namespaced(plane.client(), &team);
    let of = |name: &str| format!("ray.example.com/job-name={name}");
    jobs.create(&PostParams::default(), &job("first")).await.unwrap();
    // The submitter runs as well, because the others are ready.
    let running = |all: &[Pod]| all.len() == PODS + 1 && all.iter().all(runs);
    let first = wait_for_all(pods.clone(), &of("first"), running).await;
    let in_queue = |pod: &&Pod| pod.labels().contains_key("kueue.x-k8s.io/managed");
    assert_eq!(first.iter().filter(in_queue).count(), PODS);

    jobs.create(&PostParams::default(), &job("second")).await.unwrap();
    wait_for_all(pods.clone(), &of("second"), are_gated).await;

    kubelet.succeeds("first-submitter-0").await;
    let has_succeeded = |job: Option<&RayTrainJob>| {
        let status = job.and_then(TrainingJob::status);
        status.is_some_and(|status| status.is(ConditionType::Succeeded))
    };
    plane.wait(&team, "first", has_succeeded).await;
    // The group is finished when the pods that the operator deletes have ended, as a kubelet reports before they go.
    for pod in first.iter().filter(in_queue) {
        kubelet.succeeds(&pod.name_any()).await;
    }
    wait_for_all(pods, &of("second"), running).await;
    kubelet.succeeds("second-submitter-0").await;
    plane.wait(&team, "second", has_succeeded).await;
    drop(nodes);
    operator.abort();
}

/// Kueue has not supported MXJob since 0.11.
#[tokio::test]
async fn two_mxjobs_run_in_turn() {
    let mut stage = Stage::with_queue(plain().await, "mxnet", (MX, Operators::AreKilled)).await;
    let job = |name: &str| {
        let mut job = MX.job(name);
        for (role, _) in MX.roles {
            group(&mut job["spec"][MX.specs][role]["template"], name);
        }
        job
    };
    stage.create(&job("first")).await;
    stage.runs_on_quota("first").await;
    stage.create(&job("second")).await;
    wait_for_all(stage.pods(), &of("second"), are_gated).await;
    stage.turn();
    stage.finishes("first", PODS).await;
    stage.runs_on_quota("second").await;
    stage.turn();
    stage.finishes("second", PODS).await;
    stage.end();
}
