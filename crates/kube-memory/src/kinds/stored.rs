//! Built-in kinds that are only stored: as they are sent, without validation or controllers, and with the defaults that
//! kubectl reads.

use serde_json::{Value, json};

use crate::kinds::{Family, Kind, ScalePaths};

/// For each kind its group, version, name, plural, short name and scope.
const KINDS: &str = "\
core                       v1  Endpoints                endpoints                 ep      Namespaced
core                       v1  LimitRange               limitranges               limits  Namespaced
core                       v1  PersistentVolumeClaim    persistentvolumeclaims    pvc     Namespaced
core                       v1  PodTemplate              podtemplates              -       Namespaced
core                       v1  ReplicationController    replicationcontrollers    rc      Namespaced
apps                       v1  DaemonSet                daemonsets                ds      Namespaced
apps                       v1  Deployment               deployments               deploy  Namespaced
apps                       v1  ReplicaSet               replicasets               rs      Namespaced
apps                       v1  StatefulSet              statefulsets              sts     Namespaced
autoscaling                v2  HorizontalPodAutoscaler  horizontalpodautoscalers  hpa     Namespaced
batch                      v1  CronJob                  cronjobs                  cj      Namespaced
batch                      v1  Job                      jobs                      -       Namespaced
discovery.k8s.io           v1  EndpointSlice            endpointslices            -       Namespaced
networking.k8s.io          v1  Ingress                  ingresses                 ing     Namespaced
networking.k8s.io          v1  NetworkPolicy            networkpolicies           netpol  Namespaced
policy                     v1  PodDisruptionBudget      poddisruptionbudgets      pdb     Namespaced
rbac.authorization.k8s.io  v1  Role                     roles                     -       Namespaced
rbac.authorization.k8s.io  v1  RoleBinding              rolebindings              -       Namespaced
core                       v1  PersistentVolume         persistentvolumes         pv      Cluster
networking.k8s.io          v1  IngressClass             ingressclasses            -       Cluster
rbac.authorization.k8s.io  v1  ClusterRole              clusterroles              -       Cluster
rbac.authorization.k8s.io  v1  ClusterRoleBinding       clusterrolebindings       -       Cluster
scheduling.k8s.io          v1  PriorityClass            priorityclasses           pc      Cluster
storage.k8s.io             v1  StorageClass             storageclasses            sc      Cluster
";

/// The kinds whose objects a controller of a real cluster turns into pods.
const WORKLOADS: [&str; 7] = [
    "ReplicationController",
    "DaemonSet",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "CronJob",
    "Job",
];

/// Returns all these kinds.
pub(crate) fn kinds() -> impl Iterator<Item = Kind> {
    KINDS.lines().filter_map(|line| {
        let row: Vec<&'static str> = line.split_whitespace().collect();
        <[&str; 6]>::try_from(row).ok().map(kind)
    })
}

fn kind([group, version, kind, plural, short, scope]: [&'static str; 6]) -> Kind {
    let group = if group == "core" { "" } else { group };
    let mut built = Kind::built_in(Family::Stored, kind, plural, group, version);
    built.namespaced = scope == "Namespaced";
    if short != "-" {
        built.short_names = vec![short.to_owned()];
    }
    if is_workload(kind) || kind == "HorizontalPodAutoscaler" {
        built.categories = vec!["all".to_owned()];
    }
    let desired = ["Ingress", "NetworkPolicy", "PodDisruptionBudget", "PriorityClass"];
    built.generation = is_workload(kind) || desired.contains(&kind);
    built.returns_deleted = matches!(
        kind,
        "PersistentVolume" | "PersistentVolumeClaim" | "PodTemplate" | "StorageClass"
    );
    for version in &mut built.versions {
        version.status = first_status(kind).is_some();
        let scaled = ["ReplicationController", "Deployment", "ReplicaSet", "StatefulSet"];
        version.scale = scaled.contains(&kind).then(ScalePaths::of_workload);
    }
    built
}

/// Returns the defaults of a kind: of members of the spec, or of the object if it has no spec.
fn defaults(kind: &str) -> Value {
    match kind {
        "Deployment" => json!({
            "replicas": 1,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        }),
        "ReplicaSet" | "ReplicationController" => json!({"replicas": 1}),
        "StatefulSet" => json!({
            "replicas": 1,
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "partition": 0}},
            "revisionHistoryLimit": 10,
        }),
        "DaemonSet" => json!({
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            "revisionHistoryLimit": 10,
        }),
        "CronJob" => json!({
            "concurrencyPolicy": "Allow",
            "suspend": false,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
        }),
        "HorizontalPodAutoscaler" => json!({"minReplicas": 1}),
        "PersistentVolume" => json!({"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}),
        "PersistentVolumeClaim" => json!({"volumeMode": "Filesystem"}),
        "PriorityClass" => json!({"preemptionPolicy": "PreemptLowerPriority"}),
        "StorageClass" => json!({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
        _ => json!({}),
    }
}

/// Sets the defaults of an object where it has no value.
pub(crate) fn set_defaults(kind: &str, object: &mut Value) {
    let members = match kind {
        "PriorityClass" | "StorageClass" => Some(object),
        _ => object.get_mut("spec"),
    };
    let Some(members) = members.and_then(Value::as_object_mut) else {
        return;
    };
    if let Value::Object(defaults) = defaults(kind) {
        for (key, default) in defaults {
            members.entry(key).or_insert(default);
        }
    }
}

/// Returns the status of a new object of a kind that has one.
pub(crate) fn first_status(kind: &str) -> Option<Value> {
    Some(match kind {
        "Deployment" | "CronJob" | "Job" => json!({}),
        "ReplicaSet" | "ReplicationController" => json!({"replicas": 0}),
        "StatefulSet" => json!({"replicas": 0, "availableReplicas": 0}),
        "DaemonSet" => json!({
            "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
        }),
        "HorizontalPodAutoscaler" => json!({"desiredReplicas": 0, "currentMetrics": null}),
        "Ingress" => json!({"loadBalancer": {}}),
        "PersistentVolume" | "PersistentVolumeClaim" => json!({"phase": "Pending"}),
        "PodDisruptionBudget" => json!({
            "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
        }),
        _ => return None,
    })
}

/// Returns true for a kind whose objects would become pods on a real cluster.
pub(crate) fn is_workload(kind: &str) -> bool {
    WORKLOADS.contains(&kind)
}
