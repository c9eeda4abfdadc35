//! Jobs of every kind move from the previous release of this operator to the present one, back and forward again, at
//! every stage of their lives. `make test-upgrade` builds the previous release, and names its folder in
//! `PREVIOUS_RELEASE`. Without it the operator takes over from another process of itself.

use std::path::PathBuf;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use training_job::api::{ConditionType, JobStatus};
use training_job_testbed::cluster::{Background, ControlPlane, Options, repository, wait, wait_for_all};
use training_operator_testing::{operators, program};

use super::jobs::{ALL, Identities, Jobs};
use super::stages::{STAGES, Stage};
use super::stop;
use crate::install::life::{OLD_KINDS, OldKind};

/// A program and the definitions that belong to it.
struct Release {
    program: PathBuf,
    definitions: PathBuf,
}

impl Release {
    fn previous() -> Self {
        match std::env::var_os("PREVIOUS_RELEASE") {
            Some(folder) => {
                let folder = repository().join(folder);
                Self {
                    program: folder.join("training-operator"),
                    definitions: folder.join("crds"),
                }
            }
            None => Self::present(),
        }
    }

    fn present() -> Self {
        Self {
            program: program::path(),
            definitions: repository().join("crds"),
        }
    }

    async fn start(&self, place: &Place<'_>) -> Background {
        operators::release(&self.program, place.cluster, place.namespace, place.flags).await
    }
}

/// The part of a cluster that an operator works in.
struct Place<'a> {
    cluster: &'a ControlPlane,
    namespace: &'a str,
    flags: &'a [&'a str],
}

/// A job at a stage of its life.
struct Case<'a> {
    jobs: &'a Jobs,
    stage: Stage,
    name: String,
}

impl<'a> Case<'a> {
    /// Returns a job of a kind at each stage.
    fn all(jobs: &'a Jobs) -> [Self; STAGES.len()] {
        STAGES.map(|stage| Self {
            jobs,
            stage,
            name: format!("{}-{}", jobs.kind.container, stage.name()),
        })
    }

    async fn begin(&self) {
        self.stage.begin(self.jobs, &self.name).await;
    }

    /// Fails unless the objects and the status of the job are as before.
    async fn expect_same(&self, before: &Identities, status: &JobStatus, marker: &str) {
        let name = &self.name;
        self.jobs.expect_same(name, before, self.stage.may_lose()).await;
        let now = self.jobs.status(name).await;
        assert_eq!(now.conditions, status.conditions, "{name} {marker}");
        assert_eq!(now.start_time, status.start_time, "{name} {marker}");
        assert_eq!(now.restart_count, status.restart_count, "{name} {marker}");
        assert_eq!(now.failure, status.failure, "{name} {marker}");
    }

    async fn end(&self) {
        self.stage.end(self.jobs, &self.name).await;
        let succeeds = self.stage != Stage::Failed;
        self.jobs.expect_end(&self.name, succeeds).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_live_through_an_upgrade_and_a_downgrade() {
    let (previous, present) = (Release::previous(), Release::present());
    let cluster = &ControlPlane::start(Options::default()).await;
    cluster.apply_definitions(&previous.definitions).await;
    let namespace = &cluster.namespace("upgrade").await;
    let kinds = ALL.map(|kind| format!("--enable-scheme={}", kind.name));
    let flags = &kinds.each_ref().map(String::as_str);
    let place = &Place {
        cluster,
        namespace,
        flags,
    };
    let all = join_all(ALL.map(|kind| Jobs::of(kind, cluster, namespace))).await;
    let cases: Vec<_> = all.iter().flat_map(Case::all).collect();

    let operator = previous.start(place).await;
    join_all(cases.iter().map(Case::begin)).await;
    stop(operator).await;
    let before = all[0].identities().await;
    let statuses = join_all(cases.iter().map(async |case| case.jobs.status(&case.name).await)).await;

    // Definitions come before the program, as in docs/users/install.md.
    cluster.apply_definitions(&present.definitions).await;
    for (release, marker) in [
        (&present, "upgraded"),
        (&previous, "downgraded"),
        (&present, "again"),
    ] {
        let operator = release.start(place).await;
        for jobs in &all {
            jobs.seen_by_all(&format!("{}-{marker}", jobs.kind.container))
                .await;
        }
        for (case, status) in cases.iter().zip(&statuses) {
            case.expect_same(&before, status, marker).await;
        }
        if marker == "again" {
            join_all(cases.iter().map(Case::end)).await;
        }
        stop(operator).await;
    }
}

/// Volcano has not admitted the job, so it has a group and no pods.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_in_the_queue_of_a_gang_scheduler_lives_through_an_upgrade() {
    let (previous, present) = (Release::previous(), Release::present());
    let cluster = &ControlPlane::start(Options::default()).await;
    cluster.apply_definitions(&previous.definitions).await;
    cluster.install_pod_groups("scheduling.volcano.sh").await;
    let namespace = &cluster.namespace("upgrade-queue").await;
    let place = &Place {
        cluster,
        namespace,
        flags: &["--enable-scheme=MXJob", "--gang-scheduler-name=volcano"],
    };
    let jobs = Jobs::new(cluster, namespace).await;
    let kind = GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "PodGroup");
    let groups: Api<DynamicObject> =
        Api::namespaced_with(cluster.client(), namespace, &ApiResource::from_gvk(&kind));

    let operator = previous.start(place).await;
    jobs.create("queued", "None", "Never").await;
    let group = wait(groups.clone(), "queued", |group| group.is_some()).await;
    let uid = group.and_then(|group| group.uid());
    jobs.is("queued", ConditionType::Created).await;
    stop(operator).await;

    cluster.apply_definitions(&present.definitions).await;
    for (release, marker) in [
        (&present, "upgraded"),
        (&previous, "downgraded"),
        (&present, "again"),
    ] {
        let operator = release.start(place).await;
        jobs.create(marker, "None", "Never").await;
        wait(groups.clone(), marker, |group| group.is_some()).await;
        assert_eq!(groups.get("queued").await.unwrap().uid(), uid, "{marker}");
        assert_eq!(jobs.identities().await, Identities::new(), "{marker}");
        if marker == "again" {
            let admitted = Patch::Merge(json!({"status": {"phase": "Inqueue"}}));
            let params = PatchParams::default();
            groups.patch("queued", &params, &admitted).await.unwrap();
            jobs.complete("queued").await;
            Stage::Running.end(&jobs, "queued").await;
        }
        stop(operator).await;
    }
}

/// The stages of a job of 2017: the `phase` and the `state` of its status.
const OLD_STAGES: [(&str, &str, &str); 4] = [
    ("created", "Creating", "Unknown"),
    ("running", "Running", "Running"),
    ("succeeded", "Done", "Succeeded"),
    ("failed", "Done", "Failed"),
];

/// The jobs of a kind of 2017, with one replica each.
struct OldJobs<'a> {
    place: &'a Place<'a>,
    kind: &'a OldKind,
    jobs: Api<DynamicObject>,
}

impl<'a> OldJobs<'a> {
    fn new(place: &'a Place<'a>, kind: &'a OldKind) -> Self {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(kind.group, "v1beta1", kind.kind));
        Self {
            place,
            kind,
            jobs: Api::namespaced_with(place.cluster.client(), place.namespace, &resource),
        }
    }

    /// Creates a job. Returns the name of its pod.
    async fn create(&self, name: &str) -> String {
        let mut job = self.kind.job();
        job["metadata"]["name"] = json!(format!("{}-{name}", self.kind.plural));
        let job = serde_json::from_value(job).unwrap();
        let created = self.jobs.create(&PostParams::default(), &job).await.unwrap();
        let uid = created.uid();
        let is_its = |pod: &Pod| pod.owner_references().first().map(|owner| &owner.uid) == uid.as_ref();
        let pods: Api<Pod> = Api::namespaced(self.place.cluster.client(), self.place.namespace);
        let pods = wait_for_all(pods, "", |pods: &[Pod]| pods.iter().any(is_its)).await;
        pods.iter().find(|pod| is_its(pod)).unwrap().name_any()
    }

    /// Waits until a job has this phase and state. Returns what all releases write of its status.
    async fn is(&self, name: &str, phase: &str, state: &str) -> Vec<Value> {
        let name = format!("{}-{name}", self.kind.plural);
        let job = wait(self.jobs.clone(), &name, |job| {
            job.is_some_and(|job| {
                job.data["status"]["phase"] == phase && job.data["status"]["state"] == state
            })
        });
        let status = &job.await.unwrap().data["status"];
        let fields = [
            "reason",
            "conditions",
            "replicaStatuses",
            "startTime",
            "completionTime",
        ];
        fields.map(|field| status[field].clone()).to_vec()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_2017_live_through_an_upgrade_and_a_downgrade() {
    let (previous, present) = (Release::previous(), Release::present());
    let cluster = &ControlPlane::start(Options::default()).await;
    cluster.apply_definitions(&previous.definitions).await;
    let namespace = &cluster.namespace("upgrade-2017").await;
    let kubelet = cluster.kubelet(namespace).await;
    let place = &Place {
        cluster,
        namespace,
        flags: &["--enable-scheme=MxJob", "--enable-scheme=TfJob"],
    };
    let all = OLD_KINDS.each_ref().map(|kind| OldJobs::new(place, kind));
    let pods: Api<Pod> = Api::namespaced(cluster.client(), namespace);
    let identities = async || -> Vec<_> {
        let pods = pods.list(&ListParams::default()).await.unwrap();
        pods.iter().map(|pod| (pod.name_any(), pod.uid())).collect()
    };

    let operator = previous.start(place).await;
    let mut unfinished = Vec::new();
    let mut statuses = Vec::new();
    for jobs in &all {
        for (name, phase, state) in OLD_STAGES {
            let pod = jobs.create(name).await;
            match name {
                "running" => kubelet.runs(&pod).await,
                "succeeded" => kubelet.succeeds(&pod).await,
                "failed" => kubelet.exits(&pod, jobs.kind.container, 1).await,
                _ => {}
            }
            statuses.push(jobs.is(name, phase, state).await);
            if matches!(name, "created" | "running") {
                unfinished.push((jobs, name, pod));
            }
        }
    }
    stop(operator).await;
    let before = identities().await;

    cluster.apply_definitions(&present.definitions).await;
    for (release, marker) in [
        (&present, "upgraded"),
        (&previous, "downgraded"),
        (&present, "again"),
    ] {
        let operator = release.start(place).await;
        let mut now = Vec::new();
        for jobs in &all {
            // A new job is reconciled after those that exist.
            jobs.create(marker).await;
            jobs.is(marker, "Creating", "Unknown").await;
            for (name, phase, state) in OLD_STAGES {
                now.push(jobs.is(name, phase, state).await);
            }
        }
        assert_eq!(now, statuses, "{marker}");
        let kept = identities().await;
        assert!(
            before.iter().all(|pod| kept.contains(pod)),
            "{marker}: {before:?} {kept:?}"
        );
        if marker == "again" {
            for (jobs, name, pod) in &unfinished {
                kubelet.succeeds(pod).await;
                jobs.is(name, "Done", "Succeeded").await;
            }
        }
        stop(operator).await;
    }
}
