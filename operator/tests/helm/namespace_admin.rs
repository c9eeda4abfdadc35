//! An admin of a single namespace installs the chart there.

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::Api;
use training_job_testbed::cluster::wait;

use crate::helm::{Helm, RELEASE, chart};
use crate::release::Cluster;

/// The values of docs/users/install.md.
const VALUES: &str = "crds.install=false,rbac.namespaceAdmins=false";

/// All components, because an account can only grant its own permissions.
const MORE: &str = "kinds.MPIJob=true,kinds.MxJob=true,kinds.TfJob=true,gangScheduling.type=volcano";

#[tokio::test]
async fn an_admin_of_a_namespace_installs_the_chart_there() {
    for helm in Helm::ALL {
        let cluster = Cluster::new(helm).await;
        let crds = ["apply", "--server-side", "--force-conflicts", "-k", "crds"];
        cluster.plane.kubectl(&crds).await.success();
        let has_jobs = |role: Option<&ClusterRole>| {
            let rules = role.and_then(|role| role.rules.as_ref()).into_iter().flatten();
            let mut groups = rules.filter_map(|rule| rule.api_groups.as_ref()).flatten();
            groups.any(|group| group == "kubeflow.org")
        };
        wait(Api::<ClusterRole>::all(cluster.plane.client()), "admin", has_jobs).await;
        let namespace = cluster.plane.namespace("alice").await;
        let account = format!("{namespace}:alice");
        for arguments in [
            &["create", "serviceaccount", "alice"][..],
            &[
                "create",
                "rolebinding",
                "alice",
                "--clusterrole=admin",
                "--serviceaccount",
                &account,
            ],
        ] {
            let arguments = [arguments, &["--namespace", &namespace]].concat();
            cluster.plane.kubectl(&arguments).await.success();
        }
        cluster
            .plane
            .kubeconfig_once_allowed(&namespace, "alice", "create", "mxjobs.kubeflow.org")
            .await;

        let (chart, watched) = (chart(), format!("watchNamespace={namespace}"));
        let alice = format!("--kube-as-user=system:serviceaccount:{account}");
        let install = async |values: &[&str]| {
            let mut arguments = vec!["upgrade", "--install", RELEASE, chart.to_str().unwrap()];
            arguments.extend([&alice, "--namespace", &namespace]);
            arguments.extend(values.iter().flat_map(|value| ["--set", value]));
            cluster.helm.run_on(&cluster.plane, &arguments).await
        };
        install(&[VALUES, MORE, &watched]).await.success();
        // The definitions are not the admin's, and an operator for all namespaces is not allowed.
        for values in [&[MORE, &watched][..], &[VALUES, MORE]] {
            let refused = install(values).await;
            assert!(refused.stderr.contains("orbidden"), "{}", refused.stderr);
        }
    }
}
