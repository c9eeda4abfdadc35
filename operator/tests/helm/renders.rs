//! The chart and manifests/ mean the same.

use std::collections::BTreeSet;

use serde_json::Value;
use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::manifests::{build, objects};

use crate::differences::{INTENDED, differences, is_intended};
use crate::helm::{Helm, rows};

/// An overlay, its components, the folders that kustomize installs separately, and the values of the chart.
const VARIANTS: &str = "\
standalone | - | - | -
standalone | mpi | crds/mpi | kinds.MPIJob=true
standalone | mlkube | crds/mlkube | kinds.MxJob=true kinds.TfJob=true
standalone | volcano | - | gangScheduling.type=volcano
standalone | coscheduling | - | gangScheduling.type=coscheduling
standalone | monitoring | - | metrics.podMonitor.enabled=true metrics.alerts.enabled=true metrics.dashboard.enabled=true
kubeflow | - | - | rbac.kubeflowUsers=true
namespaced | - | - | watchNamespace=kubeflow crds.install=false rbac.namespaceAdmins=false
namespaced | mpi mlkube volcano | - | watchNamespace=kubeflow crds.install=false rbac.namespaceAdmins=false kinds.MPIJob=true,kinds.MxJob=true,kinds.TfJob=true gangScheduling.type=volcano
";

/// Returns the words of a cell, which are none if it is `-`.
fn words(cell: &str) -> Vec<&str> {
    cell.split(' ').filter(|word| *word != "-").collect()
}

#[tokio::test]
async fn the_chart_and_kustomize_mean_the_same() {
    let plane = ControlPlane::shared().await;
    let mut used = BTreeSet::new();
    for [overlay, components, more, values] in rows(VARIANTS) {
        let mut expected: Vec<Value> = build(plane, overlay, &words(components), "kubeflow").await;
        for folder in words(more) {
            expected.extend(objects(&plane.kubectl(&["kustomize", folder]).await.success()));
        }
        for helm in Helm::ALL {
            let rendered = helm.render("kubeflow", &words(values));
            assert!(!rendered.is_empty());
            for difference in differences(&expected, &rendered) {
                let row = rows(INTENDED).position(|row| is_intended(&row, &difference));
                let (name, path, both) = &difference;
                used.insert(
                    row.unwrap_or_else(|| panic!("{helm:?} {overlay} {components}: {name} {path}: {both}")),
                );
            }
        }
    }
    for (row, [kind, path, _]) in rows(INTENDED).enumerate() {
        assert!(used.contains(&row), "no longer a difference: {kind} {path}");
    }
}

/// Both versions of Helm make the same objects.
#[test]
fn both_render_the_same() {
    for [_, _, _, values] in rows(VARIANTS) {
        let [three, four] = Helm::ALL.map(|helm| helm.render("kubeflow", &words(values)));
        assert_eq!(differences(&three, &four), [], "{values}");
    }
}
