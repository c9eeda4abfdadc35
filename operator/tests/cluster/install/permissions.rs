//! The operator gets what it needs and nothing else.

use std::collections::BTreeSet;

use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use training_job_testbed::cluster::{Audit, ControlPlane, Options, wait};
use training_operator_testing::manifests::{Permission, build, find, permissions, without};

use super::life::{
    AUTOSCALED, COMPACT, COMPACT_ADOPTED, COMPACT_TAKEN, KINDS, OLD_KINDS, OldKind, Shown, create,
    create_jobs, play_kubelet, shared, start,
};
use super::{gangs, mpi};

/// Starts a control plane with the CRDs, an audit log, and the admission that requires the permission to write finalizers.
/// Each test has its own, because an operator for all namespaces would do what another one lacks the permission for.
pub(crate) async fn cluster() -> ControlPlane {
    let flag = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";
    let options = Options {
        audit: Some(Audit::All),
        api_server_flags: vec![flag.to_owned()],
        ..Options::default()
    };
    let cluster = ControlPlane::start(options).await;
    cluster.install_crds().await;
    gangs::install(&cluster).await;
    cluster
}

/// Awaits that all jobs have ended, and are gone where their kind has a time to live.
async fn all_gone(cluster: &ControlPlane, namespace: &str) {
    for name in [COMPACT, COMPACT_ADOPTED] {
        let kind = GroupVersionKind::gvk("kubeflow.org", "v1", "MXJob");
        let resource = ApiResource::from_gvk_with_plural(&kind, "mxjobs");
        let jobs: Api<DynamicObject> = Api::namespaced_with(cluster.client(), namespace, &resource);
        let has_ended = |job: Option<&DynamicObject>| {
            job.is_some_and(|job| job.data["status"]["completionTime"].is_string())
        };
        wait(jobs.clone(), name, has_ended).await;
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), namespace);
        wait(maps, &shared(namespace, name), |map| map.is_none()).await;
        jobs.delete(name, &Default::default()).await.unwrap();
    }
    let others = [
        ("mxjobs", "MXJob", COMPACT),
        ("mxjobs", "MXJob", COMPACT_ADOPTED),
        ("pytorchjobs", "PyTorchJob", AUTOSCALED),
        ("mpijobs", "MPIJob", mpi::PLAIN),
        ("mpijobs", "MPIJob", mpi::ADOPTED),
    ];
    let all = KINDS.map(|(plural, kind, ..)| (plural, kind, plural));
    for (plural, kind, name) in all.into_iter().chain(others) {
        let kind = GroupVersionKind::gvk("kubeflow.org", "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), namespace, &resource);
        wait(api, name, |job| job.is_none()).await;
    }
    for OldKind {
        group, kind, plural, ..
    } in OLD_KINDS
    {
        let kind = GroupVersionKind::gvk(group, "v1beta1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), namespace, &resource);
        let is_done =
            |job: Option<&DynamicObject>| job.is_some_and(|job| job.data["status"]["phase"] == "Done");
        wait(api, plural, is_done).await;
    }
}

#[tokio::test]
async fn the_granted_permissions_are_those_used() {
    let cluster = &cluster().await;
    let namespace = cluster.namespace("install").await;
    let objects = build(cluster, "standalone", &["mpi", "mlkube"], &namespace).await;
    // These are there.
    let ours: Vec<Value> = objects
        .iter()
        .filter(|o| o["kind"] != "CustomResourceDefinition" && o["kind"] != "Namespace")
        .cloned()
        .collect();
    create(cluster, &namespace, &ours).await;
    let operator = start(cluster, &objects, &namespace).await;
    create_jobs(cluster, &namespace, Shown::All).await;
    mpi::create_jobs(cluster, &namespace).await;
    let lives = async {
        mpi::change(cluster, &namespace).await;
        all_gone(cluster, &namespace).await;
    };
    tokio::select! {
        () = play_kubelet(cluster, &namespace) => unreachable!("it plays for ever"),
        () = lives => {},
    }
    operator.wait_for_line("the name is taken").await;
    let taken = format!(
        "ConfigMap {}: the name is taken",
        shared(&namespace, COMPACT_TAKEN)
    );
    operator.wait_for_line(&taken).await;
    for adopted in [
        "ConfigMap",
        "service",
        "pod",
        "HorizontalPodAutoscaler",
        "ServiceAccount",
        "Role",
        "RoleBinding",
    ] {
        operator.wait_for_line(&format!("adopted {adopted} ")).await;
    }
    let renewed = |lease: Option<&Lease>| {
        let spec = lease.and_then(|lease| lease.spec.as_ref());
        spec.is_some_and(|spec| spec.renew_time != spec.acquire_time)
    };
    let leases: Api<Lease> = Api::namespaced(cluster.client(), &namespace);
    wait(leases, "1ca428e5.training-operator.kubeflow.org", renewed).await;

    let user = format!("system:serviceaccount:{namespace}:training-operator");
    // The right on Secrets is a component of its own, for MPIJobs of v2beta1.
    let calls = cluster.audit().into_iter();
    let calls = calls.filter(|call| call.user == user && call.resource != "secrets");
    let mut used = BTreeSet::new();
    for call in calls {
        assert_ne!(call.code, 403, "{}", call.summary());
        let resource = match &*call.subresource {
            "" => call.resource,
            subresource => format!("{}/{subresource}", call.resource),
        };
        let group = call
            .uri
            .strip_prefix("/apis/")
            .and_then(|path| path.split('/').next());
        used.insert(Permission {
            group: group.unwrap_or_default().to_owned(),
            resource,
            verb: call.verb,
        });
    }
    let mut granted = permissions(find(&objects, "ClusterRole", "training-operator"));
    granted.extend(permissions(find(
        &objects,
        "Role",
        "training-operator-leader-election",
    )));
    // The operator sends no such requests. The server requires these permissions of a client that sets an owner, and
    // of one that grants `pods/exec` to a launcher.
    granted.retain(|p| !p.resource.ends_with("/finalizers") && p.resource != "pods/exec");
    assert_eq!(used, granted);
}

/// Stands for the namespace of each trial.
const ANY: &str = "namespace-of-the-trial";

/// The jobs that an operator runs in a trial.
#[derive(Clone, Copy)]
enum Jobs {
    /// Those of all kinds but MPIJob.
    All,
    /// MPIJobs.
    Mpi,
    /// Jobs with groups of this API version.
    Gangs(&'static str),
}

/// An operator that lacks something.
struct Trial<'a> {
    objects: &'a [Value],
    /// The permission that is removed from the role.
    taken: Permission,
    role: &'static str,
    jobs: Jobs,
}

/// Removes each permission in turn from an operator of its own, which then reports the missing one.
#[tokio::test]
async fn whatever_is_taken_away_is_missed() {
    let cluster = &cluster().await;
    let base = build(cluster, "namespaced", &[], ANY).await;
    let with_mpi = build(cluster, "namespaced", &["mpi"], ANY).await;
    let with_mlkube = build(cluster, "namespaced", &["mlkube"], ANY).await;
    let mut with_gangs = Vec::new();
    for (component, version) in gangs::COMPONENTS {
        let objects = build(cluster, "namespaced", &[component], ANY).await;
        with_gangs.push((objects, version));
    }
    let mut trials = Vec::new();
    for role in ["training-operator", "training-operator-leader-election"] {
        let [plain, all, old] =
            [&base, &with_mpi, &with_mlkube].map(|objects| permissions(find(objects, "Role", role)));
        let trial = |objects, jobs| {
            move |taken: &Permission| Trial {
                objects,
                taken: taken.clone(),
                role,
                jobs,
            }
        };
        trials.extend(plain.iter().map(trial(&base, Jobs::All)));
        trials.extend(all.difference(&plain).map(trial(&with_mpi, Jobs::Mpi)));
        trials.extend(old.difference(&plain).map(trial(&with_mlkube, Jobs::All)));
        for (objects, version) in &with_gangs {
            let all = permissions(find(objects, "Role", role));
            trials.extend(all.difference(&plain).map(trial(objects, Jobs::Gangs(version))));
        }
    }
    assert_eq!(trials.len(), 59 + 25 + 8 + 2 * 6);
    stream::iter(trials)
        .for_each_concurrent(4, |trial| miss(cluster, trial))
        .await;
}

async fn miss(cluster: &ControlPlane, trial: Trial<'_>) {
    let Trial {
        objects,
        taken,
        role,
        jobs,
    } = trial;
    let Permission {
        group,
        resource,
        verb,
    } = &taken;
    let name = format!("no-{verb}-{}-{group}", resource.replace('/', "-"));
    let name = name.replace('.', "-");
    let namespace = cluster.namespace(&name).await;
    let objects: Vec<Value> = objects
        .iter()
        .map(|object| {
            let object = object.to_string().replace(ANY, &namespace).parse().unwrap();
            let object: Value = object;
            if object["kind"] == "Role" && object["metadata"]["name"] == role {
                without(&object, &taken)
            } else {
                object
            }
        })
        .collect();
    create(cluster, &namespace, &objects).await;
    let operator = start(cluster, &objects, &namespace).await;
    match jobs {
        Jobs::All => {
            let plural = resource.split('/').next().unwrap_or_default();
            let shown = match plural {
                "configmaps" => Shown::ConfigMaps,
                _ if group.ends_with("kubeflow.org") || group.ends_with("mlkube.io") => {
                    Shown::Kind(group, plural)
                }
                _ => Shown::Others,
            };
            create_jobs(cluster, &namespace, shown).await;
        }
        Jobs::Mpi => mpi::create_jobs(cluster, &namespace).await,
        Jobs::Gangs(version) => gangs::create_jobs(cluster, &namespace, version).await,
    }
    let complaint = match &**resource {
        "pods/exec" => "attempting to grant RBAC permissions not currently held".to_owned(),
        resource if resource.ends_with("/finalizers") => "cannot set blockOwnerDeletion".to_owned(),
        // As it is written in JSON.
        resource => format!("cannot {verb} resource \\\"{resource}\\\" in API group \\\"{group}\\\""),
    };
    let change = async {
        match jobs {
            Jobs::Gangs(version) => gangs::change(cluster, &namespace, version).await,
            Jobs::All if (&**resource, &**verb) == ("events", "patch") => {
                repeat_events(cluster, &namespace).await;
            }
            Jobs::All | Jobs::Mpi => {}
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = play_kubelet(cluster, &namespace) => unreachable!("it plays for ever"),
        () = change => unreachable!("it never ends"),
        _ = operator.wait_for_line(&complaint) => {},
    }
}

/// Suspends and resumes a job again and again: the operator counts the events of the same words in those that are stored.
async fn repeat_events(cluster: &ControlPlane, namespace: &str) {
    let kind = GroupVersionKind::gvk("kubeflow.org", "v1", "MXJob");
    let resource = ApiResource::from_gvk_with_plural(&kind, "mxjobs");
    let jobs: Api<DynamicObject> = Api::namespaced_with(cluster.client(), namespace, &resource);
    let name = "repeats";
    let template = json!({"spec": {"containers": [{"name": "mxnet", "image": "example.com/mxnet:1"}]}});
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": name},
        "spec": {
            "jobMode": "MXTrain", "runPolicy": {"suspend": true},
            "mxReplicaSpecs": {"Worker": {"replicas": 1, "template": template}},
        },
    });
    create(cluster, namespace, &[job]).await;
    for suspend in [true, false, true, false, true] {
        let patch = json!({"spec": {"runPolicy": {"suspend": suspend}}});
        let patch = Patch::Merge(patch);
        jobs.patch(name, &PatchParams::default(), &patch).await.unwrap();
        let wanted = if suspend { "True" } else { "False" };
        let is_done = |job: Option<&DynamicObject>| {
            let conditions = job.and_then(|job| job.data["status"]["conditions"].as_array());
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|c| c["type"] == "Suspended" && c["status"] == wanted)
        };
        wait(jobs.clone(), name, is_done).await;
    }
}
