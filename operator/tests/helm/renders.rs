//! The chart and manifests/ mean the same.

use std::collections::BTreeSet;

use serde_json::Value;
use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::manifests::{build, objects};

use crate::differences::{INTENDED, differences, is_intended};
use crate::helm::Helm;

struct Variant {
    overlay: &'static str,
    components: &'static [&'static str],
    /// Folders that kustomize installs separately.
    more: &'static [&'static str],
    values: &'static [&'static str],
}

const NAMESPACED: [&str; 3] = [
    "watchNamespace=kubeflow",
    "crds.install=false",
    "rbac.namespaceAdmins=false",
];

const VARIANTS: [Variant; 9] = [
    Variant {
        overlay: "standalone",
        components: &[],
        more: &[],
        values: &[],
    },
    Variant {
        overlay: "standalone",
        components: &["mpi"],
        more: &["crds/mpi"],
        values: &["kinds.MPIJob=true"],
    },
    Variant {
        overlay: "standalone",
        components: &["mlkube"],
        more: &["crds/mlkube"],
        values: &["kinds.MxJob=true", "kinds.TfJob=true"],
    },
    Variant {
        overlay: "standalone",
        components: &["volcano"],
        more: &[],
        values: &["gangScheduling.type=volcano"],
    },
    Variant {
        overlay: "standalone",
        components: &["coscheduling"],
        more: &[],
        values: &["gangScheduling.type=coscheduling"],
    },
    Variant {
        overlay: "standalone",
        components: &["monitoring"],
        more: &[],
        values: &[
            "metrics.podMonitor.enabled=true",
            "metrics.alerts.enabled=true",
            "metrics.dashboard.enabled=true",
        ],
    },
    Variant {
        overlay: "kubeflow",
        components: &[],
        more: &[],
        values: &["rbac.kubeflowUsers=true"],
    },
    Variant {
        overlay: "namespaced",
        components: &[],
        more: &[],
        values: &NAMESPACED,
    },
    Variant {
        overlay: "namespaced",
        components: &["mpi", "mlkube", "volcano"],
        more: &[],
        values: &[
            NAMESPACED[0],
            NAMESPACED[1],
            NAMESPACED[2],
            "kinds.MPIJob=true,kinds.MxJob=true,kinds.TfJob=true",
            "gangScheduling.type=volcano",
        ],
    },
];

#[tokio::test]
async fn the_chart_and_kustomize_mean_the_same() {
    let plane = ControlPlane::shared().await;
    let mut used = BTreeSet::new();
    for variant in VARIANTS {
        let mut expected: Vec<Value> = build(plane, variant.overlay, variant.components, "kubeflow").await;
        for folder in variant.more {
            expected.extend(objects(&plane.kubectl(&["kustomize", folder]).await.success()));
        }
        for helm in Helm::ALL {
            let rendered = helm.render("kubeflow", variant.values);
            assert!(!rendered.is_empty());
            for difference in differences(&expected, &rendered) {
                let row = INTENDED.iter().position(|row| is_intended(row, &difference));
                let (name, path, values) = &difference;
                let overlay = (variant.overlay, variant.components);
                used.insert(row.unwrap_or_else(|| panic!("{helm:?} {overlay:?}: {name} {path}: {values}")));
            }
        }
    }
    for (row, (kind, path, _)) in INTENDED.iter().enumerate() {
        assert!(used.contains(&row), "no longer a difference: {kind} {path}");
    }
}

/// Both versions of Helm make the same objects.
#[test]
fn both_render_the_same() {
    for variant in VARIANTS {
        let [three, four] = Helm::ALL.map(|helm| helm.render("kubeflow", variant.values));
        assert_eq!(differences(&three, &four), [], "{:?}", variant.values);
    }
}
