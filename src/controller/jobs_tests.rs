use std::sync::Arc;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::children::Lists;
use super::jobs::Jobs;
use super::stored::Stored;
use crate::api::{JobStatus, ReplicaSpecs, RestartPolicy, RunPolicy};
use crate::version::Version;
use crate::{Framework, Replica, RoleKind, Topology, TrainingJob};

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "ToyJob",
    namespaced,
    status = "JobStatus"
)]
struct ToySpec {
    #[serde(default)]
    specs: ReplicaSpecs,
}

impl TrainingJob for ToyJob {
    const FRAMEWORK: Framework = Framework {
        name: "toy",
        controller: "toyjob-controller",
        container: "toy",
        port_name: "toy-port",
        port: 1,
        restart_policy: RestartPolicy::Never,
        specs_field: "specs",
        roles: &[RoleKind::new("Worker")],
    };

    fn replica_specs(&self) -> &ReplicaSpecs {
        &self.spec.specs
    }

    fn run_policy(&self) -> RunPolicy {
        RunPolicy::default()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    fn env(&self, _: &Topology<'_>, _: &Replica<'_>) -> Vec<k8s_openapi::api::core::v1::EnvVar> {
        Vec::new()
    }
}

fn job(uid: &str, version: u64) -> Stored<ToyJob> {
    serde_json::from_value(json!({
        "apiVersion": "example.com/v1", "kind": "ToyJob", "spec": {},
        "metadata": {"name": "job", "namespace": "ns", "uid": uid, "resourceVersion": version.to_string()},
    }))
    .unwrap()
}

fn listed(jobs: impl IntoIterator<Item = Stored<ToyJob>>) -> Jobs<ToyJob> {
    let mut all = Jobs::default();
    all.list_begins();
    for job in jobs {
        all.listed(job);
    }
    all.list_ends();
    all
}

/// What is remembered of a question after the job that is sent now.
fn question(jobs: &Jobs<ToyJob>) -> (Arc<Stored<ToyJob>>, Lists) {
    let was = jobs.get(&("ns".to_owned(), "job".to_owned())).unwrap();
    (was, jobs.lists())
}

/// The job held, as `uid@version`.
fn held(jobs: &Jobs<ToyJob>) -> Option<String> {
    use kube::Resource;
    let job = jobs.get(&("ns".to_owned(), "job".to_owned()))?;
    let meta = job.meta();
    Some(format!(
        "{}@{}",
        meta.uid.as_deref()?,
        meta.resource_version.as_deref()?
    ))
}

/// The server answers a call that was sent just now.
fn answer(jobs: &mut Jobs<ToyJob>, job: Stored<ToyJob>) {
    let sent = jobs.lists();
    jobs.answered(job, sent);
}

#[test]
fn the_newest_state_is_held() {
    let mut jobs = listed([job("a", 5)]);
    answer(&mut jobs, job("a", 9));
    assert_eq!(jobs.applied(job("a", 7)), None);
    assert_eq!(held(&jobs).unwrap(), "a@9");
    jobs.applied(job("a", 10));
    assert_eq!(held(&jobs).unwrap(), "a@10");
}

#[test]
fn a_namesake_takes_the_place_and_is_told_of() {
    let mut jobs = listed([job("a", 5)]);
    assert_eq!(jobs.applied(job("b", 9)).as_deref(), Some("a"));
    assert_eq!(held(&jobs).unwrap(), "b@9");
    answer(&mut jobs, job("a", 12));
    assert_eq!(held(&jobs).unwrap(), "b@9", "an answer about its predecessor");
}

#[test]
fn an_answer_does_not_bring_back_what_is_gone() {
    let mut jobs = listed([job("a", 5)]);
    assert_eq!(jobs.deleted(&job("a", 8)), "a");
    answer(&mut jobs, job("a", 9));
    assert_eq!(held(&jobs), None);
}

#[test]
fn an_answer_during_a_list_does_not_keep_what_the_list_lacks() {
    let mut jobs = listed([job("a", 5)]);
    jobs.list_begins();
    answer(&mut jobs, job("a", 9));
    let gone = jobs.list_ends();
    assert_eq!(gone.len(), 1);
    assert_eq!(held(&jobs), None);
}

#[test]
fn a_list_does_not_take_back_an_answer_that_came_since_it_began() {
    let mut jobs = listed([job("a", 5)]);
    jobs.list_begins();
    answer(&mut jobs, job("a", 9));
    jobs.listed(job("a", 5));
    jobs.list_ends();
    assert_eq!(held(&jobs).unwrap(), "a@9");
}

#[test]
fn a_list_that_is_made_after_an_answer_overrules_it() {
    // Asked for before it, and answered after a backup was restored that knows nothing of it.
    let mut jobs = listed([job("a", 5)]);
    jobs.list_begins();
    answer(&mut jobs, job("a", 9));
    jobs.page(Version::parse("1005"));
    jobs.listed(job("a", 5));
    jobs.list_ends();
    assert_eq!(held(&jobs).unwrap(), "a@5");
}

#[test]
fn a_list_after_a_restored_backup_wins_over_newer_versions() {
    let mut jobs = listed([job("a", 90)]);
    jobs.list_begins();
    jobs.listed(job("a", 40));
    jobs.list_ends();
    assert_eq!(held(&jobs).unwrap(), "a@40");
}

#[test]
fn what_is_not_a_job_is_held_all_the_same() {
    let odd =
        json!({"metadata": {"name": "job", "uid": "a"}, "spec": {"specs": 1}, "status": {"restartCount": 2}});
    match serde_json::from_value(odd).unwrap() {
        Stored::<ToyJob>::Unreadable { meta, status, error } => {
            assert_eq!((meta.uid.as_deref(), status.restart_count), (Some("a"), 2));
            assert_eq!(
                error, "spec.specs: 1 is a number; use an object",
                "in the words of validation"
            );
        }
        Stored::Job(job) => panic!("{job:?}"),
    }
}

#[test]
fn an_answer_to_a_call_from_before_a_list_says_nothing() {
    // The server was set back to a backup in between.
    let mut jobs = listed([job("a", 5)]);
    let sent = jobs.lists();
    jobs.list_begins();
    jobs.answered(job("a", 9), sent);
    jobs.listed(job("a", 5));
    jobs.list_ends();
    jobs.answered(job("a", 9), sent);
    assert_eq!(held(&jobs).unwrap(), "a@5");
}

#[test]
fn what_an_answer_says_is_gone_does_not_come_back_with_old_news() {
    let mut jobs = listed([job("a", 5)]);
    let (was, sent) = question(&jobs);
    assert!(!jobs.absent(&was, sent, Version::parse("4")), "an older state");
    assert!(jobs.absent(&was, sent, Version::parse("20")));
    jobs.applied(job("a", 9));
    assert_eq!(held(&jobs), None);
    jobs.deleted(&job("a", 12));
    jobs.applied(job("b", 15));
    assert_eq!(held(&jobs).unwrap(), "b@15");
}

#[test]
fn a_namesake_that_an_answer_brings_replaces_the_job() {
    let mut jobs = listed([job("a", 5)]);
    let (was, sent) = question(&jobs);
    assert_eq!(jobs.reread(&was, sent, job("b", 20)).unwrap(), "a");
    jobs.applied(job("a", 9));
    assert_eq!(held(&jobs).unwrap(), "b@20");
    assert_eq!(
        jobs.reread(&was, sent, job("a", 30)),
        None,
        "of what is not held any more"
    );
    assert_eq!(held(&jobs).unwrap(), "b@20");
}
