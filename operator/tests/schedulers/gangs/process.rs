//! Gang schedulers as processes of the test.

use std::collections::BTreeSet;
use std::fs;

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard, OnceCell};
use training_job_testbed::cluster::{Background, ControlPlane, Options, wait};

use crate::built;

/// A scheduler that supports PodGroups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scheduler {
    Volcano,
    Coscheduling,
}

impl Scheduler {
    /// Returns its name in pods and in the operator's flag. Coscheduling has the name that its chart sets.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Volcano => "volcano",
            Self::Coscheduling => "scheduler-plugins-scheduler",
        }
    }

    /// Returns the operator's flag that selects it.
    pub(crate) fn flag(self) -> String {
        format!("--gang-scheduler-name={}", self.name())
    }

    /// Returns the group and the version of its PodGroup.
    pub(crate) const fn pod_group(self) -> [&'static str; 2] {
        match self {
            Self::Volcano => ["scheduling.volcano.sh", "v1beta1"],
            Self::Coscheduling => ["scheduling.x-k8s.io", "v1alpha1"],
        }
    }
}

/// A control plane with such a scheduler. The scheduler observes all nodes, so each test needs exclusive access.
pub(crate) struct Gangs {
    pub(crate) plane: ControlPlane,
    scheduler: Scheduler,
    _process: Background,
    turn: Mutex<()>,
}

impl Gangs {
    /// Returns the control plane that all tests with this scheduler share.
    pub(crate) async fn shared(scheduler: Scheduler) -> &'static Self {
        static VOLCANO: OnceCell<Gangs> = OnceCell::const_new();
        static COSCHEDULING: OnceCell<Gangs> = OnceCell::const_new();
        let cell = match scheduler {
            Scheduler::Volcano => &VOLCANO,
            Scheduler::Coscheduling => &COSCHEDULING,
        };
        cell.get_or_init(|| Self::start(scheduler)).await
    }

    async fn start(scheduler: Scheduler) -> Self {
        let plane = ControlPlane::start_at_once(Options::default()).await;
        plane.install_crds().await;
        let process = launch(&plane, scheduler).await;
        Self {
            plane,
            scheduler,
            _process: process,
            turn: Mutex::new(()),
        }
    }

    /// Waits for exclusive access. Deletes everything that earlier tests left and that uses or needs capacity.
    pub(crate) async fn alone(&self) -> MutexGuard<'_, ()> {
        let turn = self.turn.lock().await;
        let [group, version] = self.scheduler.pod_group();
        for kind in [
            GroupVersionKind::gvk("", "v1", "Pod"),
            GroupVersionKind::gvk(group, version, "PodGroup"),
        ] {
            self.delete_all(&ApiResource::from_gvk(&kind)).await;
        }
        self.plane.kubectl(&["delete", "nodes", "--all"]).await.success();
        turn
    }

    /// Deletes all objects of a kind, with one call for each namespace.
    async fn delete_all(&self, kind: &ApiResource) {
        let all: Api<DynamicObject> = Api::all_with(self.plane.client(), kind);
        let all = all.list(&ListParams::default()).await.unwrap();
        let namespaces: BTreeSet<_> = all.iter().filter_map(ResourceExt::namespace).collect();
        let now = DeleteParams::default().grace_period(0);
        for namespace in namespaces {
            let api: Api<DynamicObject> = Api::namespaced_with(self.plane.client(), &namespace, kind);
            api.delete_collection(&now, &ListParams::default()).await.unwrap();
        }
    }
}

/// Starts a scheduler and installs the definition of its PodGroup.
pub(crate) async fn launch(plane: &ControlPlane, scheduler: Scheduler) -> Background {
    match scheduler {
        Scheduler::Volcano => {
            built::install_definitions(plane, "volcano").await;
            let process = volcano(plane);
            open_queue(plane, "default").await;
            process
        }
        Scheduler::Coscheduling => {
            built::install_definitions(plane, "coscheduling").await;
            coscheduling(plane)
        }
    }
}

/// Opens a queue of Volcano's when it exists, as the controller does that comes with the scheduler.
pub(super) async fn open_queue(plane: &ControlPlane, name: &str) {
    let [group, version] = Scheduler::Volcano.pod_group();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, "Queue"));
    let queues: Api<DynamicObject> = Api::all_with(plane.client(), &kind);
    wait(queues.clone(), name, |queue: Option<&DynamicObject>| {
        queue.is_some()
    })
    .await;
    let open = Patch::Merge(json!({"status": {"state": "Open"}}));
    queues
        .patch_status(name, &PatchParams::default(), &open)
        .await
        .unwrap();
}

/// Starts Volcano with its default configuration.
fn volcano(plane: &ControlPlane) -> Background {
    let plugins = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"plugins": names})
    };
    let configuration = json!({
        "actions": "enqueue, allocate, backfill",
        "tiers": [
            plugins(&["priority", "gang", "conformance"]),
            plugins(&["overcommit", "drf", "predicates", "proportion", "nodeorder"]),
        ],
    });
    let file = written(plane, "volcano", &configuration);
    let kubeconfig = format!("--kubeconfig={}", plane.kubeconfig().display());
    let flags = [
        "--leader-elect=false",
        "--schedule-period=1s",
        "--cache-dumper=false",
    ];
    let program = built::program("volcano").args([kubeconfig, format!("--scheduler-conf={file}")]);
    plane.spawn(program.args(flags))
}

/// Starts coscheduling. A pod without a node is retried after five minutes, the default, unless an event wakes it.
fn coscheduling(plane: &ControlPlane) -> Background {
    let plugin = json!([{"name": "Coscheduling"}]);
    let profile = json!({
        "schedulerName": Scheduler::Coscheduling.name(),
        "plugins": {
            "multiPoint": {"enabled": plugin},
            "queueSort": {"enabled": plugin, "disabled": [{"name": "*"}]},
        },
        "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}],
    });
    let configuration = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": false},
        "clientConnection": {"kubeconfig": plane.kubeconfig()},
        "profiles": [profile],
    });
    let file = written(plane, "coscheduling", &configuration);
    let flags = [format!("--config={file}"), "--secure-port=0".to_owned()];
    plane.spawn(built::program("coscheduling").args(flags))
}

fn written(plane: &ControlPlane, name: &str, configuration: &Value) -> String {
    let file = plane.directory().join(format!("{name}.yaml"));
    fs::write(&file, configuration.to_string()).unwrap();
    file.display().to_string()
}
