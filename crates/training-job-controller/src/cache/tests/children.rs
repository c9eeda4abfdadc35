use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::super::super::clock::SystemClock;
use super::super::children::Children;
use super::super::partial_child::PartialChild;
use kube_follow::Version;
use training_job::plan::ChildKind;
use training_job::plan::observed::{EndOrder, Phase, PodRecord};

const POD: ChildKind = ChildKind::Pod;

type Pod = PartialChild<PodRecord>;

/// Returns a running pod of the job with UID `owner`.
fn pod(name: &str, uid: &str, owner: &str, version: u64) -> Pod {
    in_phase(name, uid, owner, version, "Running")
}

fn in_phase(name: &str, uid: &str, owner: &str, version: u64, phase: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": uid, "resourceVersion": version.to_string(),
            "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "job", "uid": owner, "controller": true}],
        },
        "status": {"phase": phase},
    }))
    .unwrap()
}

/// Returns a cache after a first list at version 10 with these pods.
fn listed(pods: &[Pod]) -> Children {
    let mut children = Children::new(Arc::new(SystemClock));
    list(&mut children, 10, pods);
    children
}

fn list(children: &mut Children, version: u64, pods: &[Pod]) {
    children.list_started(POD);
    names(children, version, pods);
}

/// Completes the list in progress with these pods. Returns how many jobs lose children because of it.
fn names(children: &mut Children, version: u64, pods: &[Pod]) -> usize {
    children.list_page(POD, Version::parse(&version.to_string()));
    for pod in pods {
        children.listed::<PodRecord>(POD, pod);
    }
    children.list_done::<PodRecord>(POD).len()
}

/// Returns the pods of a job as `name/uid`, with `!` for a pod that is being deleted.
fn held(children: &Children, owner: &str) -> Vec<String> {
    let observed = children.observe("ns", owner);
    let text = |p: &PodRecord| format!("{}/{}{}", p.name, p.uid, if p.deleting { "!" } else { "" });
    observed.pods.values().map(|p| text(p)).collect()
}

/// Passes the response to a call that was sent in the current epoch.
fn answer(children: &mut Children, pod: &Pod) {
    let epoch = children.epoch(POD);
    children.answered::<PodRecord>(POD, pod, epoch);
}

fn completed(children: &Children, owner: &str) -> Vec<String> {
    children.observe("ns", owner).removed.keys().cloned().collect()
}

#[test]
fn a_list_replaces_the_cached_objects() {
    let mut children = listed(&[pod("a", "1", "j", 5), pod("b", "2", "j", 6)]);
    list(
        &mut children,
        20,
        &[pod("b", "2", "j", 6), pod("c", "3", "j", 15)],
    );
    assert_eq!(held(&children, "j"), ["b/2", "c/3"]);
}

#[test]
fn a_list_after_a_restored_backup_wins_over_newer_versions() {
    let mut children = listed(&[]);
    children.applied::<PodRecord>(POD, &pod("a", "1", "j", 90));
    children.applied::<PodRecord>(POD, &pod("b", "2", "j", 91));
    list(&mut children, 50, &[pod("a", "1", "j", 40)]);
    assert_eq!(held(&children, "j"), ["a/1"]);
    children.applied::<PodRecord>(POD, &pod("c", "3", "j", 51));
    assert_eq!(held(&children, "j"), ["a/1", "c/3"]);
}

#[test]
fn a_response_behind_the_watch_caches_no_deleted_object() {
    let mut children = listed(&[]);
    children.applied::<PodRecord>(POD, &pod("a", "1", "j", 11));
    children.deleted::<PodRecord>(POD, &pod("a", "1", "j", 12));
    answer(&mut children, &pod("a", "1", "j", 11));
    assert!(held(&children, "j").is_empty());
}

#[test]
fn a_response_to_a_request_from_before_a_list_caches_no_deleted_object() {
    let mut children = listed(&[]);
    list(&mut children, 20, &[]);
    answer(&mut children, &pod("a", "1", "j", 15));
    assert!(held(&children, "j").is_empty(), "the list would have named it");
    answer(&mut children, &pod("b", "2", "j", 21));
    assert_eq!(held(&children, "j"), ["b/2"], "this one came after it");
}

#[test]
fn a_response_before_a_bookmark_caches_no_deleted_object() {
    let mut children = listed(&[]);
    children.bookmark(POD, Version::parse("30"));
    answer(&mut children, &pod("a", "1", "j", 25));
    assert!(held(&children, "j").is_empty());
}

#[test]
fn responses_during_a_list_are_compared_with_its_version() {
    let mut children = listed(&[]);
    children.list_started(POD);
    answer(&mut children, &pod("gone", "1", "j", 15));
    answer(&mut children, &pod("fresh", "2", "j", 25));
    assert_eq!(held(&children, "j").len(), 2, "both may be there");
    assert_eq!(names(&mut children, 20, &[]), 1, "a job is concerned");
    assert_eq!(held(&children, "j"), ["fresh/2"]);
}

#[test]
fn a_list_does_not_revert_a_newer_response() {
    let mut children = listed(&[]);
    children.list_started(POD);
    answer(&mut children, &in_phase("a", "1", "j", 25, "Succeeded"));
    names(&mut children, 20, &[in_phase("a", "1", "j", 15, "Running")]);
    let phase = children.observe("ns", "j").pods["a"].phase;
    assert_eq!(phase, training_job::plan::observed::Phase::Succeeded);
}

#[test]
fn a_list_that_begins_after_a_response_overrules_it() {
    // The request came before the list, and the response after a restore from a backup without the change.
    let mut children = listed(&[]);
    children.list_started(POD);
    answer(&mut children, &in_phase("a", "1", "j", 25, "Succeeded"));
    names(&mut children, 1025, &[in_phase("a", "1", "j", 15, "Running")]);
    let phase = children.observe("ns", "j").pods["a"].phase;
    assert_eq!(phase, training_job::plan::observed::Phase::Running);
}

#[test]
fn the_end_of_a_predecessor_does_not_take_its_successor() {
    let mut children = listed(&[pod("a", "old", "j", 5)]);
    children.mark_deleting::<PodRecord>(POD, "ns", "j", "a", "old");
    let epoch = children.epoch(POD);
    children.confirm_gone::<PodRecord>(POD, "ns", "a", "old", epoch);
    answer(&mut children, &pod("a", "new", "j", 30));
    let told = children.deleted::<PodRecord>(POD, &pod("a", "old", "j", 20));
    assert_eq!(told.unwrap().uid, "j", "whose pod it was");
    assert_eq!(held(&children, "j"), ["a/new"]);
}

#[test]
fn a_name_passes_from_one_job_to_the_next() {
    let mut children = listed(&[pod("a", "1", "j", 5)]);
    answer(&mut children, &pod("a", "2", "k", 30));
    children.deleted::<PodRecord>(POD, &pod("a", "1", "j", 20));
    assert!(held(&children, "j").is_empty());
    assert_eq!(held(&children, "k"), ["a/2"]);
}

#[test]
fn older_events_are_ignored() {
    let mut children = listed(&[pod("a", "1", "j", 9)]);
    answer(&mut children, &in_phase("a", "1", "j", 12, "Failed"));
    assert!(
        children
            .applied::<PodRecord>(POD, &pod("a", "1", "j", 11))
            .is_empty()
    );
    assert_eq!(
        children.observe("ns", "j").pods["a"].phase,
        training_job::plan::observed::Phase::Failed
    );
}

#[test]
fn a_deletion_mark_outlives_events_but_not_a_failed_delete() {
    let mut children = listed(&[pod("a", "1", "j", 9)]);
    children.mark_deleting::<PodRecord>(POD, "ns", "j", "a", "1");
    children.applied::<PodRecord>(POD, &pod("a", "1", "j", 11));
    assert_eq!(held(&children, "j"), ["a/1!"]);
    children.unmark_deleting::<PodRecord>(POD, "ns", "j", "a", "1");
    assert_eq!(held(&children, "j"), ["a/1"]);
}

#[test]
fn a_deletion_that_a_restored_server_lost_is_repeated() {
    let mut children = listed(&[pod("a", "1", "j", 9)]);
    children.mark_deleting::<PodRecord>(POD, "ns", "j", "a", "1");
    list(&mut children, 8, &[pod("a", "1", "j", 7)]);
    assert_eq!(held(&children, "j"), ["a/1"]);
}

#[test]
fn a_success_outlives_its_pod_unless_we_deleted_it() {
    for (ours, expected) in [(false, 1), (true, 0)] {
        let mut children = listed(&[in_phase("a", "1", "j", 9, "Succeeded")]);
        if ours {
            children.mark_deleting::<PodRecord>(POD, "ns", "j", "a", "1");
        }
        children.deleted::<PodRecord>(POD, &in_phase("a", "1", "j", 12, "Succeeded"));
        assert_eq!(completed(&children, "j").len(), expected, "ours: {ours}");
    }
}

#[test]
fn the_last_state_of_a_pod_counts_even_if_it_came_with_its_end() {
    let mut children = listed(&[pod("a", "1", "j", 9)]);
    children.deleted::<PodRecord>(POD, &in_phase("a", "1", "j", 12, "Succeeded"));
    assert_eq!(completed(&children, "j"), ["a"]);
}

#[test]
fn a_deleted_job_leaves_nothing_in_the_cache() {
    let mut children = listed(&[in_phase("a", "1", "j", 9, "Succeeded"), pod("b", "2", "j", 8)]);
    children.deleted::<PodRecord>(POD, &in_phase("a", "1", "j", 12, "Succeeded"));
    children.forget("ns", "j");
    children.applied::<PodRecord>(POD, &in_phase("b", "2", "j", 13, "Succeeded"));
    children.deleted::<PodRecord>(POD, &in_phase("b", "2", "j", 14, "Succeeded"));
    assert!(children.is_empty());
}

#[test]
fn an_object_without_owner_belongs_to_no_job() {
    let mut children = listed(&[pod("a", "1", "j", 9)]);
    let mut orphan = pod("a", "1", "j", 12);
    orphan.metadata.owner_references = None;
    assert_eq!(children.applied::<PodRecord>(POD, &orphan).len(), 1);
    assert!(children.is_empty());
}

#[test]
fn the_time_of_an_end_is_known_only_if_it_was_observed() {
    let ended = |name: &str, version| in_phase(name, name, "job", version, "Succeeded");
    let mut children = listed(&[pod("seen", "seen", "job", 5), ended("unseen", 5)]);
    children.applied::<PodRecord>(POD, &ended("seen", 11));
    let time = |children: &Children, name: &str| children.observe("ns", "job").pods[name].seen_to_end;
    let first = time(&children, "seen");
    assert!(first.is_some());
    children.applied::<PodRecord>(POD, &ended("seen", 12));
    children.applied::<PodRecord>(POD, &ended("unseen", 13));
    assert_eq!(time(&children, "seen"), first, "it ends once");
    assert_eq!(time(&children, "unseen"), None);
}

/// Clocks of nodes and API servers differ, so the order in which the end and the deletion were seen counts.
#[test]
fn the_order_of_end_and_deletion_is_that_of_their_observation() {
    let deleted = |mut pod: Pod| {
        pod.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        pod
    };
    let ended = |version| in_phase("pod", "pod", "job", version, "Failed");
    let order = |seen: &[Pod]| {
        let mut children = listed(&seen[..1]);
        for pod in &seen[1..] {
            children.applied::<PodRecord>(POD, pod);
        }
        children.observe("ns", "job").pods["pod"].order
    };
    let running = |version| pod("pod", "pod", "job", version);
    let ended_first = order(&[running(5), ended(11), deleted(ended(12))]);
    assert_eq!(ended_first, EndOrder::EndedFirst);
    let states = [
        running(5),
        deleted(running(11)),
        deleted(ended(12)),
        deleted(ended(13)),
    ];
    assert_eq!(order(&states), EndOrder::GoingFirst);
    assert_eq!(order(&[running(5), deleted(ended(11))]), EndOrder::Unknown);
}

#[test]
fn a_response_to_a_request_from_before_a_list_is_ignored() {
    // The server was restored from a backup meanwhile: its lists and watches lack the pod.
    let mut children = listed(&[]);
    let epoch = children.epoch(POD);
    list(&mut children, 8, &[]);
    children.answered::<PodRecord>(POD, &pod("a", "1", "j", 11), epoch);
    assert_eq!(held(&children, "j"), [""; 0]);
    children.list_started(POD);
    children.answered::<PodRecord>(POD, &pod("a", "1", "j", 11), epoch);
    names(&mut children, 9, &[]);
    assert_eq!(held(&children, "j"), [""; 0]);
}

#[test]
fn a_pod_that_a_list_names_exists_even_if_it_was_gone_before() {
    // The server was restored from a backup meanwhile, so the deleted pod exists again.
    let mut children = listed(&[pod("a", "1", "j", 5)]);
    let epoch = children.epoch(POD);
    children.mark_deleting::<PodRecord>(POD, "ns", "j", "a", "1");
    list(&mut children, 8, &[pod("a", "1", "j", 5)]);
    children.confirm_gone::<PodRecord>(POD, "ns", "a", "1", epoch);
    assert_eq!(held(&children, "j"), ["a/1"]);
    assert!(!children.observe("ns", "j").pods["a"].deleting);
    let epoch = children.epoch(POD);
    children.confirm_gone::<PodRecord>(POD, "ns", "a", "1", epoch);
    assert_eq!(held(&children, "j"), [""; 0]);
}

/// The garbage collector also looks for an owner only in the object's own namespace, and so deletes the foreign pod.
#[test]
fn a_pod_of_another_namespace_does_not_count_for_the_job_whose_uid_it_names() {
    let mut children = listed(&[pod("a", "1", "j", 9)]);
    let mut foreign = in_phase("a", "2", "j", 12, "Succeeded");
    foreign.metadata.namespace = Some("other".to_owned());
    children.applied::<PodRecord>(POD, &foreign);
    assert_eq!(held(&children, "j"), ["a/1"]);
    children.deleted::<PodRecord>(POD, &foreign);
    assert_eq!(held(&children, "j"), ["a/1"]);
    assert!(completed(&children, "j").is_empty());
}

#[test]
fn a_child_that_is_given_to_another_job_is_that_jobs_alone() {
    let mut children = listed(&[pod("a", "1", "j", 5)]);
    let concerned = children.applied::<PodRecord>(POD, &pod("a", "1", "k", 11));
    let owners: Vec<_> = concerned.iter().map(|owner| owner.uid.as_str()).collect();
    assert_eq!(owners, ["k", "j"]);
    assert_eq!(held(&children, "j"), [""; 0]);
    assert_eq!(held(&children, "k"), ["a/1"]);
    children.deleted::<PodRecord>(POD, &pod("a", "1", "k", 12));
    assert!(children.is_empty());
}

#[test]
fn a_pod_that_no_watch_shows_leaves_with_its_job() {
    let mut children = listed(&[pod("b", "2", "j", 5)]);
    let epoch = children.epoch(POD);
    children.found::<PodRecord>(POD, &pod("a", "1", "j", 6), epoch);
    assert_eq!(held(&children, "j"), ["a/1", "b/2"]);
    children.forget("ns", "j");
    assert_eq!(held(&children, "j"), ["b/2"]);
    children.deleted::<PodRecord>(POD, &pod("b", "2", "j", 7));
    assert!(children.is_empty());
}

#[test]
fn only_the_object_with_the_requested_uid_is_removed_as_gone() {
    let mut children = listed(&[pod("a", "2", "j", 5)]);
    let epoch = children.epoch(POD);
    children.confirm_gone::<PodRecord>(POD, "ns", "a", "1", epoch);
    assert_eq!(held(&children, "j"), ["a/2"], "its successor");
    children.confirm_gone::<PodRecord>(POD, "ns", "a", "2", epoch);
    assert!(held(&children, "j").is_empty());
}

#[test]
fn the_newer_of_two_responses_during_a_list_counts() {
    let mut children = listed(&[]);
    children.list_started(POD);
    answer(&mut children, &in_phase("a", "1", "j", 19, "Succeeded"));
    answer(&mut children, &in_phase("a", "1", "j", 17, "Running"));
    let phase = children.observe("ns", "j").pods["a"].phase;
    assert_eq!(phase, Phase::Succeeded);
}
