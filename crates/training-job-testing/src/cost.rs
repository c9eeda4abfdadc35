//! Estimates the maximum cost of a rule, as an API server does before it accepts the definition.
//!
//! Costs are those of cel-go's `checker/cost.go` and of `apiserver/pkg/cel/library/cost.go` in Kubernetes 1.35: about 1
//! for each step, with the largest sizes that the schema allows, times the number of values that have the rule.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, ValidationRule,
};

use kube_memory::rule_environment;

use super::estimate::CostEstimator;
use super::size::{self, Bound, MAX_REQUEST_BYTES};

/// The maximum cost of a rule.
pub(super) const MAX_RULE_COST: u64 = 10_000_000;
/// The maximum cost of all rules of a version together.
pub(super) const MAX_TOTAL_COST: u64 = 100_000_000;

/// The maximum cost of an expression, as an API server estimates it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCost {
    /// The version of the kind with the rule.
    pub version: String,
    /// The field with the rule, such as `spec.replicaSpecs[*].template`; empty for the object itself.
    pub path: String,
    /// The rule, or the expression of its message.
    pub expression: String,
    /// The estimate. The limits of an API server are 10,000,000 for a rule and 100,000,000 for all rules of a version.
    pub cost: u64,
    /// The bounds that the schema lacks, with the size that is assumed instead.
    pub missing: Vec<String>,
    /// The errors of the expression, for which an API server rejects it at any cost.
    pub errors: Vec<String>,
}

/// Returns the estimated cost of each rule of a definition, and of each expression of a message.
///
/// The estimate covers the language, Kubernetes' functions on strings, lists and regular expressions, and functions
/// that parse a string (`quantity`, `url`, `ip`, ...). Other functions cost 1 here; functions of the libraries `sets`
/// and `lists`, `cel.bind` and `validate` cost more on a server. Unknown fields are reported, but types are not
/// checked: only a server reports an expression of the wrong type.
///
/// ```
/// # use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
/// # let definition: CustomResourceDefinition = serde_json::from_value(serde_json::json!({"spec": {
/// #     "group": "example.com", "scope": "Namespaced", "names": {"kind": "Toy", "plural": "toys"},
/// #     "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
/// #         "type": "object", "properties": {"names": {
/// #             "type": "array", "items": {"type": "string"},
/// #             "x-kubernetes-validations": [{"rule": "self.all(n, n.startsWith('a'))", "message": "no"}],
/// #         }},
/// #     }}}],
/// # }})).unwrap();
/// let costs = training_job_testing::rule_costs(&definition);
/// assert_eq!(costs[0].missing, ["names has no maxItems, so 1048575 is assumed"]);
/// assert!(costs[0].cost > 1_048_575);
/// ```
pub fn rule_costs(definition: &CustomResourceDefinition) -> Vec<RuleCost> {
    let mut costs = Vec::new();
    for version in &definition.spec.versions {
        let schema = version.schema.as_ref();
        if let Some(root) = schema.and_then(|s| s.open_api_v3_schema.as_ref()) {
            let root = with_metadata(root);
            let place = Place {
                path: String::new(),
                times: Some(1),
                missing: BTreeSet::new(),
            };
            walk(&root, &place, &mut |schema, place, rule| {
                let message = rule.message_expression.as_deref();
                for (expression, times) in [(Some(rule.rule.as_str()), true), (message, false)] {
                    let Some(expression) = expression else { continue };
                    costs.push(RuleCost {
                        version: version.name.clone(),
                        ..estimate(schema, place, rule, expression, times)
                    });
                }
            });
        }
    }
    costs
}

/// Returns the schema with the type of the object's metadata that rules see, whatever the schema itself declares.
fn with_metadata(root: &JSONSchemaProps) -> JSONSchemaProps {
    let text = |own: Option<&JSONSchemaProps>| JSONSchemaProps {
        type_: Some("string".to_owned()),
        x_kubernetes_validations: own.and_then(|own| own.x_kubernetes_validations.clone()),
        ..JSONSchemaProps::default()
    };
    let mut root = root.clone();
    let fields = root.properties.get_or_insert_default();
    for name in ["apiVersion", "kind"] {
        let own = text(fields.get(name));
        fields.insert(name.to_owned(), own);
    }
    let metadata = fields.entry("metadata".to_owned()).or_default();
    metadata.type_ = Some("object".to_owned());
    let own = metadata.properties.take().unwrap_or_default();
    let names = ["name", "generateName"];
    metadata.properties = Some(names.map(|name| (name.to_owned(), text(own.get(name)))).into());
    root
}

/// The path of a schema and the number of its values.
struct Place {
    path: String,
    /// `None` if a list or map around the schema has no bound.
    times: Option<u64>,
    missing: BTreeSet<String>,
}

fn walk<'s>(
    schema: &'s JSONSchemaProps,
    place: &Place,
    found: &mut dyn FnMut(&'s JSONSchemaProps, &Place, &'s ValidationRule),
) {
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        found(schema, place, rule);
    }
    for (name, field) in schema.properties.iter().flatten() {
        let inner = Place {
            path: kube_schema::field(&place.path, name),
            times: place.times,
            missing: place.missing.clone(),
        };
        walk(field, &inner, found);
    }
    for inner in size::items(schema).into_iter().chain(size::values(schema)) {
        let Bound { max, missing } = size::bound(schema);
        let mut within = place.missing.clone();
        within.extend(missing.map(|bound| format!("{} has no {bound}", place.path)));
        let place = Place {
            path: format!("{}[*]", place.path),
            times: place
                .times
                .filter(|_| missing.is_none())
                .map(|t| t.saturating_mul(max)),
            missing: within,
        };
        walk(inner, &place, found);
    }
}

fn estimate(
    schema: &JSONSchemaProps,
    place: &Place,
    rule: &ValidationRule,
    expression: &str,
    times: bool,
) -> RuleCost {
    let (mut cost, mut missing, mut errors) = (0, BTreeSet::new(), Vec::new());
    match rule_environment().compile(expression) {
        Err(error) => errors.push(format!("cannot be parsed: {error}")),
        Ok(program) => {
            let mut estimator = CostEstimator::new(schema, &place.path, rule.optional_old_self == Some(true));
            cost = estimator.cost(program.expression()).cost;
            (missing, errors) = estimator.found();
        }
    }
    if times {
        let each = place
            .times
            .unwrap_or(MAX_REQUEST_BYTES / (size::smallest(schema) + 1));
        cost = cost.saturating_mul(each);
        missing.extend(place.missing.iter().cloned());
    }
    RuleCost {
        version: String::new(),
        path: place.path.clone(),
        expression: expression.to_owned(),
        cost,
        missing: missing.into_iter().collect(),
        errors,
    }
}
