//! Programs that act as service accounts.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Error;
use kube::api::{Api, ListParams};
use training_job_testbed::cluster::ControlPlane;

#[tokio::test]
async fn a_service_account_has_the_permissions_of_its_roles() {
    let cluster = ControlPlane::shared().await;
    let namespace = cluster.namespace("accounts").await;
    let run = async |arguments: &[&str]| {
        let arguments = [arguments, &["--namespace", &namespace]].concat();
        cluster.kubectl(&arguments).await.success()
    };
    run(&["create", "serviceaccount", "reader"]).await;
    let kubeconfig = cluster.kubeconfig_for_service_account(&namespace, "reader").await;
    let client = cluster.client_of(&kubeconfig).await;
    assert_eq!(client.default_namespace(), namespace);
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());

    let refused = api.list(&ListParams::default()).await.unwrap_err();
    let Error::Api(status) = &refused else {
        panic!("{refused}")
    };
    assert_eq!(status.code, 403);
    let user = format!("system:serviceaccount:{namespace}:reader");
    assert!(status.message.contains(&user), "{}", status.message);

    run(&["create", "role", "reader", "--verb=list", "--resource=configmaps"]).await;
    let account = format!("--serviceaccount={namespace}:reader");
    run(&["create", "rolebinding", "reader", "--role=reader", &account]).await;
    cluster
        .wait_until_allowed(&client, &namespace, "list", "configmaps")
        .await;
    api.list(&ListParams::default()).await.unwrap();
    let refused = api.get("any").await.unwrap_err();
    assert!(
        matches!(&refused, Error::Api(status) if status.code == 403),
        "{refused}"
    );
}

#[tokio::test]
async fn a_kubeconfig_has_the_requested_namespace() {
    let cluster = ControlPlane::shared().await;
    let namespace = cluster.namespace("context").await;
    let client = cluster.client_of(&cluster.kubeconfig_in(&namespace)).await;
    assert_eq!(client.default_namespace(), namespace);
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    assert!(api.list(&ListParams::default()).await.is_ok());
}
