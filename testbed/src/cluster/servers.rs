//! The command lines of the three servers.

use std::path::Path;

use serde_json::{Value, json};

use super::audit::Audit;
use super::binaries::Binaries;
use super::process::Program;

/// The programs and the ports of the servers.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) binaries: Binaries,
    pub(super) etcd: u16,
    pub(super) api_server: u16,
}

pub(super) fn etcd(layout: &Layout, directory: &Path) -> Program {
    let url = format!("http://127.0.0.1:{}", layout.etcd);
    let program = Program::new(layout.binaries.path("etcd"))
        .args([format!("--data-dir={}", directory.join("etcd").display())])
        .args([format!("--listen-client-urls={url}")]);
    if !layout.binaries.original() {
        return program;
    }
    program.args([format!("--advertise-client-urls={url}")]).args([
        "--listen-peer-urls=http://127.0.0.1:0",
        "--unsafe-no-fsync",
        "--log-level=error",
    ])
}

pub(super) fn api_server(
    layout: &Layout,
    directory: &Path,
    audit: Option<&Audit>,
    flags: &[String],
) -> Program {
    let file = |flag: &str, name: &str| format!("--{flag}={}", directory.join(name).display());
    let program = Program::new(layout.binaries.path("kube-apiserver"))
        .args([
            format!("--etcd-servers=http://127.0.0.1:{}", layout.etcd),
            format!("--secure-port={}", layout.api_server),
            file("cert-dir", "certificates"),
            file("token-auth-file", "tokens.csv"),
            // The API server creates this file before it reads it. Any RSA key is suitable.
            file("service-account-key-file", "certificates/apiserver.key"),
            file("service-account-signing-key-file", "certificates/apiserver.key"),
        ])
        .args([
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            // From 1.37 on, it publishes no endpoints at a loopback address, and ends if it is to do so.
            "--endpoint-reconciler-type=none",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/12",
            "--authorization-mode=RBAC",
            // The plug-in requires the service account `default`, which no controller creates here.
            "--disable-admission-plugins=ServiceAccount",
            // As strict as the strictest clusters about setting owner references.
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        ])
        .args(flags);
    if audit.is_none() {
        return program;
    }
    program
        .args([
            file("audit-policy-file", "audit-policy.yaml"),
            file("audit-log-path", "audit.log"),
        ])
        // A call is in the log before its response is complete. The log is never rotated.
        .args(["--audit-log-mode=blocking", "--audit-log-maxsize=100000"])
}

pub(super) fn controller_manager(layout: &Layout, kubeconfig: &Path, more: &[String]) -> Program {
    let usual = [
        "clusterrole-aggregation",
        "garbagecollector",
        "namespace",
        "resourcequota",
    ];
    let controllers: Vec<_> = usual.into_iter().chain(more.iter().map(String::as_str)).collect();
    Program::new(layout.binaries.path("kube-controller-manager"))
        .args([format!("--kubeconfig={}", kubeconfig.display())])
        .args([format!("--controllers={}", controllers.join(","))])
        .args(["--leader-elect=false", "--secure-port=0"])
}

/// Returns the entry of the API server for kubeconfigs. Its certificate file contains its own authority.
pub(super) fn cluster(layout: &Layout, directory: &Path) -> Value {
    json!({
        "server": format!("https://127.0.0.1:{}", layout.api_server),
        "certificate-authority": directory.join("certificates/apiserver.crt"),
    })
}
