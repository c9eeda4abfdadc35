//! Jobs of every kind move from the previous release of this operator to the present one, back and forward again, at
//! every stage of their lives. `make test-upgrade` builds the previous release, and names its folder in
//! `PREVIOUS_RELEASE`. Without it the operator takes over from another process of itself.

use std::path::PathBuf;

use futures::future::join_all;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::json;
use training_job::api::{ConditionType, JobStatus};
use training_job_testbed::cluster::{Background, ControlPlane, Options, repository, wait};
use training_operator_testing::{operators, program};

use super::jobs::{ALL, Identities, Jobs};
use super::stages::{STAGES, Stage};
use super::stop;

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
