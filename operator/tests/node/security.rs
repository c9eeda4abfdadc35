//! The operator's own pods under the standard `restricted`.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams, LogParams};

use crate::cluster::{cluster, lab};
use crate::install::{NAMESPACE, SELECTOR};
use crate::job::small;
use crate::stage::{Stage, number};

async fn operators() -> (Api<Pod>, Vec<Pod>) {
    let api: Api<Pod> = Api::namespaced(cluster().await.client(), NAMESPACE);
    let pods = api
        .list(&ListParams::default().labels(SELECTOR))
        .await
        .unwrap()
        .items;
    (api, pods)
}

#[tokio::test]
async fn the_operator_runs_without_rights_on_the_node() {
    let (_, pods) = operators().await;
    assert_eq!(pods.len(), 2, "a leader and a standby");
    for pod in pods {
        let node = pod.spec.as_ref().unwrap().node_name.clone().unwrap();
        let status = &pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0];
        let id = status.container_id.as_deref().unwrap();
        let id = id.strip_prefix("containerd://").unwrap();
        let script = format!(
            "pid=$(ctr -n k8s.io task ls | sed -n 's/^{id} *\\([0-9]*\\) .*/\\1/p')\n\
             cat /proc/$pid/status; grep ' / / ' /proc/$pid/mountinfo"
        );
        let text = lab(&["exec", number(&node), "sh", "-c", &script]).await;
        let line = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name}: {text}"))
                .trim()
                .to_owned()
        };
        assert_eq!(line("Uid:"), "65532\t65532\t65532\t65532");
        assert_eq!(line("Gid:"), "65532\t65532\t65532\t65532");
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            assert_eq!(line(set), "0000000000000000", "{set}");
        }
        assert_eq!(line("NoNewPrivs:"), "1");
        assert_eq!(line("Seccomp:"), "2");
        let root = text.lines().find(|line| line.contains(" / / ")).unwrap();
        let options = root.split(' ').nth(5).unwrap();
        assert!(options.split(',').any(|option| option == "ro"), "{root}");
    }
}

/// A job makes the leader use its rights. A refusal is in the log.
#[tokio::test]
async fn the_operator_has_all_rights_that_it_needs() {
    let stage = Stage::new("rights").await;
    let job = small("rights");
    stage.create(&job).await;
    stage.condition(&job, "Running").await;
    stage.kubectl(&["delete", "mxjob", "rights"]).await;
    stage.has_pods(0).await;
    let (api, pods) = operators().await;
    for pod in pods {
        let log = api.logs(&pod.name_any(), &LogParams::default()).await.unwrap();
        let refused = log.lines().find(|line| line.contains("forbidden"));
        assert_eq!(refused, None);
    }
}
