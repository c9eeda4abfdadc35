//! The versions in `docs/users/support.md` are those that the tests build or install.

use std::collections::BTreeMap;
use std::fs;

use training_operator_testing::program::root;

/// The rows of the page, each with the file that decides on its version, and the text before the version there.
const SOURCES: &str = "\
Kubernetes, oldest | tests/control-plane/oldest/go.mod | k8s.io/kubernetes v
Kubernetes, newest | tests/control-plane/go.mod | k8s.io/kubernetes v
kubectl | tests/control-plane/go.mod | k8s.io/kubernetes v
kubelet, kube-proxy | tests/node/programs/go.mod | k8s.io/kubernetes v
containerd | tests/node/programs/build.sh | containerd=v
CoreDNS | tests/node/programs/go.mod | github.com/coredns/coredns v
Helm 3 | tests/helm/build.sh | helm.sh/helm/v3 v
Helm 4 | tests/helm/build.sh | helm.sh/helm/v4 v
kube-scheduler | tests/control-plane/go.mod | k8s.io/kubernetes v
scheduler-plugins (coscheduling) | tests/schedulers/build.sh | sigs.k8s.io/scheduler-plugins@v
Volcano | tests/schedulers/build.sh | volcano.sh/volcano@v
Kueue | tests/schedulers/build.sh | sigs.k8s.io/kueue@v
Kueue, its code that reads jobs | tests/consumers/kueue/go.mod | sigs.k8s.io/kueue v
Kubeflow training SDK, older | tools/requirements/sdk.txt | kubeflow-training==
Kubeflow training SDK, newer | tools/requirements/sdk-1.9.txt | kubeflow-training==
Kubeflow training operator, whose jobs are taken over | tests/go-operator/build.sh | version=v
Argo CD | tests/consumers/build.sh | argoproj/argo-cd/v3@v
Argo Workflows | tests/consumers/build.sh | argoproj/argo-workflows/v3@v
Flyte (flyteplugins) | tests/consumers/build.sh | flyteorg/flyte/flyteplugins@v
Katib | tests/consumers/katib/go.mod | kubeflow/katib v
kube-state-metrics | tests/consumers/kube-state-metrics/go.mod | kube-state-metrics/v2 v
Prometheus | tests/prometheus/build.sh | prometheus/prometheus@v
Prometheus operator, its CRDs | tests/prometheus/build.sh | prometheus-operator@v
Grafana, the schema of dashboards | tools/requirements/dashboard.txt | grafana-foundation-sdk==
Apache MXNet | tools/requirements/mxnet.txt | mxnet==
Apache TVM | tools/requirements/tvm.txt | apache-tvm==
XGBoost | tools/requirements/xgboost.txt | xgboost-cpu==
Open MPI | tools/requirements/mpi.txt | openmpi==
PyTorch | tools/requirements/pytorch.txt | python3-torch=
JAX | tools/requirements/jax.txt | jax==
PaddlePaddle | tools/requirements/paddle.txt | paddlepaddle==
TensorFlow | tools/requirements/tensorflow.txt | tensorflow-cpu==
";

/// Returns the version that follows a text in a file.
fn version(file: &str, before: &str) -> String {
    let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (_, after) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("{file} has no {before}"));
    let word = after.split(char::is_whitespace).next().unwrap();
    // Packages of Grafana's SDK have an epoch before their version.
    let word = word.split_once('!').map_or(word, |(_, version)| version);
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.');
    let version = word[..end.unwrap_or(word.len())].trim_end_matches('.');
    // The Go module of Prometheus 3.14.0 is v0.314.0.
    match version.strip_prefix("0.3") {
        Some(rest) if before.starts_with("prometheus/") => format!("3.{rest}"),
        _ => version.to_owned(),
    }
}

#[test]
fn the_supported_versions_are_those_of_the_tests() {
    let page = fs::read_to_string(root().join("docs/users/support.md")).unwrap();
    let mut rows = BTreeMap::new();
    let mut in_table = false;
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        match cells[..] {
            [_, "tested version", "test"] => in_table = true,
            [name, version, test] if in_table && version != "---" => {
                assert!(test.starts_with("`make test"), "{name}: {test}");
                let twice = rows.insert(name.to_owned(), version.to_owned());
                assert!(twice.is_none(), "{name} has two rows");
            }
            _ => in_table &= line.starts_with('|'),
        }
    }
    let sources = SOURCES.lines().map(|line| {
        let [name, file, before] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        (name.to_owned(), version(file, before))
    });
    assert_eq!(rows, sources.collect(), "docs/users/support.md is stale");
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, rust) = manifest.split_once("rust-version = \"").unwrap();
    let rust = rust.split('"').next().unwrap();
    assert!(page.contains(&format!("| Rust {rust} or later")), "{rust}");
}
