//! Failure and success policies of a job, which take precedence over its restart policies and its kind's rule.

use crate::harness::{Act, PlanHarness, Stories};

/// Returns a job of a scheduler and three workers with these rules.
fn ruled(policy: &str, rules: &str) -> PlanHarness {
    PlanHarness::train(
        &format!("Scheduler=1:{policy} Worker=3:{policy}"),
        &format!("failurePolicy: {{rules: [{rules}]}}"),
    )
}

fn on(codes: &str, action: &str) -> String {
    format!("{{action: {action}, onExitCodes: {{operator: In, values: [{codes}]}}}}")
}

#[test]
fn the_first_rule_that_matches_decides_whatever_the_restart_policy() {
    for policy in ["Never", "OnFailure", "ExitCode"] {
        let rules = [
            on("42", "FailJob"),
            on("42, 43", "RestartReplica"),
            on("44", "Ignore"),
        ]
        .join(", ");
        let state = |code: i32| {
            let mut w = ruled(policy, &rules).started();
            w.pod("worker-1").exits(code).reconcile();
            (w.state(), w.status().restart_count)
        };
        assert_eq!(state(42), ("Created Failed".to_owned(), 0), "{policy}");
        for code in [43, 44] {
            let (state, count) = state(code);
            assert!(!state.contains("Failed"), "{policy} {code}");
            assert_eq!(count, i32::from(code == 43), "{policy} {code}");
        }
    }
}

#[test]
fn failures_without_a_rule_follow_the_restart_policy() {
    for (policy, state) in [("Never", "Failed"), ("OnFailure", "Restarting")] {
        let mut w = ruled(policy, &on("42", "FailJob")).started();
        w.pod("worker-1").exits(1);
        assert_eq!(w.reconcile().state(), format!("Created {state}"), "{policy}");
    }
}

#[test]
fn a_rule_that_fails_the_job_is_reported() {
    let mut w = ruled("OnFailure", &on("42", "FailJob")).started();
    w.pod("worker-1").exits(42).reconcile();
    assert_eq!(
        w.message_of("Failed"),
        "ToyJob job has failed because a rule of its failure policy matches a failed Worker."
    );
    assert_eq!(w.status().failure.unwrap().exit_code, Some(42));
}

#[test]
fn actions_decide_the_scope_of_a_restart() {
    // This kind restarts as a whole unless a rule has another action.
    for (action, restarted) in [("RestartReplica", 1), ("RestartRole", 3), ("RestartJob", 4)] {
        let mut w = ruled("OnFailure", &on("42", action)).started();
        w.pod("worker-1").exits(42);
        w.reconcile().finish_deletions().reconcile();
        let new = w.attempts().values().filter(|attempt| **attempt == 1).count();
        assert_eq!(new, restarted, "{action}");
        assert_eq!(w.attempts().len(), 4, "{action}");
    }
}

#[test]
fn replicas_that_restart_together_by_a_rule_are_made_together() {
    let mut w = ruled("OnFailure", &on("42", "RestartJob"))
        .with_scope(training_job::api::RestartScope::Replica)
        .started();
    w.pod("worker-1").exits(42).reconcile();
    // The failed pod is gone, and one of the other pods is still terminating.
    w.remove_pod("job-scheduler-0");
    w.remove_pod("job-worker-2");
    assert!(
        w.reconcile().attempts().values().all(|attempt| *attempt == 0),
        "the new ones wait for it"
    );
    w.finish_deletions().reconcile();
    assert!(w.attempts().values().all(|attempt| *attempt == 1));
}

#[test]
fn rules_are_about_roles_containers_and_conditions() {
    let exits: Act = |w| w.pod("worker-0").exits(9);
    let evicted: Act = |w| w.pod("worker-0").evicted();
    let disrupted: Act = |w| w.pod("worker-0").disrupted();
    let of_worker = "roles: [worker]";
    let of_disruption = "onPodConditions: [{type: DisruptionTarget}]";
    let table: [(&str, Act, bool); 10] = [
        (of_worker, exits, true),
        (of_worker, |w| w.pod("scheduler-0").exits(9), false),
        (
            "onExitCodes: {containerName: toy, operator: NotIn, values: [8]}",
            exits,
            true,
        ),
        ("onExitCodes: {operator: NotIn, values: [9]}", exits, false),
        (of_disruption, exits, false),
        (of_disruption, evicted, true),
        (of_disruption, disrupted, true),
        // A drain deletes pods.
        (of_disruption, |w| w.pod("worker-0").vanishes(), true),
        (
            "onPodConditions: [{type: example.com/Preheated}]",
            disrupted,
            false,
        ),
        (
            "onPodConditions: [{type: DisruptionTarget, status: 'False'}]",
            evicted,
            false,
        ),
    ];
    for (row, (rule, happens, fails)) in table.into_iter().enumerate() {
        let mut w = ruled("OnFailure", &format!("{{action: FailJob, {rule}}}")).started();
        let state = happens(&mut w).reconcile().state();
        assert_eq!(state.contains("Failed"), fails, "row {row}: {rule}");
    }
}

#[test]
fn exit_codes_are_those_of_the_frameworks_container_unless_a_rule_names_another() {
    let fails = |rule: &str, last: bool| {
        let w = ruled("OnFailure", rule);
        let mut w = w.with_container("logs", false).started();
        if last {
            w.pod("worker-0").restarts_in("logs", 7);
        }
        w.pod("worker-0").main_container_ends(42);
        let status = w.pod("worker-0").object().status.as_mut().unwrap();
        status.phase = Some("Failed".to_owned());
        let logs = status
            .container_statuses
            .as_mut()
            .unwrap()
            .iter_mut()
            .find(|c| c.name == "logs");
        let end = serde_json::json!({"terminated": {"exitCode": if last { 0 } else { 143 }}});
        logs.unwrap().state = Some(serde_json::from_value(end).unwrap());
        w.reconcile();
        w.state().contains("Failed")
    };
    // After the training a sidecar ends by the kubelet's SIGTERM.
    let not_42 = "{action: FailJob, onExitCodes: {operator: NotIn, values: [42]}}";
    assert!(!fails(not_42, false) && !fails(not_42, true));
    assert!(fails(&on("42", "FailJob"), false));
    let of_logs = "{action: FailJob, onExitCodes: {containerName: logs, operator: In, values: [143]}}";
    assert!(fails(of_logs, false) && !fails(of_logs, true));
}

#[test]
fn the_exit_code_of_a_disrupted_pod_matches_no_rule() {
    // The result is the same whether the operator observes the deletion or the end first.
    let rules = "{action: FailJob, onExitCodes: {operator: NotIn, values: [42]}}";
    for seen_first in [true, false] {
        let mut w = ruled("OnFailure", rules).started();
        w.pod("worker-0").deleted_by_user();
        if seen_first {
            w.reconcile();
        }
        w.after(5).pod("worker-0").exits(143).reconcile();
        assert_eq!(w.state(), "Created Restarting", "{seen_first}");
    }
    let mut w = ruled("OnFailure", rules).started();
    w.pod("worker-0")
        .becomes_disruption_target("TerminationByKubelet");
    w.after(5).pod("worker-0").exits_as_it_is_taken(143);
    assert_eq!(w.reconcile().state(), "Created Restarting");
}

#[test]
fn ignored_failures_count_against_no_limit() {
    let rule = "{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}";
    let policy = format!("backoffLimit: 1, failurePolicy: {{maxRestarts: 1, rules: [{rule}]}}");
    let mut w = PlanHarness::train("Scheduler=1:OnFailure Worker=2:OnFailure", &policy).started();
    for _ in 0..5 {
        w.pod("worker-0").evicted().reconcile();
        assert_eq!(w.state(), "Created Restarting");
        w.all_replaced();
    }
    assert_eq!(w.status().restart_count, 0);
    for state in ["Restarting", "Failed"] {
        w.pod("worker-0").exits(1);
        assert_eq!(w.reconcile().state(), format!("Created {state}"));
        w.all_replaced();
    }
}

#[test]
fn restarts_are_limited_in_all_or_within_some_time() {
    let run = |policy: &str, pause: i64| {
        let policy = format!("failurePolicy: {{{policy}}}");
        let mut w = PlanHarness::train("Scheduler=1:OnFailure Worker=2:OnFailure", &policy).started();
        for restarts in 0..9 {
            w.after(pause).pod("worker-0").exits(1).reconcile();
            if w.state().contains("Failed") {
                return (restarts, w.status().failure.unwrap().message);
            }
            w.all_replaced();
        }
        (9, String::new())
    };
    let end = "; the last failure: Error";
    assert_eq!(
        run("maxRestarts: 2", 1000),
        (2, format!("maxRestarts 2 is used up{end}"))
    );
    let window = "maxRestarts: 2, windowSeconds: 100";
    assert_eq!(
        run(window, 10),
        (2, format!("maxRestarts 2 within 100 s is used up{end}"))
    );
    // The second restart comes after a pause of ten seconds.
    assert_eq!(run(window, 44).0, 2, "three within 100 s");
    assert_eq!(run(window, 45).0, 9, "never more than two within 100 s");
    assert_eq!(run("maxRestarts: 0", 1).0, 0);
    assert_eq!(run("maxRestarts: 0, windowSeconds: 5", 10).0, 0);
}

#[test]
fn restarts_in_place_have_happened_when_they_are_counted() {
    for limit in [0, 1, 3] {
        for window in ["", ", windowSeconds: 9"] {
            let policy = format!("failurePolicy: {{maxRestarts: {limit}{window}}}");
            let mut w = PlanHarness::train("Worker=1:OnFailure", &policy).started();
            for restarts in 1..=limit + 1 {
                assert_eq!(w.state(), "Created Running", "{policy}");
                w.pod("worker-0").restarts_in_place(1);
                assert_eq!(w.reconcile().status().restart_count, restarts, "{policy}");
            }
            assert_eq!(w.state(), "Created Failed", "{policy}");
        }
    }
}

#[test]
fn the_times_of_restarts_that_are_remembered_are_bounded() {
    let policy = "failurePolicy: {maxRestarts: 3, windowSeconds: 1}";
    let mut w = PlanHarness::train("Scheduler=1:OnFailure Worker=2:OnFailure", policy).started();
    for _ in 0..9 {
        w.after(10).pod("worker-0").exits(1).all_replaced();
    }
    assert_eq!(w.status().recovery.restarted.len(), 4);
    assert_eq!(w.status().restart_count, 9);
}

#[test]
fn a_kubelet_leaves_restarts_to_the_rules() {
    let policy = |policy: &str, rules: &str| {
        let mut w = ruled(policy, rules);
        w.reconcile();
        w.pods["job-worker-0"]
            .spec
            .clone()
            .unwrap()
            .restart_policy
            .unwrap()
    };
    assert_eq!(policy("OnFailure", ""), "OnFailure");
    assert_eq!(policy("OnFailure", &on("3", "FailJob")), "Never");
}

#[test]
fn the_success_policy_selects_the_deciding_roles() {
    let mut all = PlanHarness::train("Scheduler=1 Worker=2", "successPolicy: {roles: [Worker]}").started();
    all.pod("scheduler-0").succeeds();
    assert_eq!(
        all.reconcile().state(),
        "Created Running",
        "the scheduler would decide"
    );
    all.pod("worker-0").succeeds();
    assert_eq!(all.reconcile().state(), "Created Running");
    all.pod("worker-1").succeeds();
    assert_eq!(all.reconcile().state(), "Created Succeeded");

    let mut any = PlanHarness::train(
        "Scheduler=1 Worker=2",
        "successPolicy: {operator: Any, roles: [worker]}",
    )
    .started();
    any.pod("worker-1").succeeds();
    assert_eq!(any.reconcile().state(), "Created Succeeded");

    let mut both = PlanHarness::train("Scheduler=1 Worker=1", "successPolicy: {}").started();
    both.pod("scheduler-0").succeeds();
    assert_eq!(both.reconcile().state(), "Created Running");
    both.pod("worker-0").succeeds();
    assert_eq!(both.reconcile().state(), "Created Succeeded");
}
