//! The costs of rules, which only a real API server estimates.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use training_job::{TrainingJob, admission};
use training_job_testbed::cluster::ControlPlane;
use training_job_testbed::{GroupJob, ListJob, StepJob, ToyJob};

// region: cheap
const CHEAP: [&str; 4] = [
    r#"self.?mode.orValue("") in ["", "Fast"]"#,
    // 16 roles at most.
    r#"self.replicaSpecs.all(k, self.replicaSpecs[k].?replicas.orValue(1) < 100)"#,
    // Two loops, over a list with maxItems of strings with maxLength.
    r#"self.few.all(a, self.few.exists_one(b, a == b))"#,
    // A text without maxLength, once.
    r#"!has(self.mode) || self.mode.lowerAscii() == "fast""#,
];
const DEAR: [&str; 3] = [
    // A list without maxItems is taken for one of a million items.
    r#"self.names.all(a, a.lowerAscii() == a)"#,
    // The result of `.?` and `orValue` has no size limit, so the cost of a scan is unlimited.
    r#"self.?mode.orValue("").lowerAscii() == "fast""#,
    // Texts without maxLength in a loop within a loop.
    r#"self.replicaSpecs.all(k, self.replicaSpecs[k].template.spec.containers.all(c, !c.image.contains(":latest")))"#,
];
// endregion: cheap

/// Returns the errors of the server for a definition: field and message.
pub(crate) async fn refused(
    plane: &ControlPlane,
    definition: &CustomResourceDefinition,
) -> Vec<(String, String)> {
    let api = Api::<CustomResourceDefinition>::all(plane.client());
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match api.create(&params, definition).await {
        Ok(_) => Vec::new(),
        Err(kube::Error::Api(status)) => {
            let causes = status.details.map_or_else(Vec::new, |details| details.causes);
            assert!(!causes.is_empty(), "{}", status.message);
            causes
                .into_iter()
                .map(|cause| (cause.field, cause.message))
                .collect()
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns a definition with the fields of the page's rules, and one rule.
fn definition(rule: &str) -> CustomResourceDefinition {
    let text = json!({"type": "string"});
    let container = json!({"type": "object", "properties": {"image": text}});
    let role = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"},
        "template": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "containers": {"type": "array", "items": container},
        }}}},
    }});
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "x-kubernetes-validations": [{"rule": rule, "message": "no"}],
        "properties": {
            "mode": text,
            "names": {"type": "array", "items": text},
            "few": {"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 63}},
            "replicaSpecs": {"type": "object", "maxProperties": 16, "additionalProperties": role},
        },
    }}});
    let names = json!({"kind": "Cost", "listKind": "CostList", "plural": "costs", "singular": "cost"});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    serde_json::from_value(json!({
        "metadata": {"name": "costs.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }))
    .unwrap()
}

#[tokio::test]
async fn the_rules_that_the_page_calls_dear_are_refused() {
    let plane = ControlPlane::shared().await;
    for rule in CHEAP {
        assert_eq!(refused(plane, &definition(rule)).await, [], "{rule}");
    }
    for rule in DEAR {
        let causes = refused(plane, &definition(rule)).await;
        let (_, message) = causes.first().unwrap_or_else(|| panic!("{rule}"));
        assert!(message.contains("estimated rule cost"), "{rule}: {message}");
    }
    let roles = &["Worker"];
    let any = training_job::any_replica(&ToyJob::FRAMEWORK, roles);
    let named = training_job::roles_named(&ToyJob::FRAMEWORK, roles);
    assert_eq!(
        refused(plane, &definition(&format!("{any} && {named} == 1"))).await,
        []
    );
}

/// The kinds of this repository have their roles in maps; these have them in lists.
#[tokio::test]
async fn the_rules_of_lists_are_cheap_enough() {
    let plane = ControlPlane::shared().await;
    for definition in [
        admission::definition::<ListJob>(),
        admission::definition::<GroupJob>(),
        admission::definition::<StepJob>(),
    ] {
        assert_eq!(refused(plane, &definition.unwrap()).await, []);
    }
}
