//! The permissions of each kind.

use serde_json::Value;
use training_operator_testing::manifests::{find, objects};
use training_operator_testing::program::run;

use crate::differences::permissions;
use crate::helm::Helm;

const KINDS: [&str; 9] = [
    "MXJob",
    "TFJob",
    "XGBoostJob",
    "PyTorchJob",
    "JAXJob",
    "PaddleJob",
    "MPIJob",
    "MxJob",
    "TfJob",
];

/// An operator of one kind has the permissions that the program prints for it, and its definition.
#[test]
fn each_kind_brings_its_permissions_and_its_definition() {
    for kind in KINDS {
        let values: Vec<String> = KINDS
            .iter()
            .map(|other| format!("kinds.{other}={}", *other == kind))
            .collect();
        let printed = run(&["rbac", "--kind", kind]);
        let printed = objects(&printed.stdout);
        let expected = permissions(&find(&printed, "ClusterRole", "training-operator")["rules"]);
        for helm in Helm::ALL {
            let rendered = helm.render("kubeflow", &[&values.join(",")]);
            let role = find(&rendered, "ClusterRole", "training-operator");
            assert_eq!(permissions(&role["rules"]), expected, "{helm:?} {kind}");
            let is_definition = |object: &&Value| object["kind"] == "CustomResourceDefinition";
            let definitions: Vec<&Value> = rendered.iter().filter(is_definition).collect();
            assert_eq!(definitions.len(), 1);
            assert_eq!(definitions[0]["spec"]["names"]["kind"], kind);
        }
    }
}
