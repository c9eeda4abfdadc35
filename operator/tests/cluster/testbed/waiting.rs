//! Waits for objects.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Error;
use kube::api::{Api, DeleteParams};
use training_job_testbed::cluster::{ControlPlane, wait};

use super::objects::config_map;

/// Absence must not be reported before the first list is complete.
#[tokio::test]
async fn an_existing_object_is_not_absent() {
    let cluster = ControlPlane::shared().await;
    let namespace = cluster.namespace("waiting").await;
    config_map(cluster.client(), &namespace, "one", None).await;
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), &namespace);
    let gone = async {
        wait(api.clone(), "one", |object| object.is_none()).await;
        api.get("one").await
    };
    let delete = async {
        wait(api.clone(), "one", |object| object.is_some()).await;
        api.delete("one", &DeleteParams::default()).await.unwrap();
    };
    let (found, ()) = tokio::join!(gone, delete);
    assert!(
        matches!(&found, Err(Error::Api(status)) if status.code == 404),
        "{found:?}"
    );
}
