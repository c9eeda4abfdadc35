//! The rules of fields that only pods of one operating system have.

use kube_schema::FieldPath;
use serde_json::Value;

use super::{Found, visit};

/// Fields that a pod for Windows must not have.
const NOT_IN_WINDOWS: &[&str] = &[
    "hostUsers|shareProcessNamespace|resources",
    "securityContext.appArmorProfile|seLinuxOptions|seccompProfile|fsGroup|fsGroupChangePolicy|sysctls|runAsUser|runAsGroup",
    "securityContext.supplementalGroups|supplementalGroupsPolicy|seLinuxChangePolicy",
    "containers|initContainers[].securityContext.appArmorProfile|seLinuxOptions|seccompProfile|capabilities",
    "containers|initContainers[].securityContext.readOnlyRootFilesystem|privileged|allowPrivilegeEscalation",
    "containers|initContainers[].securityContext.procMount|runAsUser|runAsGroup",
];

/// Fields that a pod for Linux must not have.
const NOT_IN_LINUX: &[&str] = &[
    "securityContext.windowsOptions",
    "containers|initContainers[].securityContext.windowsOptions",
];

/// The signal by which a container is stopped, which depends on the operating system.
const STOP_SIGNAL: &str = "containers|initContainers[].lifecycle.stopSignal";

/// Checks the fields that depend on the operating system.
pub(super) fn check(pod: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let system = pod["os"]["name"].as_str().unwrap_or_default();
    let fields = match system {
        "linux" => NOT_IN_LINUX,
        "windows" => NOT_IN_WINDOWS,
        _ => &[],
    };
    for path in fields {
        visit(pod, at, path, &mut |value, at| {
            if !value.is_null() {
                let problem = format!("must not be set for os.name {system}");
                found.errors.push(at, problem, "remove it, or change os.name");
            }
        });
    }
    visit(pod, at, STOP_SIGNAL, &mut |signal, at| {
        if !signal.is_null() && system.is_empty() {
            let problem = "API servers refuse or drop it without os.name";
            found
                .warnings
                .push(at, problem, "set os.name of the pod to linux");
        }
    });
}
