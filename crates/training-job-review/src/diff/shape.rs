//! Reduces an object of a cluster to the fields that a job sets.
//!
//! The API server and admission plug-ins add defaults, tolerations and tokens to objects. Therefore only the fields
//! that the rendered object has as well are kept.

use serde_json::{Map, Value};
use training_job::validate::amount;

use crate::fields::item_key;

/// The fields whose values are quantities.
const QUANTITY_FIELDS: [&str; 5] = ["limits", "requests", "sizeLimit", "divisor", "minResources"];

/// Returns the parts of `object` that at least one of `shapes` has. Returns the whole object if there are no shapes.
pub fn reduced_to(object: &Value, shapes: &[&Value]) -> Value {
    match (object, shapes) {
        (_, []) => object.clone(),
        (Value::Object(members), _) => {
            let kept = members.iter().filter_map(|(key, member)| {
                let of_member: Vec<&Value> = shapes.iter().filter_map(|s| s.get(key)).collect();
                let part = match key.as_str() {
                    key if QUANTITY_FIELDS.contains(&key) => quantities(member, &of_member),
                    "tolerations" => tolerations(member, &of_member),
                    _ => reduced_to(member, &of_member),
                };
                (!of_member.is_empty()).then(|| (key.clone(), part))
            });
            Value::Object(kept.collect::<Map<_, _>>())
        }
        (Value::Array(items), _) => Value::Array(list(items, shapes)),
        _ => object.clone(),
    }
}

/// Removes the tolerations of node conditions that admission adds.
fn tolerations(all: &Value, shapes: &[&Value]) -> Value {
    let of_node = |item: &&Value| {
        item["key"]
            .as_str()
            .is_some_and(|k| k.starts_with("node.kubernetes.io/"))
    };
    let is_ours = |item: &&Value| {
        shapes
            .iter()
            .any(|shape| shape.as_array().is_some_and(|s| s.contains(item)))
    };
    let items = all.as_array().into_iter().flatten();
    Value::Array(
        items
            .filter(|item| !of_node(item) || is_ours(item))
            .cloned()
            .collect(),
    )
}

/// Reduces quantities. A quantity that equals a shape's is replaced by the shape's, because the API server normalizes
/// them.
fn quantities(value: &Value, shapes: &[&Value]) -> Value {
    if let Value::Object(members) = value {
        let kept = members.iter().filter_map(|(key, member)| {
            let of_member: Vec<&Value> = shapes.iter().filter_map(|s| s.get(key)).collect();
            (!of_member.is_empty()).then(|| (key.clone(), quantities(member, &of_member)))
        });
        return Value::Object(kept.collect());
    }
    let number = |value: &Value| match value {
        Value::String(text) => amount(text),
        value => value.as_f64(),
    };
    let same = shapes
        .iter()
        .find(|shape| number(shape).is_some() && number(shape) == number(value));
    same.map_or_else(|| value.clone(), |shape| (*shape).clone())
}

fn list(items: &[Value], shapes: &[&Value]) -> Vec<Value> {
    let lists: Vec<&Vec<Value>> = shapes.iter().filter_map(|s| s.as_array()).collect();
    let of_shapes = lists.iter().flat_map(|list| list.iter());
    let Some(key) = item_key(items.iter().chain(of_shapes)) else {
        // Without a key, items are matched by position.
        let at = |(n, item)| {
            let same: Vec<&Value> = lists.iter().filter_map(|list| list.get(n)).collect();
            reduced_to(item, &same)
        };
        return items.iter().enumerate().map(at).collect();
    };
    let kept = items.iter().filter_map(|item| {
        let same = lists
            .iter()
            .filter_map(|list| list.iter().find(|i| i[key] == item[key]));
        let same: Vec<&Value> = same.collect();
        // The cluster added items that are in no shape.
        (!same.is_empty()).then(|| reduced_to(item, &same))
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn additions_of_the_cluster_are_removed() {
        let render = json!({"spec": {
            "containers": [{"name": "mxnet", "image": "a", "resources": {"limits": {"cpu": "0.5"}}}],
            "tolerations": [{"operator": "Exists"}],
        }});
        let live = json!({"spec": {
            "dnsPolicy": "ClusterFirst",
            "containers": [
                {"name": "mxnet", "image": "a", "imagePullPolicy": "Always", "resources": {"limits": {"cpu": "500m"}}},
                {"name": "istio-proxy", "image": "b"},
            ],
            "tolerations": [{"operator": "Exists"}, {"key": "node.kubernetes.io/not-ready", "tolerationSeconds": 300}],
        }});
        assert_eq!(reduced_to(&live, &[&render]), render);
    }

    #[test]
    fn differences_are_kept() {
        let render = json!({"args": ["new"], "containers": [{"name": "mxnet", "image": "new"}]});
        let stored =
            json!({"args": ["0.5"], "containers": [{"name": "mxnet", "image": "old"}, {"name": "side"}]});
        let live = json!({"args": ["0.50", "x"], "containers": [{"name": "mxnet", "image": "old"}, {"name": "side"}]});
        assert_eq!(reduced_to(&live, &[&render, &stored]), live);
        assert_eq!(reduced_to(&live, &[]), live);
    }
}
