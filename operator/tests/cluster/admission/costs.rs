//! The costs of rules as estimated by `training_job::testing`, and by a real API server.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Map, Value, json};
use training_job_testbed::cluster::ControlPlane;
use training_job_testing::{RuleCost, rule_costs};

/// The most that a rule may cost.
const MAX_COST: u64 = 10_000_000;

/// Rules on an object of these fields, of every construction that the estimate supports.
const RULES: &[&str] = &[
    // Constants, fields, comparisons.
    "self.count > 3",
    "self.count == 3 || self.count == self.other",
    "self.text == 'abc' && self.text != 'abcdefghijklmnopqrstuvwxyz'",
    "self.text < self.short",
    "has(self.text) && has(self.nested.text)",
    "self.nested.text == self.text",
    "!self.flag",
    "self.flag ? self.text == 'a' : self.list == self.list",
    "self.count + self.other * 2 - 1 < 10",
    "self.real < 0.5",
    "self.either == 3",
    // Optionals.
    "self.?count.orValue(1) != 0",
    "self.?text.orValue('') in ['', 'Fast']",
    "self.?nested.?text.hasValue()",
    "self.?nested.text.orValue('') == 'a'",
    "self.?list.orValue([]).size() > 0",
    "self.map[?'a'].orValue(3) > 2",
    "optional.of(self.count).hasValue()",
    // Strings.
    "self.text.size() < 3",
    "self.text.startsWith('abcdefghijklm')",
    "self.text.endsWith(self.short)",
    "self.text.contains(self.short)",
    "self.text.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",
    "self.word == 'a'",
    "self.text.lowerAscii() == 'abc'",
    "self.text.substring(1) == self.short",
    "self.text.trim().upperAscii() == 'A'",
    "self.text.split(',').size() > 2",
    "self.text.split(',').all(t, t == 'a')",
    "self.text.replace('a', 'bc') == self.text",
    "self.text.replace('abc', '') + self.short == self.text",
    "(self.text + self.short).size() > 3",
    "self.text.find('[0-9]+') == '1'",
    "self.text.findAll('[0-9]+').size() > 1",
    "string(self.count).size() > 2",
    "'%d is %s'.format([self.count, self.text]) != ''",
    "quantity(self.text).isLessThan(quantity('1'))",
    "isURL(self.text) && url(self.text).getHost() == 'a'",
    "self.date.getFullYear() > 2000",
    // Lists.
    "self.list.all(x, x == 'a')",
    "self.list.exists(x, x.startsWith('a'))",
    "self.list.exists_one(x, x == self.text)",
    "self.list.filter(x, x != 'a').size() > 1",
    "self.list.map(x, x + 'a').exists(x, x == self.text)",
    "self.list.map(x, x != 'b', x + 'a').size() == 1",
    "self.list.all(x, self.list.exists_one(y, y == x))",
    "self.list[0] == 'abcdefghijklmnopqrstuvwxyz'",
    "self.list.filter(x, x != 'a')[0] == 'abc'",
    "'a' in self.list",
    "self.numbers.max() > 3 && self.numbers.min() < 1",
    "self.numbers.sum() < 3",
    "self.list.isSorted()",
    "self.list.indexOf('a') > 1",
    "self.list.join(',').size() > 3",
    "(self.list + self.list).size() > 3",
    "[1, 2, 3].all(x, x < self.count)",
    "[self.text, 'a'].exists(x, x == 'abcdefghijklmn')",
    "self.objects.all(o, o.text == 'a' && o.count > 2)",
    "self.objects.all(o, o.?count.orValue(1) > 2)",
    "self.objects.filter(o, o.count > 2)[0].text == 'a'",
    // Maps.
    "self.map.all(k, self.map[k] > 2)",
    "self.map.all(k, k.lowerAscii() in ['a', 'b'])",
    "self.map.exists_one(k, k == self.text)",
    "'a' in self.map",
    "self.map.size() > 2",
    "self.map.map(k, self.map[k]).max() > 2",
    "[self.map.filter(k, k != 'a')].map(u, u.filter(k, u.all(j, k <= j))[0])[0] == 'abc'",
    "self.roles.all(k, self.roles[k].?count.orValue(1) <= 10000)",
    "self.roles.exists(k, k.lowerAscii() in ['a'] && self.roles[k].?count.orValue(1) != 0)",
    "self.roles.all(k, self.roles[k].text == 'abcdefghijkl')",
    "self.__namespace__ == 'abcdefghijklmnopqrstuvwxyz'",
];

fn fields() -> Value {
    let text = json!({"type": "string", "maxLength": 50});
    let object = json!({"type": "object", "properties": {"text": text, "count": {"type": "integer"}}});
    json!({
        "count": {"type": "integer"}, "other": {"type": "integer"}, "flag": {"type": "boolean"},
        "real": {"type": "number"}, "either": {"x-kubernetes-int-or-string": true, "maxLength": 9},
        "text": text, "short": {"type": "string", "maxLength": 7}, "word": {"type": "string", "enum": ["a", "bcd"]},
        "date": {"type": "string", "format": "date-time"}, "namespace": text,
        "nested": object,
        "list": {"type": "array", "maxItems": 11, "items": text},
        "numbers": {"type": "array", "maxItems": 11, "items": {"type": "integer"}},
        "objects": {"type": "array", "maxItems": 13, "items": object},
        "map": {"type": "object", "maxProperties": 16, "additionalProperties": {"type": "integer"}},
        "roles": {"type": "object", "maxProperties": 16, "additionalProperties": object},
    })
}

/// A definition with a field for each of these: a list of so many objects with the fields, and the rule.
fn definition<'r>(lists: impl IntoIterator<Item = (&'r str, u64)>) -> CustomResourceDefinition {
    let list = |(n, (rule, items)): (usize, (&str, u64))| {
        let rules = json!([{"rule": rule, "message": "no"}]);
        let item = json!({"type": "object", "properties": fields(), "x-kubernetes-validations": rules});
        (
            format!("rule{n:03}"),
            json!({"type": "array", "maxItems": items, "items": item}),
        )
    };
    of(lists.into_iter().enumerate().map(list).collect())
}

fn of(spec: Map<String, Value>) -> CustomResourceDefinition {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"kind": "Cost", "listKind": "CostList", "plural": "costs", "singular": "cost"});
    serde_json::from_value(json!({
        "metadata": {"name": "costs.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }))
    .unwrap()
}

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

/// The causes that are about the list of a rule, but for those that all rules have together.
fn about(n: usize, causes: &[(String, String)]) -> Vec<&str> {
    let list = format!(".properties[rule{n:03}].");
    let causes = causes
        .iter()
        .filter(|(field, message)| field.contains(&list) && !message.contains(" total "));
    causes.map(|(_, message)| message.as_str()).collect()
}

/// The server has no size for what `.?` gives.
#[tokio::test]
async fn what_has_no_bound_is_refused_as_estimated() {
    let plane = ControlPlane::shared().await;
    for (rule, list, dear) in [
        (
            "self.list.all(k, k.?text.orValue('').lowerAscii() == 'a')",
            "objects",
            true,
        ),
        ("self.list.all(k, k.?text.orValue('') == 'a')", "objects", false),
        (
            "self.list.all(k, has(k.text) && k.text.lowerAscii() == 'a')",
            "objects",
            false,
        ),
        (
            "self.list.all(k, self.list.exists_one(j, j.?text.orValue('') == k.?text.orValue('')))",
            "objects",
            true,
        ),
        (
            "quantity(self.?text.orValue('1')).isLessThan(quantity('2'))",
            "objects",
            true,
        ),
    ] {
        let mut fields = fields();
        fields["list"] = fields[list].clone();
        let rules = json!([{"rule": rule, "message": "no"}]);
        let object = json!({"type": "object", "properties": fields, "x-kubernetes-validations": rules});
        let definition = of([("rule000".to_owned(), object)].into_iter().collect());
        let causes = refused(plane, &definition).await;
        assert_eq!(!about(0, &causes).is_empty(), dear, "{rule}: {causes:?}");
        let estimate = &rule_costs(&definition)[0];
        assert_eq!(estimate.cost > MAX_COST, dear, "{estimate:?}");
    }
}

#[tokio::test]
async fn a_rule_is_taken_on_one_side_of_the_limit_and_refused_on_the_other() {
    let plane = ControlPlane::shared().await;
    let each = rule_costs(&definition(RULES.iter().map(|rule| (*rule, 1))));
    assert_eq!(each.len(), RULES.len());
    let sizes = || {
        RULES
            .iter()
            .zip(&each)
            .map(|(rule, each)| (*rule, MAX_COST / each.cost.max(1)))
    };
    let wrong = |rule: &&RuleCost| !rule.errors.is_empty();
    assert_eq!(each.iter().filter(wrong).collect::<Vec<_>>(), [&each[0]; 0]);
    let taken = refused(plane, &definition(sizes())).await;
    let refused = refused(plane, &definition(sizes().map(|(rule, items)| (rule, items + 1)))).await;
    let mut wrong = Vec::new();
    for (n, rule) in each.iter().enumerate() {
        let (taken, refused) = (about(n, &taken), about(n, &refused));
        let dear = |messages: &[&str]| matches!(messages, [one] if one.contains("estimated rule cost exceeds budget"));
        if !taken.is_empty() || !dear(&refused) {
            let RuleCost { expression, cost, .. } = rule;
            wrong.push(format!(
                "{expression}: {cost}\n  below: {taken:?}\n  above: {refused:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        each.len(),
        wrong.join("\n")
    );
}

/// Lists and maps without a bound, of objects of several sizes, around rules of costs on both sides of the limit.
#[tokio::test]
async fn what_is_in_a_list_without_a_bound_is_counted_as_often_as_a_request_has_room() {
    let plane = ControlPlane::shared().await;
    let mut spec = Map::new();
    for (required, step) in [
        (json!([]), 1),
        (json!(["text"]), 5),
        (json!(["text", "nested", "flag"]), 9),
    ] {
        for sums in 0..13 {
            let rule = format!("self.count{} > 3", " + 1".repeat(sums * step));
            let rules = json!([{"rule": rule, "message": "no"}]);
            let (mut fields, required) = (fields(), required.clone());
            fields["nested"]["required"] = json!(["count"]);
            let object = json!({"type": "object", "required": required, "properties": fields, "x-kubernetes-validations": rules});
            let (list, map) = (
                json!({"type": "array", "items": object}),
                json!({"type": "object", "additionalProperties": object}),
            );
            for within in [list, map] {
                spec.insert(format!("rule{:03}", spec.len()), within);
            }
        }
    }
    let definition = of(spec);
    let causes = refused(plane, &definition).await;
    let estimates = rule_costs(&definition);
    let dear: Vec<bool> = estimates
        .iter()
        .map(|estimate| estimate.cost > MAX_COST)
        .collect();
    let refused: Vec<bool> = (0..dear.len()).map(|n| !about(n, &causes).is_empty()).collect();
    assert_eq!(dear, refused, "{estimates:#?}");
    assert!(dear.contains(&true) && dear.contains(&false));
    let all: u64 = estimates.iter().map(|estimate| estimate.cost).sum();
    let together = causes
        .iter()
        .any(|(_, message)| message.contains("rule cost total for entire OpenAPIv3 schema exceeds"));
    assert_eq!(all > 100_000_000, together, "{all}");
}

/// A message is made once, however long the list is that its rule is in.
#[tokio::test]
async fn an_expression_of_a_message_costs_itself() {
    let plane = ControlPlane::shared().await;
    for (message, dear) in [
        ("self.text + self.text", false),
        ("self.?text.orValue('').lowerAscii()", true),
    ] {
        let rules = json!([{"rule": "self.flag", "messageExpression": message}]);
        let object = json!({"type": "object", "properties": fields(), "x-kubernetes-validations": rules});
        let list = json!({"type": "array", "maxItems": 1_000_000, "items": object});
        let definition = of([("rule000".to_owned(), list)].into_iter().collect());
        let causes = refused(plane, &definition).await;
        assert_eq!(!about(0, &causes).is_empty(), dear, "{message}: {causes:?}");
        let estimates = rule_costs(&definition);
        assert_eq!(estimates[1].expression, message);
        assert_eq!(estimates[1].cost > MAX_COST, dear, "{estimates:?}");
    }
}
