//! Pods that a scheduling gate of Kueue holds until Kueue has assigned their nodes.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::json;

use super::process::{Queues, Setup};
use super::queue::{QUEUE, of_kueue};
use crate::history::History;
use crate::jobs::{PODS, PYTORCH, labelled};
use crate::stage::{Operators, Stage, a_worker};
use crate::{built, node};

const RACK: &str = "example.com/rack";

/// The CPUs of each node of each rack. Only the last rack has capacity for three workers.
const RACKS: [&[u32]; 3] = [&[1, 1], &[2], &[2, 2]];

async fn on_racks(queues: &Queues) -> Stage<'_> {
    let plane = &queues.plane;
    let namespace = plane.namespace("racks").await;
    for (rack, nodes) in RACKS.iter().enumerate() {
        for (number, cpus) in nodes.iter().enumerate() {
            let name = format!("rack-{rack}-{number}");
            let labels = json!({"pool": "racks", RACK: format!("rack-{rack}")});
            node::create(plane, &name, *cpus, labels, json!([])).await;
        }
    }
    let flavors = json!([{"name": "racks", "resources": [{"name": "cpu", "nominalQuota": PODS}]}]);
    let mut local = of_kueue("LocalQueue", "queue", json!({"clusterQueue": "racks"}));
    local["metadata"]["namespace"] = namespace.clone().into();
    let flavor = json!({"nodeLabels": {"pool": "racks"}, "topologyName": "racks"});
    let groups = json!([{"coveredResources": ["cpu"], "flavors": flavors}]);
    let cluster_queue = json!({"namespaceSelector": {}, "resourceGroups": groups});
    let objects = [
        of_kueue("Topology", "racks", json!({"levels": [{"nodeLabel": RACK}]})),
        of_kueue("ResourceFlavor", "racks", flavor),
        of_kueue("ClusterQueue", "racks", cluster_queue),
        local,
    ];
    built::apply(plane, &objects).await;
    let history = History::of(Api::namespaced(plane.client(), &namespace)).await;
    Stage::new(plane, namespace, (PYTORCH, Operators::AreKilled), history, &[]).await
}

fn racks(pods: &[Pod]) -> BTreeSet<String> {
    let workers = pods.iter().filter(|pod| pod.name_any().contains("-worker-"));
    let node = |pod: &Pod| pod.spec.as_ref().unwrap().node_name.clone().unwrap();
    workers
        .map(|pod| node(pod)[.."rack-0".len()].to_owned())
        .collect()
}

/// The workers must be in one rack, including a replaced one.
#[tokio::test]
async fn the_workers_of_a_job_are_in_one_rack() {
    let queues = Queues::start(Setup::default()).await;
    let mut stage = on_racks(&queues).await;
    let mut job = labelled(PYTORCH.job("job"), QUEUE, "queue");
    job["spec"]["runPolicy"]["backoffLimit"] = 3.into();
    for (role, _) in PYTORCH.roles {
        let required = json!({"kueue.x-k8s.io/podset-required-topology": RACK});
        job["spec"][PYTORCH.specs][role]["template"]["metadata"] = json!({"annotations": required});
    }
    stage.create(&job).await;
    let before = stage.runs("job", PODS).await;
    let wanted = BTreeSet::from(["rack-2".to_owned()]);
    assert_eq!(racks(&before), wanted);
    stage.turn();
    let worker = a_worker(&before);
    stage.kubelet.exits(&worker, PYTORCH.container, 137).await;
    stage.turn();
    stage.replaced(&before, &worker).await;
    assert_eq!(racks(&stage.runs("job", PODS).await), wanted);
    stage.finishes("job", PODS).await;
    stage.end();
}
