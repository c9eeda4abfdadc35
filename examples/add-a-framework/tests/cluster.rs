//! Runs the operator on a real API server, with the set-up of docs/authors/add-a-framework.md.

use farm_operator::job::FarmJob;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{Api, ResourceExt};
use training_job::TrainingJob;
use training_job::api::ConditionType;
use training_job_testbed::cluster::{ControlPlane, Program, Signal, wait_for_all};

const REPLICAS: [&str; 4] = [
    "primes-head-0",
    "primes-worker-0",
    "primes-worker-1",
    "primes-worker-2",
];

const PROGRAM: &str = env!("CARGO_BIN_EXE_farm-operator");

/// Installs what `farm-operator manifests` prints in a new namespace, and returns the namespace. The pods of the
/// Deployment stay pending, because the cluster has no node.
async fn install(plane: &ControlPlane) -> String {
    let namespace = plane.namespace("farm-operator").await;
    let mut program = std::process::Command::new(PROGRAM);
    let command = program.args([
        "manifests",
        "--image=example.com/farm:1",
        "--namespace",
        &namespace,
    ]);
    let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let apply = ["apply", "--server-side", "-f", "-"];
    plane.kubectl_with_input(&apply, &printed).await.success();
    plane.served("farmjobs.example.com").await;
    namespace
}

async fn has(plane: &ControlPlane, namespace: &str, condition: ConditionType) -> FarmJob {
    let holds = |job: Option<&FarmJob>| {
        let status = job.and_then(TrainingJob::status);
        status.is_some_and(|status| status.is(condition))
    };
    plane.wait(namespace, "primes", holds).await.unwrap()
}

fn names<K: ResourceExt>(objects: &[K]) -> Vec<String> {
    let mut names: Vec<String> = objects.iter().map(ResourceExt::name_any).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_farm_counts_primes_in_a_cluster() {
    let plane = ControlPlane::shared().await;
    let own = install(plane).await;
    let kubeconfig = plane.kubeconfig_for_service_account(&own, "farm-operator").await;
    let client = plane.client_of(&kubeconfig).await;
    let team = plane.namespace("farmers").await;
    plane.wait_until_allowed(&client, &team, "create", "pods").await;
    let operator = plane.spawn(
        Program::new(PROGRAM)
            .args([
                "run",
                "--leader-elect",
                "--metrics-bind-address=0",
                "--health-probe-bind-address=0",
            ])
            .env("KUBECONFIG", &kubeconfig),
    );

    let manifest = "examples/add-a-framework/jobs/primes.yaml";
    let create = ["--namespace", &team, "create", "-f", manifest];
    plane.kubectl(&create).await.success();
    let labels = "training.kubeflow.org/operator-name=farmjob-controller";
    let services: Api<Service> = Api::namespaced(plane.client(), &team);
    wait_for_all(services.clone(), labels, |all| names(all) == REPLICAS).await;
    let pods: Api<Pod> = Api::namespaced(plane.client(), &team);
    let made = wait_for_all(pods.clone(), labels, |all| names(all) == REPLICAS).await;
    for pod in &made {
        let env = pod.spec.as_ref().unwrap().containers[0].env.as_ref().unwrap();
        let head = env.iter().find(|variable| variable.name == "FARM_HEAD").unwrap();
        assert_eq!(head.value.as_deref(), Some("primes-head-0"));
    }

    let kubelet = plane.kubelet(&team).await;
    for replica in REPLICAS {
        kubelet.runs(replica).await;
    }
    has(plane, &team, ConditionType::Running).await;

    // A killed worker is replaced, and the others continue.
    let uid = |pods: &[Pod], name: &str| {
        pods.iter()
            .find(|p| p.name_any() == name)
            .and_then(ResourceExt::uid)
    };
    let killed = uid(&made, "primes-worker-1");
    kubelet.exits("primes-worker-1", "farm", 137).await;
    let is_new = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != killed);
    plane.wait::<Pod>(&team, "primes-worker-1", is_new).await;
    kubelet.runs("primes-worker-1").await;

    // The head succeeds, which ends the job. Running workers are stopped.
    kubelet.succeeds("primes-head-0").await;
    let done = has(plane, &team, ConditionType::Succeeded).await;
    assert_eq!(TrainingJob::status(&done).unwrap().restart_count, 1);
    wait_for_all(pods, labels, |all| names(all) == ["primes-head-0"]).await;

    operator.signal(Signal::TERM);
    assert_eq!(operator.exit_code().await, 0, "{}", operator.text());
}
