use futures::StreamExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};

use super::*;
use crate::Versions;

#[tokio::test(start_paused = true)]
async fn a_restored_cluster_equals_its_backup() {
    for versions in [Versions::GoBack, Versions::GoOn] {
        let cluster = cluster();
        let client = cluster.client("default");
        let edited = create_pod(&client, &pod("edited")).await;
        let deleted = create_pod(&client, &pod("deleted")).await;
        let backup = cluster.back_up();
        let version = cluster.resource_version();

        let patch = Patch::Merge(json!({"metadata": {"labels": {"app": "other"}}}));
        let pods = pods(&client);
        pods.patch("edited", &PatchParams::default(), &patch)
            .await
            .unwrap();
        let now = DeleteParams::default().grace_period(0);
        pods.delete("deleted", &now).await.unwrap();
        create_pod(&client, &pod("made")).await;
        let later = cluster.resource_version();
        let stream = pods.watch(&WatchParams::default(), "1").await.unwrap();
        cluster.restore(&backup, versions);

        assert!(
            soon(stream.boxed().next()).await.is_none(),
            "watches end, and what they had to say is lost"
        );
        let list = pods.list(&ListParams::default()).await.unwrap();
        let found: Vec<_> = list
            .items
            .iter()
            .map(|p| (&p.metadata.uid, &p.metadata.resource_version))
            .collect();
        let then = [&deleted, &edited].map(|p| (&p.metadata.uid, &p.metadata.resource_version));
        assert_eq!(found, then);
        let newest = match versions {
            Versions::GoBack => version,
            Versions::GoOn => later + 1_000,
        };
        assert_eq!(cluster.resource_version(), newest);
        let made = pods.create(&PostParams::default(), &pod("made")).await.unwrap();
        assert_eq!(made.metadata.resource_version, Some((newest + 1).to_string()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_restored_child_is_collected_with_its_owner() {
    let cluster = cluster();
    let client = cluster.client("default");
    let owner = maps(&client)
        .create(&PostParams::default(), &map("owner"))
        .await
        .unwrap();
    let mut child = map("child");
    child.metadata.owner_references = Some(vec![typed(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid,
    }))]);
    maps(&client)
        .create(&PostParams::default(), &child)
        .await
        .unwrap();
    let backup = cluster.back_up();
    maps(&client)
        .delete("owner", &DeleteParams::default())
        .await
        .unwrap();
    assert!(cluster.get("configmaps", "default", "child").is_none());
    cluster.restore(&backup, Versions::GoOn);
    assert!(cluster.get("configmaps", "default", "child").is_some());
    maps(&client)
        .delete("owner", &DeleteParams::default())
        .await
        .unwrap();
    assert!(cluster.get("configmaps", "default", "child").is_none());
}
