//! Values that the schema rejects, and how the others render.

use training_operator_testing::manifests::{find, objects};

use crate::helm::{Helm, RELEASE, chart, rows};

#[test]
fn the_chart_has_no_lint() {
    for helm in Helm::ALL {
        let linted = helm
            .run(&["lint", "--strict", chart().to_str().unwrap()])
            .success();
        assert!(
            linted.contains("1 chart(s) linted, 0 chart(s) failed"),
            "{linted}"
        );
    }
}

/// Values that are wrong, each with a part of the message.
const WRONG: &str = "\
replica=3 | 'replica' not allowed
replicas=two | '/replicas': got string, want integer
replicas=-1 | '/replicas': minimum: got -1, want 0
image.tag=1.0:x | '/image/tag': '1.0:x' does not match pattern
image.digest=abc | '/image/digest': 'abc' does not match pattern
image.pullSecrets={registry} | '/image/pullSecrets/0': got string, want object
kinds.MpiJob=true | 'MpiJob' not allowed
kinds.MPIJob=yes please | '/kinds/MPIJob': got string, want boolean
gangScheduling.type=kube | value must be one of 'none', 'volcano', 'coscheduling'
watchNamespace=Team | '/watchNamespace': 'Team' does not match pattern
log.level=loud | '/log/level': value must be one of 'debug', 'info', 'warn', 'error', 'panic'
jobDefaults.restartScope=Pod | '/jobDefaults/restartScope': value must be one of
forceDeleteAfter=5 minutes | '/forceDeleteAfter': '5 minutes' does not match pattern
";

#[test]
fn wrong_values_are_named() {
    for helm in Helm::ALL {
        for [value, message] in rows(WRONG) {
            let chart = chart();
            let refused = helm.run(&["template", "x", chart.to_str().unwrap(), "--set", value]);
            assert_ne!(refused.code, 0, "{value}");
            assert!(
                refused.stderr.contains(message),
                "{helm:?} {value}: {}",
                refused.stderr
            );
        }
    }
}

#[test]
fn no_kind_at_all_is_rejected() {
    let kinds = [
        "MXJob",
        "TFJob",
        "XGBoostJob",
        "PyTorchJob",
        "JAXJob",
        "PaddleJob",
    ];
    let none = kinds.map(|kind| format!("kinds.{kind}=false")).join(",");
    for helm in Helm::ALL {
        let chart = chart();
        let refused = helm.run(&["template", "x", chart.to_str().unwrap(), "--set", &none]);
        assert!(refused.stderr.contains("/kinds"), "{}", refused.stderr);
    }
}

/// YAML numbers are floating-point in a values file, and identities of OpenShift have ten digits.
#[test]
fn large_numbers_stay_integers() {
    let file = training_operator_testing::program::empty_directory("helm-values").join("values.yaml");
    std::fs::write(
        &file,
        "podSecurityContext: {runAsUser: 1000650000, runAsGroup: null}\n",
    )
    .unwrap();
    for helm in Helm::ALL {
        let (chart, file) = (chart(), file.to_str().unwrap());
        let rendered = helm.run(&["template", "x", chart.to_str().unwrap(), "--values", file]);
        let objects = objects(&rendered.success());
        let pod = &find(&objects, "Deployment", "training-operator")["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsUser"], 1_000_650_000);
        assert!(pod["securityContext"].get("runAsGroup").is_none(), "{pod}");
    }
}

/// Values with the kind, the field and the value there. Each would be lost, or land elsewhere, without its line in a template.
const PLACED: &str = r#"
image.digest=sha256:0000000000000000000000000000000000000000000000000000000000000000 | Deployment | /spec/template/spec/containers/0/image | "ghcr.io/training-job/training-operator@sha256:0000000000000000000000000000000000000000000000000000000000000000"
image.tag=edge | Deployment | /spec/template/spec/containers/0/image | "ghcr.io/training-job/training-operator:edge"
image.pullSecrets[0].name=registry | Deployment | /spec/template/spec/imagePullSecrets/0/name | "registry"
priorityClassName=system-cluster-critical | Deployment | /spec/template/spec/priorityClassName | "system-cluster-critical"
nodeSelector.pool=system | Deployment | /spec/template/spec/nodeSelector/pool | "system"
tolerations[0].key=system | Deployment | /spec/template/spec/tolerations/0/key | "system"
topologySpreadConstraints=null | Deployment | /spec/template/spec/topologySpreadConstraints | null
podLabels.team=a | Deployment | /spec/template/metadata/labels/team | "a"
commonLabels.team=a | Service | /metadata/labels/team | "a"
commonLabels.team=a | CustomResourceDefinition | /metadata/labels/team | "a"
commonAnnotations.team=a | ClusterRole | /metadata/annotations/team | "a"
serviceAccount.name=other | ServiceAccount | /metadata/name | "other"
serviceAccount.name=other | ClusterRoleBinding | /subjects/0/name | "other"
extraEnv[0].name=RUST_LOG | Deployment | /spec/template/spec/containers/0/env/1/name | "RUST_LOG"
extraVolumes[0].name=more | Deployment | /spec/template/spec/volumes/0/name | "more"
extraVolumeMounts[0].name=more | Deployment | /spec/template/spec/containers/0/volumeMounts/0/name | "more"
podDisruptionBudget.minAvailable=50% | PodDisruptionBudget | /spec/minAvailable | "50%"
metrics.serviceMonitor.enabled=true | ServiceMonitor | /spec/endpoints/0/port | "monitoring-port"
networkPolicy.enabled=true | NetworkPolicy | /spec/policyTypes/0 | "Ingress"
"#;

#[test]
fn values_reach_their_objects() {
    for helm in Helm::ALL {
        for [value, kind, pointer, expected] in rows(PLACED) {
            let objects = helm.render("kubeflow", &[value]);
            let object = objects.iter().find(|object| object["kind"] == kind);
            let object = object.unwrap_or_else(|| panic!("{value}: no {kind}"));
            let found = object.pointer(pointer).map(ToString::to_string);
            assert_eq!(found.as_deref().unwrap_or("null"), expected, "{helm:?} {value}");
        }
    }
}

/// The flags that values add. The program accepts them: `hook` starts the operator with them.
pub(crate) const FLAGS: [(&str, &str); 9] = [
    ("gangScheduling.type=volcano", "--gang-scheduler-name=volcano"),
    (
        "mpi.remoteShell=true",
        "--mpi-remote-shell-image=ghcr.io/training-job/training-operator:0.1.0",
    ),
    (
        "mpi.kubectlDeliveryImage=example.com/kubectl:1",
        "--mpi-kubectl-delivery-image=example.com/kubectl:1",
    ),
    (
        "jobDefaults.restartScope=Replica",
        "--default-restart-scope=Replica",
    ),
    (
        "jobDefaults.cleanPodPolicy=None",
        "--default-clean-pod-policy=None",
    ),
    ("forceDeleteAfter=5m", "--force-delete-after=5m"),
    ("clusterDomain=example.local", "--cluster-domain=example.local"),
    ("log.level=debug", "--zap-log-level=debug"),
    ("extraArgs[0]=--controller-threads=2", "--controller-threads=2"),
];

#[test]
fn values_become_flags() {
    for helm in Helm::ALL {
        for (value, flag) in FLAGS {
            let flag = flag.replace("0.1.0", env!("CARGO_PKG_VERSION"));
            let objects = helm.render("kubeflow", &[value]);
            let pod = &find(&objects, "Deployment", "training-operator")["spec"]["template"]["spec"];
            let arguments = pod["containers"][0]["args"].as_array().unwrap();
            assert!(
                arguments.iter().any(|argument| *argument == flag),
                "{value}: {arguments:?}"
            );
        }
    }
}

/// Evictions could otherwise never take the only replica from a node.
#[test]
fn one_replica_has_no_disruption_budget() {
    for helm in Helm::ALL {
        for (value, expected) in [("replicas=1", 0), ("replicas=3", 1)] {
            let objects = helm.render("kubeflow", &[value]);
            let budgets = objects
                .iter()
                .filter(|object| object["kind"] == "PodDisruptionBudget");
            assert_eq!(budgets.count(), expected, "{value}");
        }
    }
}

/// Also those of `helm test`.
#[test]
fn every_object_has_the_standard_labels_and_a_namespace() {
    let all = [
        "kinds.MPIJob=true,kinds.MxJob=true,kinds.TfJob=true,networkPolicy.enabled=true,rbac.kubeflowUsers=true",
        "metrics.podMonitor.enabled=true,metrics.serviceMonitor.enabled=true",
        "metrics.alerts.enabled=true,metrics.dashboard.enabled=true",
    ];
    for helm in Helm::ALL {
        let chart = chart();
        let arguments = [
            "template",
            RELEASE,
            chart.to_str().unwrap(),
            "--namespace",
            "here",
        ];
        let values = all.iter().flat_map(|value| ["--set", value]);
        let arguments: Vec<&str> = arguments.into_iter().chain(values).collect();
        let objects = objects(&helm.run(&arguments).success());
        assert_eq!(objects.iter().filter(|object| object["kind"] == "Pod").count(), 1);
        for object in objects {
            let (kind, labels) = (object["kind"].as_str().unwrap(), &object["metadata"]["labels"]);
            for (label, value) in [
                ("name", "training-operator"),
                ("instance", RELEASE),
                ("version", env!("CARGO_PKG_VERSION")),
                ("component", "controller"),
                ("part-of", "kubeflow"),
                ("managed-by", "Helm"),
            ] {
                assert_eq!(labels[format!("app.kubernetes.io/{label}")], value, "{object}");
            }
            let is_global = kind.starts_with("Cluster") || kind == "CustomResourceDefinition";
            let namespace = object["metadata"]["namespace"].as_str();
            assert_eq!(namespace, (!is_global).then_some("here"), "{object}");
        }
    }
}
