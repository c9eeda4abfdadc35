//! All kinds of jobs in one operator, on a real API server.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;
use training_job::TrainingJob;
use training_job::api::ConditionType;
use training_job_mxnet::MXJob;
use training_job_tensorflow::TFJob;
use training_job_testbed::cluster::{Audit, ControlPlane, Options};
use training_job_xgboost::XGBoostJob;
use training_operator_testing::operator::{EVERY_KIND, start};

const MX: &str = "{apiVersion: kubeflow.org/v1, kind: MXJob, metadata: {name: NAME}, spec: {jobMode: MXTrain, \
    mxReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: mxnet, image: i}]}}}}}}";
const TF: &str = "{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: NAME}, spec: \
    {tfReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: i}]}}}}}}";
const XGB: &str = "{apiVersion: kubeflow.org/v1, kind: XGBoostJob, metadata: {name: NAME}, spec: \
    {xgbReplicaSpecs: {Master: {template: {spec: {containers: [{name: xgboost, image: i}]}}}}}}";

struct World<'a> {
    plane: &'a ControlPlane,
    namespace: String,
}

impl World<'_> {
    async fn create(&self, manifest: &str, name: &str) {
        let manifest = manifest.replace("NAME", name);
        self.plane.create(&self.namespace, &manifest).await;
    }

    async fn delete(&self, what: &str, name: &str) {
        let arguments = ["--namespace", &self.namespace, "delete", what, name];
        self.plane.kubectl(&arguments).await.success();
    }

    async fn condition<J: TrainingJob>(&self, name: &str, condition: ConditionType) {
        let holds = |job: Option<&J>| {
            job.and_then(TrainingJob::status)
                .is_some_and(|status| status.is(condition))
        };
        self.plane.wait::<J>(&self.namespace, name, holds).await;
    }
}

#[tokio::test]
async fn all_kinds_share_one_watch_of_each_kind_of_child() {
    let plane = ControlPlane::start(Options {
        audit: Some(Audit::All),
        ..Options::default()
    })
    .await;
    plane.install_crds().await;
    let namespace = plane.namespace("watches").await;
    let world = World {
        plane: &plane,
        namespace,
    };
    let _operator = start(&plane, &[EVERY_KIND]).await;

    // The lists are complete when the operator reconciles a job. Later objects are delivered by watches.
    world.create(MX, "listed").await;
    world.condition::<MXJob>("listed", ConditionType::Created).await;
    world.create(MX, "mx").await;
    world.create(TF, "tf").await;
    world.create(XGB, "xgb").await;
    let kubelet = plane.kubelet(&world.namespace).await;
    for pod in [
        "mx-worker-0",
        "mx-worker-1",
        "tf-worker-0",
        "tf-worker-1",
        "xgb-master-0",
    ] {
        plane
            .wait::<Pod>(&world.namespace, pod, |pod| pod.is_some())
            .await;
        kubelet.runs(pod).await;
    }
    world.condition::<MXJob>("mx", ConditionType::Running).await;
    world.condition::<TFJob>("tf", ConditionType::Running).await;
    world.condition::<XGBoostJob>("xgb", ConditionType::Running).await;

    // kubectl lists the jobs of all kinds by one category.
    let get = ["get", "training", "--output=name", "--namespace"];
    let all = [&get[..], &[&world.namespace]].concat();
    let listed = plane.kubectl(&all).await.success();
    let expected = [
        "mxjob.kubeflow.org/mx",
        "tfjob.kubeflow.org/tf",
        "xgboostjob.kubeflow.org/xgb",
    ];
    assert!(expected.iter().all(|job| listed.contains(job)), "{listed}");
    let is_there = |service: Option<&Service>| service.is_some();
    let old = plane
        .wait::<Service>(&world.namespace, "tf-worker-0", is_there)
        .await;
    let old = old.unwrap().uid();
    world.delete("service", "tf-worker-0").await;
    let is_new = |service: Option<&Service>| service.is_some_and(|s| s.uid() != old);
    plane
        .wait::<Service>(&world.namespace, "tf-worker-0", is_new)
        .await;

    // The test's own watches are limited to a namespace, or wait for the definitions.
    let mut open: BTreeMap<String, i32> = BTreeMap::new();
    for call in plane.audit() {
        let is_ours = call.namespace.is_empty() && call.resource != "customresourcedefinitions";
        if call.verb == "watch" && is_ours {
            let change = if call.stage == "ResponseStarted" { 1 } else { -1 };
            *open.entry(call.resource).or_default() += change;
        }
    }
    // The kinds of kubeflow.org and of mlkube.io.
    let expected = [
        ("configmaps", 1),
        ("horizontalpodautoscalers", 1),
        ("jaxjobs", 1),
        ("mpijobs", 1),
        ("mxjobs", 2),
        ("paddlejobs", 1),
        ("pods", 1),
        ("pytorchjobs", 1),
        ("rolebindings", 1),
        ("roles", 1),
        ("secrets", 1),
        ("serviceaccounts", 1),
        ("services", 1),
        ("tfjobs", 2),
        ("xgboostjobs", 1),
    ];
    let expected = expected.map(|(kind, watches)| (kind.to_owned(), watches));
    assert_eq!(open, BTreeMap::from(expected));
}

/// The commands of docs/authors/add-a-framework.md.
#[tokio::test]
async fn the_example_of_another_framework_is_taken() {
    let plane = ControlPlane::shared().await;
    plane
        .kubectl(&["apply", "-f", "examples/add-a-framework/crd.yaml"])
        .await
        .success();
    plane.served("farmjobs.example.com").await;
    let namespace = plane.namespace("farm").await;
    let create = async |job: &str| {
        let file = format!("examples/add-a-framework/jobs/{job}.yaml");
        plane
            .kubectl(&["--namespace", &namespace, "create", "-f", &file])
            .await
    };
    create("primes").await.success();
    let refused = create("headless").await;
    // Between these texts older API servers state that the value is an object.
    for words in [
        "spec.replicaSpecs: Invalid value: ",
        "must have a Head, because only a Head hands out tasks; add a Head with 1 replica",
    ] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
}
