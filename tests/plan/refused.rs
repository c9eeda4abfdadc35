//! Jobs that are refused, with their errors.

use serde_json::{Value, json};
use training_job::Kind;
use training_job::api::labels::Keys;
use training_job::validate::manifest::check;
use training_job::validate::undecodable;
use training_job_testbed::ToyJob;

use crate::harness::{PlanHarness, Stories};

const WITH_RULES: &str = "Scheduler=1:OnFailure Worker=2:OnFailure";

/// Run policies, and the field and the text of their errors.
const ERRORS: &str = r#"
failurePolicy: {rules: [{}]} | failurePolicy.rules[0].action | must be set; use one of FailJob, RestartJob, RestartRole, RestartReplica, Ignore
failurePolicy: {rules: [{action: FailJob, onExitCodes: {values: []}}]} | failurePolicy.rules[0].onExitCodes.values | must have at least one exit code, each from 1 to 255; list the exit codes of failures
failurePolicy: {rules: [{action: FailJob, onExitCodes: {values: [0]}}]} | failurePolicy.rules[0].onExitCodes.values | must have at least one exit code, each from 1 to 255; list the exit codes of failures
failurePolicy: {rules: [{action: FailJob, onExitCodes: {values: [1, 256]}}]} | failurePolicy.rules[0].onExitCodes.values | must have at least one exit code, each from 1 to 255; list the exit codes of failures
failurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: Within, values: [1]}}]} | failurePolicy.rules[0].onExitCodes.operator | unknown value "Within"; use one of In, NotIn
failurePolicy: {rules: [{action: FailJob, onExitCodes: {containerName: other, values: [1]}}]} | failurePolicy.rules[0].onExitCodes.containerName | must name a container of the rule's roles (is "other"); use one of theirs or remove it
successPolicy: {roles: [Server]} | successPolicy.roles | must include a role with replicas, because the job would never end otherwise; name a role that has replicas
successPolicy: {operator: Some, roles: [Server]} | successPolicy.operator | unknown value "Some"; use one of All, Any
managedBy: somebody | managedBy | unknown value "somebody"; use one of kubeflow.org/training-operator, kueue.x-k8s.io/multikueue
"#;

#[test]
fn errors_of_a_policy_name_the_field_and_the_remedy() {
    for row in ERRORS.lines().skip(1) {
        let [policy, field, error] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let found = PlanHarness::train(WITH_RULES, policy).errors();
        assert_eq!(found, [format!("spec.runPolicy.{field}: {error}")], "{row}");
    }
}

#[test]
fn a_policy_without_errors_is_accepted() {
    for policy in [
        "failurePolicy: {rules: [{action: FailJob, onExitCodes: {values: [1, 255]}}]}",
        "failurePolicy: {rules: [{action: FailJob, onExitCodes: {containerName: toy, values: [1]}}]}",
        "failurePolicy: {rules: [{action: FailJob, onExitCodes: {containerName: '', values: [1]}}]}",
        "successPolicy: {roles: [Server, Worker]}",
        "successPolicy: {}",
        "managedBy: ''",
    ] {
        assert_eq!(
            PlanHarness::train(WITH_RULES, policy).errors(),
            [""; 0],
            "{policy}"
        );
    }
}

#[test]
fn lists_of_a_policy_have_a_maximum() {
    let list = |count: usize, item: &str| vec![item; count].join(", ");
    let rule = |matcher: &str| format!("failurePolicy: {{rules: [{{action: Ignore, {matcher}}}]}}");
    let rules = |count| format!("failurePolicy: {{rules: [{}]}}", list(count, "{action: Ignore}"));
    let codes = |count| rule(&format!("onExitCodes: {{values: [{}]}}", list(count, "1")));
    let conditions = |count| {
        rule(&format!(
            "onPodConditions: [{}]",
            list(count, "{type: DisruptionTarget}")
        ))
    };
    let roles = |count| rule(&format!("roles: [{}]", list(count, "Worker")));
    let of_success = |count| format!("successPolicy: {{roles: [{}]}}", list(count, "Worker"));
    type PolicyOf<'a> = &'a dyn Fn(usize) -> String;
    let lists: [(&str, usize, PolicyOf<'_>); 5] = [
        ("failurePolicy.rules", 20, &rules),
        ("failurePolicy.rules[0].onExitCodes.values", 64, &codes),
        ("failurePolicy.rules[0].onPodConditions", 20, &conditions),
        ("failurePolicy.rules[0].roles", 16, &roles),
        ("successPolicy.roles", 16, &of_success),
    ];
    for (field, max, policy) in lists {
        let errors = |count| PlanHarness::train(WITH_RULES, &policy(count)).errors();
        assert_eq!(errors(max), [""; 0], "{field}");
        let more = max + 1;
        assert_eq!(
            errors(more),
            [format!(
                "spec.runPolicy.{field}: must have at most {max} items (has {more})"
            )]
        );
    }
}

#[test]
fn a_job_for_another_controller_is_left_alone() {
    let mut w = PlanHarness::train(WITH_RULES, "managedBy: kueue.x-k8s.io/multikueue");
    w.reconcile();
    assert!(w.pods.is_empty() && w.services.is_empty(), "{:?}", w.pod_names());
    assert_eq!(w.state(), "");
    let mut w = PlanHarness::train(WITH_RULES, "managedBy: kubeflow.org/training-operator");
    w.reconcile();
    assert_eq!(w.pods.len(), 3);
}

#[test]
fn an_annotation_has_a_maximum_of_bytes() {
    let errors = |bytes: usize| {
        let mut w = PlanHarness::train(WITH_RULES, "");
        let key = Keys::DEFAULT.annotation_of("failurePolicy");
        let text = format!("{:bytes$}", "{maxRestarts: 1}");
        w.edit(|job| job.metadata.annotations = Some([(key, text)].into()));
        w.errors()
    };
    assert_eq!(errors(32_768), [""; 0]);
    let key = "metadata.annotations[training.kubeflow.org/failure-policy]";
    assert_eq!(
        errors(32_769),
        [format!(
            "{key}: must be at most 32768 bytes (has 32769); use the field's value as JSON, or as YAML without anchors"
        )]
    );
}

fn manifest_errors(manifest: &str) -> Vec<String> {
    let manifest = kube_manifest::parse(manifest).unwrap()[0].to_json();
    let found = check(&Kind::of::<ToyJob>(), &manifest).err().unwrap_or_default();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn all_nulls_of_a_manifest_are_one_warning() {
    let warnings = |limits: Value| {
        let container = json!({"name": "toy", "image": "i", "resources": {"limits": limits}});
        let job = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "ToyJob", "metadata": {"name": "a"},
            "spec": {"replicaSpecs": {"Worker": {"template": {"spec": {"containers": [container]}}}}},
        });
        let checked = check(&Kind::of::<ToyJob>(), &job).unwrap();
        checked.warnings.to_string()
    };
    let at = "spec.replicaSpecs.Worker.template.spec.containers[0].resources.limits";
    let start = format!("{at}.cpu: null is dropped by the API server, so no cpu is requested");
    assert_eq!(
        warnings(json!({"cpu": null})),
        format!("{start}; set a value or remove it")
    );
    assert_eq!(
        warnings(json!({"cpu": null, "example.com/gpu": null, "memory": null})),
        format!(
            "{start}, and 2 more nulls are: spec.containers[0].resources.limits[example.com/gpu], \
             spec.containers[0].resources.limits.memory; set a value or remove it"
        )
    );
}

const JOB_NAME: &str = "use at most 63 lower-case letters, digits and '-', starting with a letter and not ending with '-', \
                        such as my-job";

#[test]
fn an_error_of_a_manifest_names_the_place_where_its_user_wrote_it() {
    let job = |metadata: &str, spec: &str| {
        format!("{{apiVersion: kubeflow.org/v1, kind: ToyJob, metadata: {{{metadata}}}, spec: {{{spec}}}}}")
    };
    let worker = |containers: &str| {
        format!("replicaSpecs: {{Worker: {{template: {{spec: {{containers: [{containers}]}}}}}}}}")
    };
    let named = |containers: &str| job("name: job", &worker(containers));
    let good = worker("{name: toy, image: i}");
    let container = "spec.replicaSpecs.Worker.template.spec.containers[0]";
    for (manifest, errors) in [
        (job("name: job", &good), vec![]),
        (
            job("name: A", &good),
            vec![format!("metadata.name: must be a valid service name (is \"A\"); {JOB_NAME}")],
        ),
        (
            job("generateName: A-", &good),
            vec![format!("metadata.generateName: must be a valid service name (is \"A-xxxxx\"); {JOB_NAME}")],
        ),
        (
            job(&format!("name: job, {good}"), ""),
            vec!["metadata.replicaSpecs: unknown field; move it to spec.replicaSpecs".to_owned()],
        ),
        (
            job("name: job, runPolicy: {backoffLimit: 3}", &good),
            vec!["metadata.runPolicy: unknown field; move it to spec.runPolicy".to_owned()],
        ),
        (
            job("name: job", "replicaSpecs: {Worker: 5}"),
            vec!["spec.replicaSpecs.Worker: must be an object (is 5)".to_owned()],
        ),
        (
            job("name: job", "replicaSpecs: [5]"),
            vec!["spec.replicaSpecs: must be an object (is a list)".to_owned()],
        ),
        (
            named("{name: toy, image: i, resources: {limits: {memory: 2TB}}}"),
            vec![format!("{container}.resources.limits.memory: must be a quantity (is \"2TB\"); did you mean 2T or 2Ti?")],
        ),
        (
            named("{name: toy, image: i, command: python3 train.py --lr 0.1 -v yes}"),
            vec![format!(
                "{container}.command: must be a list (is \"python3 train.py --lr 0.1 -v yes\"); write [python3, train.py, --lr, \
                 \"0.1\", -v, \"yes\"]"
            )],
        ),
        (
            named("{name: toy, image: i, args: '--name \"a b\"'}"),
            vec![format!(
                "{container}.args: must be a list (is \"--name \\\"a b\\\"\"); write a list of words, such as [python3, train.py]"
            )],
        ),
        // A container without a name is taken for the framework's, unless that is there.
        (named("{image: i}"), vec![format!("{container}.name: must be set; set name: toy")]),
        (
            named("{name: other, image: i}, {image: i}"),
            vec!["spec.replicaSpecs.Worker.template.spec.containers[1].name: must be set; set name: toy".to_owned()],
        ),
        (
            named("{name: toy, image: i}, {image: i}"),
            vec![
                "spec.replicaSpecs.Worker.template.spec.containers[1].name: must be a valid container name (is \"\"); use at \
                 most 63 lower-case letters, digits and '-', with a letter or digit at both ends"
                    .to_owned(),
            ],
        ),
        (
            named("{image: 5}"),
            vec![
                format!("{container}.image: must be a string (is 5); put it in quotes"),
                format!("{container}.name: must be set; set name: toy"),
            ],
        ),
    ] {
        assert_eq!(manifest_errors(&manifest), errors, "{manifest}");
    }
}

#[test]
fn each_version_of_a_kind_has_a_schema() {
    let kind = Kind::of::<ToyJob>();
    assert!(
        kind.schemas()
            .get("kubeflow.org/v1")
            .is_some_and(|schema| schema.property("spec").is_some())
    );
    assert!(kind.schemas().get("kubeflow.org/v2").is_none());
}

#[test]
fn a_job_that_cannot_be_decoded_has_errors_with_fields() {
    let errors = |spec: Value| {
        undecodable(&Kind::of::<ToyJob>(), &json!({ "spec": spec })).map(|errors| errors.to_string())
    };
    assert_eq!(
        errors(json!({"replicaSpecs": {"Worker": {"replicas": "two"}}})).unwrap(),
        "spec.replicaSpecs.Worker.replicas: must be an integer (is \"two\")"
    );
    assert_eq!(errors(json!({"replicaSpecs": {}})), None);
}
