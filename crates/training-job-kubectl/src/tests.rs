//! The views of jobs in several states.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Event;
use serde_json::{Value, json};

use crate::change::{check_numbers, scaled_fields};
use crate::job_events::JobEvents;
use crate::list::{JobRow, table};
use crate::observe::ObservedJob;
use crate::situation::RoleCount;
use crate::status::{StatusView, tree};
use crate::target::{Target, only};
use crate::wait::State;
use crate::{events, logs};

mod states;

use states::{
    ended, failed, invalid, job, kinds, now, observed, of_all, pod, restarting, role, running, runs, stored,
    succeeded, suspended, unschedulable, waiting,
};

fn running_observed() -> ObservedJob {
    let mut pods = of_all("train", &runs(true));
    pods[3] = pod("train", "worker-1", runs(false));
    observed(running(), pods)
}

/// Returns the tree without terminal styles.
fn status(observed: &ObservedJob) -> String {
    let styled = tree::text(&StatusView::new(observed), observed.now, false);
    anstream::adapter::strip_str(&styled).to_string()
}

fn list() -> String {
    let all = [
        failed(),
        succeeded(),
        invalid(),
        suspended(),
        restarting(),
        running(),
        waiting(),
    ];
    let rows: Vec<JobRow> = all
        .into_iter()
        .map(|job| JobRow::new(&stored(job), now()))
        .collect();
    table(&rows, false, false)
}

/// Compares a text with the snapshot of a test.
fn same(test: &str, view: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_suffix(view);
    settings.bind(|| insta::assert_snapshot!(test, text));
}

#[test]
fn the_list_has_a_line_for_each_job() {
    same("the_list_has_a_line_for_each_job", "list", &list());
}

#[test]
fn each_state_has_its_tree() {
    same(
        "each_state_has_its_tree",
        "status-running",
        &status(&running_observed()),
    );
    same(
        "each_state_has_its_tree",
        "status-waiting",
        &status(&observed(waiting(), of_all("waits", &unschedulable()))),
    );
    let mut stops = pod("restarts", "worker-0", runs(true));
    stops.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T01:00:30Z")).unwrap());
    stops.metadata.deletion_grace_period_seconds = Some(30);
    same(
        "each_state_has_its_tree",
        "status-restarting",
        &status(&observed(restarting(), vec![stops])),
    );
    same(
        "each_state_has_its_tree",
        "status-suspended",
        &status(&observed(suspended(), Vec::new())),
    );
    let pods = vec![pod("broken", "worker-1", ended(137, "OOMKilled"))];
    same(
        "each_state_has_its_tree",
        "status-failed",
        &status(&observed(failed(), pods)),
    );
    let pods = vec![pod("done", "worker-0", ended(0, "Completed"))];
    same(
        "each_state_has_its_tree",
        "status-succeeded",
        &status(&observed(succeeded(), pods)),
    );
    same(
        "each_state_has_its_tree",
        "status-invalid",
        &status(&observed(invalid(), Vec::new())),
    );
    same(
        "each_state_has_its_tree",
        "status-new",
        &status(&observed(job("new", json!({})), Vec::new())),
    );
}

#[test]
fn equal_replicas_of_a_large_role_are_one_line() {
    let mut object = running();
    object["spec"]["mxReplicaSpecs"]["Worker"] = role(1_000, "ExitCode");
    let pods = (0..1_000).map(|index| {
        let status = if index == 512 { unschedulable() } else { runs(true) };
        pod("train", &format!("worker-{index}"), status)
    });
    let observed = observed(object, pods.collect());
    same(
        "equal_replicas_of_a_large_role_are_one_line",
        "status-large",
        &status(&observed),
    );
    let wide = tree::text(&StatusView::new(&observed), observed.now, true);
    assert_eq!(wide.matches(", pod train-worker-").count(), 1_000);
}

#[test]
fn pods_that_may_not_be_listed_are_not_counted_as_none() {
    let mut running = observed(running(), Vec::new());
    running.forbidden = vec!["pods"];
    let text = status(&running);
    assert!(
        text.contains("Worker 1/2 ready") && !text.contains("No pod"),
        "{text}"
    );
    let mut failed = observed(failed(), Vec::new());
    failed.forbidden = vec!["pods"];
    let text = status(&failed);
    assert!(
        text.contains("keeps the others.") && !text.contains(" left)"),
        "{text}"
    );
}

#[test]
fn a_log_that_is_gone_with_its_pod_has_its_end_in_the_status() {
    let observed = observed(failed(), Vec::new());
    let text = status(&observed);
    let next = "The job has ended, and none of its pods is left. Logs are deleted with their pods; the root cause has the end of \
                one.";
    assert!(text.contains(next) && !text.contains("training logs"), "{text}");
    let end = ", and a log is deleted with its pod; the status has the last failure (see: kubectl training status \
               MXJob/broken):\nworker-1: exit 137 (OOMKilled)\nstep 40/1000 loss=0.53\nKilled";
    assert_eq!(
        logs::none(true, false, &observed),
        format!("no pod of a failed replica exists{end}")
    );
    assert_eq!(
        logs::none(false, false, &observed),
        format!("no pod of the job exists{end}")
    );
    let waits = logs::none(true, false, &super::tests::observed(waiting(), Vec::new()));
    assert_eq!(
        waits,
        "no container of these replicas has started; see: kubectl training status MXJob/waits"
    );
}

#[test]
fn a_long_reason_keeps_its_beginning() {
    let mut waiting = observed(waiting(), of_all("waits", &unschedulable()));
    waiting.job.status.waiting_reason = format!("violates PodSecurity {}", "x".repeat(1_000));
    let text = status(&waiting);
    assert!(text.contains("The job waits: violates PodSecurity xxx"), "{text}");
}

#[test]
fn logs_that_no_node_serves_are_not_recommended() {
    let recommends = |node: &str, host: &str| {
        let mut pod = pod("broken", "worker-1", ended(137, "OOMKilled"));
        pod.spec.as_mut().unwrap().node_name = Some(node.to_owned());
        pod.status.as_mut().unwrap().host_ip = Some(host.to_owned());
        let text = status(&observed(failed(), vec![pod]));
        assert!(text.contains("The logs of failed replicas"), "{text}");
        text.contains("kubectl training logs")
    };
    assert!(!recommends("local-laptop", "127.0.0.1"));
    assert!(recommends("local", "127.0.0.1"));
    assert!(recommends("node-1", "10.0.0.7"));
}

#[test]
fn missing_rights_are_in_the_view() {
    let mut observed = running_observed();
    observed.forbidden = vec!["events"];
    assert!(status(&observed).contains("you are not allowed to list events"));
}

fn event(kind: &str, name: &str, uid: &str, time: &str) -> Event {
    let event = json!({
        "metadata": {}, "involvedObject": {"kind": kind, "name": name, "uid": uid}, "type": "Normal",
        "reason": "Reason", "message": "A message\nof two lines.", "lastTimestamp": time, "count": 2,
    });
    serde_json::from_value(event).unwrap()
}

#[test]
fn the_events_of_a_job_include_those_of_its_deleted_pods() {
    let observed = running_observed();
    let mut all = vec![
        event("Pod", "train-worker-1", "an earlier pod", "2026-01-01T00:20:00Z"),
        event(
            "Pod",
            "train-worker-1",
            "a pod of an earlier job",
            "2025-12-31T00:20:00Z",
        ),
        event("Pod", "train-worker-2", "of another job", "2026-01-01T00:20:00Z"),
        event(
            "Pod",
            "trainer-worker-0",
            "of another job",
            "2026-01-01T00:20:00Z",
        ),
        event("MXJob", "train", "train", "2026-01-01T00:00:01Z"),
    ];
    JobEvents::of(&observed.job, &observed.pods).keep(&mut all);
    same(
        "the_events_of_a_job_include_those_of_its_deleted_pods",
        "events",
        &events::table(&all, now()),
    );
}

#[test]
fn a_name_may_have_its_kind() {
    let kinds = kinds();
    let names = |argument: &str| {
        let target = Target::parse(argument, &kinds).unwrap();
        let kinds: Vec<String> = target.kinds.iter().map(|kind| kind.name().to_owned()).collect();
        (kinds.join(" "), target.name)
    };
    assert_eq!(
        names("train"),
        ("MXJob PyTorchJob".to_owned(), "train".to_owned())
    );
    for argument in [
        "mxjob/train",
        "MXJob/train",
        "mxjobs/train",
        "mxjobs.kubeflow.org/train",
        "mxjob.kubeflow.org/train",
    ] {
        assert_eq!(
            names(argument),
            ("MXJob".to_owned(), "train".to_owned()),
            "{argument}"
        );
    }
    for argument in ["", "mxjob/", "boss/train", "mxjob/a/b"] {
        assert!(Target::parse(argument, &kinds).is_err(), "{argument}");
    }
}

#[test]
fn a_wait_ends_when_its_state_is_reached_or_cannot_be() {
    let ends = |state: State, object: Value| state.verdict(&stored(object));
    for (state, object, met) in [
        (State::Running, waiting(), None),
        (State::Running, running(), Some(true)),
        (State::Running, succeeded(), Some(true)),
        (State::Running, failed(), Some(false)),
        (State::Succeeded, running(), None),
        (State::Succeeded, failed(), Some(false)),
        (State::Failed, failed(), Some(true)),
        (State::Failed, succeeded(), Some(false)),
        (State::Finished, restarting(), None),
        (State::Finished, failed(), Some(true)),
        (State::Suspended, suspended(), Some(true)),
        (State::Suspended, succeeded(), Some(false)),
    ] {
        let name = object["metadata"]["name"].clone();
        let ended = ends(state, object);
        assert_eq!(ended.map(|ended| ended.is_ok()), met, "{state:?} of {name}");
    }
    let why = ends(State::Succeeded, failed()).unwrap().unwrap_err();
    assert_eq!(why, "the job has failed: worker-1: exit 137 (OOMKilled)");
}

#[test]
fn a_number_that_the_kind_derives_is_not_scaled() {
    let wanted = BTreeMap::from([("worker", 3)]);
    let fields = scaled_fields(&stored(running()), &wanted).unwrap();
    assert_eq!(
        fields,
        [("spec.mxReplicaSpecs.Worker.replicas".to_owned(), json!(3))]
    );
    let job = stored(running());
    check_numbers(&job, &BTreeMap::from([("worker", 2)])).unwrap();
    let error = check_numbers(&job, &wanted).unwrap_err().to_string();
    assert_eq!(
        error,
        "--role worker=3: MXJob derives this number from other fields, and spec.mxReplicaSpecs.Worker.replicas has no \
         effect; change those fields with: kubectl edit mxjob.kubeflow.org/train --namespace ml"
    );
}

/// The job may have ended, and then no replica waits.
#[test]
fn an_object_that_cannot_be_changed_is_in_the_views() {
    let mut refused = observed(succeeded(), Vec::new());
    refused.job.status.waiting_reason = "FailedPatchSecret".to_owned();
    let text = status(&refused);
    let expected = "An object of the job cannot be changed, and the operator tries again: FailedPatchSecret";
    assert!(text.contains(expected), "{text}");
    assert_eq!(JobRow::new(&refused.job, now()).why, "FailedPatchSecret");
}

/// A job of many roles has one count, except in the wide table.
#[test]
fn the_replicas_of_many_roles_are_summed_up() {
    let mut row = JobRow::new(&stored(running()), now());
    row.roles = (0..7)
        .map(|n| RoleCount {
            role: format!("partition-{n}"),
            ready: 1,
            replicas: 2,
            succeeded: 1,
            failed: 0,
        })
        .collect();
    let [narrow, wide] = [false, true].map(|is_wide| table(&[row.clone()], false, is_wide));
    assert!(narrow.contains(" 7 roles 7/14 (7 succeeded) "), "{narrow}");
    assert!(wide.contains("partition-6 1/2 (1 succeeded)"), "{wide}");
}

#[test]
fn two_jobs_of_a_name_are_listed() {
    let title = |kind: &&str| format!("{kind}/train");
    let target = Target::parse("train", &kinds()).unwrap();
    assert_eq!(only(vec!["MXJob"], &target, "ml", title).unwrap(), "MXJob");
    let error = only(vec!["MXJob", "PyTorchJob"], &target, "ml", title).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("use one of MXJob/train, PyTorchJob/train"),
        "{error}"
    );
    let error = only(Vec::<&str>::new(), &target, "ml", title).unwrap_err();
    assert!(
        error.to_string().contains("kubectl training list --namespace ml"),
        "{error}"
    );
}

/// The page shows what the views print.
#[test]
fn the_page_for_users_has_the_output_of_the_views() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/users/kubectl-training.md");
    let mut page = std::fs::read_to_string(&file).unwrap();
    let old = page.clone();
    let pods = vec![pod("broken", "worker-1", ended(137, "OOMKilled"))];
    for (mark, text) in [
        ("list", list()),
        ("status", status(&running_observed())),
        (
            "status-waiting",
            status(&observed(waiting(), of_all("waits", &unschedulable()))),
        ),
        ("status-failed", status(&observed(failed(), pods))),
    ] {
        let begin = format!("<!-- {mark} -->\n```text\n");
        let (before, rest) = page
            .split_once(&begin)
            .unwrap_or_else(|| panic!("no mark {mark}"));
        let (_, after) = rest.split_once("```\n").unwrap();
        page = format!("{before}{begin}{text}```\n{after}");
    }
    match std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        true => std::fs::write(&file, page).unwrap(),
        false => assert!(
            page == old,
            "{} is stale; run this test with UPDATE_SNAPSHOTS=1",
            file.display()
        ),
    }
}
