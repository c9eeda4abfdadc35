//! Outages of the API server.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use tokio::time::timeout;
use training_job_testbed::cluster::{ControlPlane, Options};

use super::objects::config_map;

#[tokio::test]
async fn two_control_planes_know_nothing_of_each_other() {
    let (one, two) = tokio::join!(
        ControlPlane::start(Options::default()),
        ControlPlane::start(Options::default())
    );
    let namespace = one.namespace("two").await;
    config_map(one.client(), &namespace, "here", None).await;
    let there: Api<ConfigMap> = Api::namespaced(two.client(), &namespace);
    assert!(there.get_opt("here").await.unwrap().is_none());
    let directory = one.directory().to_owned();
    assert!(directory.exists());
    drop(one);
    assert!(!directory.exists());
    assert!(
        there.get_opt("here").await.unwrap().is_none(),
        "the other one answers"
    );
}

#[tokio::test]
async fn a_restart_keeps_data_and_port() {
    let cluster = ControlPlane::start(Options::default()).await;
    let namespace = cluster.namespace("restart").await;
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), &namespace);
    config_map(cluster.client(), &namespace, "kept", None).await;

    cluster.stop_api_server();
    assert!(api.get("kept").await.is_err());
    // A wait that begins during the outage ends after it.
    let awaited = cluster.wait::<ConfigMap>(&namespace, "kept", |found| found.is_some());
    let (found, ()) = tokio::join!(awaited, cluster.start_api_server());
    assert!(found.is_some());
    // The client is the same, so the port must be the same.
    assert!(api.get("kept").await.is_ok());
    cluster.restart_api_server().await;
    assert!(api.get("kept").await.is_ok());
}

#[tokio::test]
async fn a_pause_lasts_until_it_is_ended() {
    let cluster = ControlPlane::start(Options::default()).await;
    let namespace = cluster.namespace("pause").await;
    config_map(cluster.client(), &namespace, "kept", None).await;
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), &namespace);
    cluster.pause_api_server();
    let mut asked = Box::pin(api.get("kept"));
    assert!(timeout(Duration::from_secs(1), &mut asked).await.is_err());
    cluster.resume_api_server();
    assert!(asked.await.is_ok());
}

#[tokio::test]
async fn a_server_that_cannot_start_is_shown() {
    let options = Options {
        api_server_flags: vec!["--no-such-flag".to_owned()],
        ..Options::default()
    };
    let error = ControlPlane::try_start(options).await.err().unwrap();
    assert!(error.starts_with("kube-apiserver: it ended with 1"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
}
