//! A control plane whose programs come from the user.

use std::fs;
use std::path::Path;

use training_job_testbed::cluster::Binaries;

use super::child;

#[test]
fn missing_binaries_are_named() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("assets");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for name in ["etcd", "kube-apiserver", "kubectl"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let expected = format!(
        "KUBEBUILDER_ASSETS: {} has no kube-controller-manager; ",
        folder.display()
    );
    let error = Binaries::of_assets(&folder).unwrap_err();
    assert!(error.starts_with(&expected), "{error}");

    // The variable is read when a control plane starts.
    let ended = child::command("start")
        .env("KUBEBUILDER_ASSETS", &folder)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success());
    assert!(
        output.contains(&format!("no control plane: {expected}")),
        "{output}"
    );

    fs::write(folder.join("kube-controller-manager"), "").unwrap();
    assert!(Binaries::of_assets(&folder).is_ok());
}
