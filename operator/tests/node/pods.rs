//! Pods with probes, sidecars and volumes.

use serde_json::{Value, json};

use crate::job::{TRAINS, each_pod, pod, script, small};
use crate::stage::Stage;

/// A pod that is not ready has an address all the same, so that a probe may pass only when the training has begun.
#[tokio::test]
async fn readiness_probes_that_never_pass() {
    let stage = Stage::new("unready").await;
    let mut job = small("unready");
    each_pod(&mut job, |pod| {
        pod["containers"][0]["readinessProbe"] = json!({"exec": {"command": ["false"]}, "periodSeconds": 1});
    });
    // The port of the scheduler's stable address, and a random one of a server.
    script(&mut job, "Scheduler", "nc -ll -p 9091 -e echo scheduler");
    script(&mut job, "Server", "nc -ll -p 7000 -e echo server");
    let dial = "until nc -w 1 unready-scheduler-0 9091 </dev/null | grep scheduler; do sleep 1; done\n\
                until nc -w 1 unready-server-0 7000 </dev/null | grep server; do sleep 1; done";
    script(&mut job, "Worker", dial);
    job["spec"]["successPolicy"] = json!("AllWorkers");
    stage.create(&job).await;
    stage.succeeds(&job).await;
}

/// Returns a job whose replicas end by themselves, so that it succeeds.
fn short(name: &str) -> Value {
    let mut job = small(name);
    job["spec"]["successPolicy"] = json!("AllWorkers");
    script(&mut job, "Worker", "echo trains; sleep 2");
    job
}

#[tokio::test]
async fn native_sidecars_end_with_their_pods() {
    let stage = Stage::new("native").await;
    let mut job = short("native");
    let sidecar = json!([{
        "name": "mesh", "image": "busybox:1.35", "restartPolicy": "Always",
        "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"],
    }]);
    each_pod(&mut job, |pod| pod["initContainers"] = sidecar.clone());
    stage.create(&job).await;
    stage.succeeds(&job).await;
    // The clean-up deletes the scheduler and the server, which still ran. The workers keep their logs.
    stage.has_pods(2).await;
    let columns = stage.columns(&job).await;
    assert_eq!(columns["STATE"], "Succeeded", "{columns:?}");
    assert!(stage.log("native-worker-0").await.contains(TRAINS));
}

#[tokio::test]
async fn ordinary_sidecars_do_not_keep_a_job_from_its_success() {
    let stage = Stage::new("sidecar").await;
    let mut job = short("sidecar");
    job["spec"]["runPolicy"]["sidecarGracePeriodSeconds"] = 5.into();
    each_pod(&mut job, |pod| {
        let sidecar = json!({
            "name": "proxy", "image": "busybox:1.35", "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"],
        });
        pod["containers"].as_array_mut().unwrap().push(sidecar);
    });
    stage.create(&job).await;
    stage.succeeds(&job).await;
    // Sidecars kept all pods running, and the clean-up deletes running pods after their grace period.
    stage.has_pods(0).await;
}

#[tokio::test]
async fn volumes() {
    let stage = Stage::new("volumes").await;
    let folder = stage.plane.directory().join("volume");
    let claim = &stage.namespace;
    stage
        .apply(&json!({
            "apiVersion": "v1", "kind": "List", "items": [
                {
                    "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": claim},
                    "spec": {
                        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "",
                        "persistentVolumeReclaimPolicy": "Retain",
                        "hostPath": {"path": folder, "type": "DirectoryOrCreate"},
                        "claimRef": {"namespace": stage.namespace, "name": "data"},
                    },
                },
                {
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
                    "spec": {
                        "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": claim,
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                },
                {
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
                    "data": {"rate": "0.5"},
                },
            ],
        }))
        .await;
    let mut job = short("volumes");
    each_pod(&mut job, |pod| {
        pod["securityContext"] = json!({"runAsUser": 1000, "runAsNonRoot": true, "fsGroup": 2000});
        pod["containers"][0]["volumeMounts"] = json!([
            {"name": "data", "mountPath": "/data"},
            {"name": "memory", "mountPath": "/memory"},
            {"name": "settings", "mountPath": "/settings"},
        ]);
        pod["volumes"] = json!([
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
            {"name": "settings", "configMap": {"name": "settings"}},
        ]);
    });
    // Root owns the folder on the node, so an init container lets the user write to it.
    pod(&mut job, "Worker")["initContainers"] = json!([{
        "name": "owner", "image": "busybox:1.35", "command": ["chmod", "777", "/data"],
        "securityContext": {"runAsUser": 0, "runAsNonRoot": false},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }]);
    let check = "set -ex; id; touch /memory/file; test $(stat -c %g /memory/file) = 2000; mount | grep '/memory type tmpfs'\n\
                 test $(cat /settings/rate) = 0.5; echo checkpoint >/data/$HOSTNAME";
    script(&mut job, "Worker", check);
    stage.create(&job).await;
    stage.succeeds(&job).await;
    for worker in ["volumes-worker-0", "volumes-worker-1"] {
        let text = std::fs::read_to_string(folder.join(worker)).unwrap();
        assert_eq!(text, "checkpoint\n");
    }
    let name = format!("pv/{claim}");
    stage
        .plane
        .kubectl(&["delete", &name, "--wait=false"])
        .await
        .success();
}
