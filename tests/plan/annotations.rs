//! Annotations that stand for fields of the run policy. Clients with the Go operator's types drop these fields.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use training_job::api::RunPolicy;
use training_job::api::labels::Keys;
use training_job::validate::annotations::AnnotatedField;
use training_job::{Settings, TrainingJob, render, validate};
use training_job_testbed::ToyJob;

use crate::harness::{PlanHarness, Stories};

/// Returns a job with this run policy, all of it in fields.
fn in_fields(policy: &Value) -> PlanHarness {
    let mut w = PlanHarness::train("Scheduler=1:OnFailure Worker=3:OnFailure", "");
    w.edit(|job| job.spec.run_policy = Some(serde_json::from_value(policy.clone()).unwrap()));
    w
}

/// Returns the same job as written by a client with the Go operator's types, with annotations in place of the fields.
fn in_annotations(policy: &Value, quote: impl Fn(&Value) -> String) -> PlanHarness {
    let mut typed = policy.clone();
    let mut annotations = BTreeMap::new();
    for field in RunPolicy::ANNOTATED_FIELDS {
        if let Some(value) = typed.as_object_mut().unwrap().remove(field) {
            let text = value.as_str().map_or_else(|| quote(&value), str::to_owned);
            annotations.insert(Keys::DEFAULT.annotation_of(field), text);
        }
    }
    let mut w = in_fields(&typed);
    w.edit(|job| job.metadata.annotations = Some(annotations));
    w
}

fn annotate(w: &mut PlanHarness, field: &str, text: &str) {
    w.edit(|job| {
        let annotations = job.metadata.annotations.get_or_insert_default();
        annotations.insert(Keys::DEFAULT.annotation_of(field), text.to_owned());
    });
}

/// Returns values of a field. A field without values fails the test below.
fn values(field: &str) -> Vec<Value> {
    match field {
        "failurePolicy" => vec![
            json!({"maxRestarts": 1}),
            json!({"maxRestarts": 2, "windowSeconds": 60}),
            json!({"rules": [{"action": "FailJob", "roles": ["Worker"], "onExitCodes": {"values": [3]}}]}),
            json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}),
        ],
        "successPolicy" => vec![json!({}), json!({"operator": "Any", "roles": ["Worker"]})],
        "restartScope" => vec![json!("Replica"), json!("Role"), json!("Job")],
        "layout" => vec![json!("Plain"), json!("Compact")],
        "stableAddress" => vec![json!(true), json!(false)],
        "sidecarGracePeriodSeconds" => vec![json!(0), json!(60)],
        "progress" => vec![
            json!({}),
            json!({"stalledAfterSeconds": 60, "onStall": "Fail", "watch": "All"}),
        ],
        _ => Vec::new(),
    }
}

fn policies() -> impl Strategy<Value = Value> {
    let fields = RunPolicy::ANNOTATED_FIELDS.map(|field| {
        let values = values(field);
        assert!(!values.is_empty(), "{field} has no values to try");
        (Just(field), prop::option::of(prop::sample::select(values)))
    });
    let limits = prop::option::of(0..3i32);
    (fields.to_vec(), limits).prop_map(|(fields, limit)| {
        let mut policy = json!({});
        for (field, value) in fields {
            if let Some(value) = value {
                policy[field] = value;
            }
        }
        if let Some(limit) = limit {
            policy["backoffLimit"] = limit.into();
        }
        policy
    })
}

proptest! {
    /// A job has the same pods and the same life, whichever form its policy has.
    #[test]
    fn annotations_have_the_effect_of_their_fields(policy in policies(), codes in prop::collection::vec((0..4usize, 0..4usize), 0..6)) {
        let mut harnesses = [
            in_fields(&policy),
            in_annotations(&policy, ToString::to_string),
            in_annotations(&policy, |value| render::text::yaml(value).unwrap()),
        ];
        let rendered = harnesses.each_ref().map(|w| {
            let valid = validate(&w.job, &Settings::default()).unwrap();
            render::all(&valid).values().unwrap()
        });
        // The job itself has other annotations, but the rendered objects are the same.
        prop_assert_eq!(&rendered[1], &rendered[0]);
        prop_assert_eq!(&rendered[2], &rendered[0]);
        let lives = harnesses.each_mut().map(|w| {
            w.reconcile().all_running();
            for (pod, code) in &codes {
                let names = w.pod_names();
                // A pod in parentheses is terminating.
                if let Some(name) = names.get(*pod).filter(|name| !name.starts_with('(')) {
                    w.pod(name).exits([0, 1, 3, 137][*code]);
                }
                w.reconcile().finish_deletions().reconcile().all_running();
            }
            (w.status(), w.pod_names(), w.service_names())
        });
        prop_assert_eq!(&lives[1], &lives[0]);
        prop_assert_eq!(&lives[2], &lives[0]);
    }

    /// With any text in an annotation, the job is valid or has an error that names the annotation.
    #[test]
    fn whatever_an_annotation_has_is_understood_or_named(field in prop::sample::select(RunPolicy::ANNOTATED_FIELDS.to_vec()), text in any_text()) {
        let mut w = in_fields(&json!({}));
        annotate(&mut w, field, &text);
        let prefix = format!("metadata.annotations[{}]", Keys::DEFAULT.annotation_of(field));
        for error in w.errors() {
            prop_assert!(error.starts_with(&prefix), "{error} of {text:?}");
        }
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,40}",
        "[a-zA-Z{}\\[\\]:,&*\"' \n-]{0,60}",
        Just("[".repeat(20_000)),
        Just("{a: ".repeat(20_000)),
        Just("{maxRestarts: 1e400}".to_owned()),
        Just("{maxRestarts: 99999999999999999999}".to_owned()),
        Just("rules: [null]".to_owned()),
        Just("{rules: {}}".to_owned()),
        Just("---\n{}\n---\n{}".to_owned()),
        Just("&a {maxRestarts: 1, rules: *a}".to_owned()),
    ]
}

/// Fields, texts of their annotations, and the errors.
const ERRORS: &str = r#"
restartScope | replica | restart-scope]: unknown value "replica"; did you mean Replica? use one of Replica, Role, Job
layout | compact | layout]: unknown value "compact"; did you mean Compact? use one of Plain, Compact
failurePolicy | {maxRestart: 3} | failure-policy].maxRestart: unknown field; did you mean maxRestarts?
failurePolicy | {maxRestarts: '3'} | failure-policy].maxRestarts: must be an integer (is "3"); remove the quotes
failurePolicy | {windowSeconds: 60} | failure-policy].windowSeconds: requires maxRestarts; set maxRestarts or remove windowSeconds
failurePolicy | rules: [{action: FailJob, roles: [Wroker]}] | failure-policy].rules[0].roles[0]: ToyJob has no role Wroker; did you mean Worker? use one of Scheduler, Server, Worker
failurePolicy | three | failure-policy]: must be an object (is "three")
successPolicy | {operator: Some} | success-policy].operator: unknown value "Some"; use one of All, Any
"#;

#[test]
fn errors_of_annotations_name_the_annotation() {
    for row in ERRORS.lines().skip(1) {
        let [field, text, error] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let mut w = in_fields(&json!({}));
        annotate(&mut w, field, text);
        let error = format!("metadata.annotations[training.kubeflow.org/{error}");
        assert_eq!(w.errors(), [error], "{row}");
    }
    for (text, named) in [
        ("{maxRestarts: 3", "unclosed bracket"),
        ("&a {maxRestarts: 3}", "anchor"),
        ("{}\n---\n{}", "document"),
    ] {
        let mut w = in_fields(&json!({}));
        annotate(&mut w, "failurePolicy", text);
        let [error] = &w.errors()[..] else {
            panic!("{:?}", w.errors())
        };
        let start = "metadata.annotations[training.kubeflow.org/failure-policy]: must be JSON or YAML: ";
        let reason = error.strip_prefix(start).and_then(|rest| {
            rest.strip_suffix("; use the field's value as JSON, or as YAML without anchors")
        });
        assert!(reason.is_some_and(|reason| reason.contains(named)), "{error}");
    }
}

#[test]
fn a_field_and_its_annotation_may_not_differ() {
    for (field, value) in RunPolicy::ANNOTATED_FIELDS
        .iter()
        .flat_map(|f| values(f).into_iter().map(move |v| (f, v)))
    {
        for other in values(field) {
            let mut policy = json!({});
            policy[field] = value.clone();
            let mut w = in_fields(&policy);
            annotate(
                &mut w,
                field,
                &other.as_str().map_or_else(|| other.to_string(), str::to_owned),
            );
            let differs = format!(
                "metadata.annotations[{}]: must have the same value as spec.runPolicy.{field}; change or remove one of them",
                Keys::DEFAULT.annotation_of(field)
            );
            let expected = if value == other { vec![] } else { vec![differs] };
            assert_eq!(w.errors(), expected, "{value} {other}");
        }
    }
}

/// Go clients write unset fields this way, and users may leave them empty.
#[test]
fn an_empty_annotation_stands_for_nothing() {
    for field in RunPolicy::ANNOTATED_FIELDS {
        let mut w = in_fields(&json!({"restartScope": ""}));
        for text in ["", " \n"] {
            annotate(&mut w, field, text);
            assert_eq!(w.errors(), [""; 0], "{field}");
        }
    }
    let mut w = in_fields(&json!({"restartScope": ""}));
    annotate(&mut w, "restartScope", "Replica");
    assert_eq!(w.errors(), [""; 0], "the empty field is not set");
}

#[test]
fn an_annotation_that_is_changed_counts_as_the_field_would() {
    let mut w = in_fields(&json!({}));
    w.reconcile().all_running();
    annotate(&mut w, "failurePolicy", "{maxRestarts: 0}");
    assert_eq!(w.pod("worker-0").exits(1).reconcile().state(), "Created Failed");
}

/// The field cannot be changed, but the API server does not validate the annotation.
#[test]
fn a_layout_is_not_changed_while_pods_run() {
    for (before, after) in [("Plain", "Compact"), ("Compact", "Plain")] {
        let mut w = in_annotations(&json!({"layout": before}), ToString::to_string);
        w.reconcile().all_running();
        annotate(&mut w, "layout", after);
        let plan = w.plan();
        assert!(plan.refused, "{plan:?}");
        let message = format!(
            "ToyJob job failed validation: metadata.annotations[training.kubeflow.org/layout]: must not change while pods \
             run, because they were created for the layout {before} and find each other by its names; set {before}, or suspend \
             the job first"
        );
        assert_eq!(
            plan.events.iter().map(|e| &e.message).collect::<Vec<_>>(),
            [&message]
        );
        assert!(!plan.changes_children() && plan.status.is_none(), "{plan:?}");
        assert_eq!(w.state(), "Created Running");
        w.suspend(true).reconcile().finish_deletions().reconcile();
        w.suspend(false).reconcile().all_running();
        assert_eq!(w.state(), "Created Running");
        let compact = w.service_names() == ["hosts"];
        assert_eq!(compact, after == "Compact", "{:?}", w.service_names());
    }
}

#[test]
fn a_layout_is_changed_while_all_pods_are_being_deleted() {
    let mut w = in_annotations(&json!({"layout": "Plain"}), ToString::to_string);
    w.reconcile().all_running();
    annotate(&mut w, "layout", "Compact");
    for pod in w.pod_names() {
        assert!(w.plan().refused, "before {pod} is deleted");
        w.pod(&pod).deleted_by_user();
    }
    assert!(!w.plan().refused);
}

#[test]
fn each_annotation_has_the_name_of_its_field() {
    let all: Vec<_> = AnnotatedField::of(&ToyJob::FRAMEWORK).collect();
    let named: Vec<_> = all
        .iter()
        .map(|of| (of.field.as_str(), of.annotation.as_str()))
        .collect();
    assert_eq!(
        named,
        [
            ("runPolicy.failurePolicy", "training.kubeflow.org/failure-policy"),
            ("runPolicy.successPolicy", "training.kubeflow.org/success-policy"),
            ("runPolicy.restartScope", "training.kubeflow.org/restart-scope"),
            ("runPolicy.layout", "training.kubeflow.org/layout"),
            ("runPolicy.stableAddress", "training.kubeflow.org/stable-address"),
            (
                "runPolicy.sidecarGracePeriodSeconds",
                "training.kubeflow.org/sidecar-grace-period-seconds"
            ),
            ("runPolicy.progress", "training.kubeflow.org/progress"),
        ]
    );
}
