//! The values that the author of a job decides, with defaults applied, so that a value that is written out is no
//! difference from the default.

use serde_json::{Value, json};
use training_job::render::decode;
use training_job::validate::{Policy, other_manager, validate_any};
use training_job::{FieldErrors, Kind, Role, Settings};

/// The fields that may identify an item of a list. The first that all items have is used.
const ITEM_KEYS: [&str; 6] = ["name", "mountPath", "devicePath", "containerPort", "port", "key"];

/// Names of values, such as `worker.replicas`, with the values as text. Unset values are missing.
pub(crate) type Fields = Vec<(String, String)>;

/// Returns the fields of a job: first those of the whole job, then those of its roles.
pub fn fields(kind: &Kind, job: &Value, settings: &Settings) -> Result<Fields, FieldErrors> {
    let job = decode(kind, job)?;
    let valid = validate_any(kind, &*job, settings)?;
    let mut fields = Fields::new();
    if let Some((_, manager)) = other_manager(&*valid.job) {
        fields.push(("managedBy".to_owned(), manager));
    }
    of_policy(&valid.policy, &mut fields);
    for role in valid.topology.roles.iter().filter(|role| role.replicas > 0) {
        of_role(role, &mut fields);
    }
    Ok(fields)
}

fn of_policy(policy: &Policy, fields: &mut Fields) {
    let values = [
        ("suspend", json!(policy.suspend)),
        ("backoffLimit", json!(policy.backoff_limit)),
        ("activeDeadlineSeconds", json!(policy.active_deadline_seconds)),
        ("restartScope", json!(policy.restart_scope)),
        ("failurePolicy", json!(policy.failure)),
        ("successPolicy", json!(policy.success)),
        ("cleanPodPolicy", json!(policy.clean_pods)),
        ("ttlSecondsAfterFinished", json!(policy.ttl_seconds)),
        ("sidecarGracePeriodSeconds", json!(policy.sidecar_grace_seconds)),
        ("stableAddress", json!(policy.stable_address)),
    ];
    for (name, value) in values {
        add(name.to_owned(), &value, fields);
    }
}

fn of_role(role: &Role<'_>, fields: &mut Fields) {
    let name = |field: &str| format!("{}.{field}", role.slug);
    add(
        name(role.definition.replicas_field),
        &json!(role.replicas),
        fields,
    );
    add(name("restartPolicy"), &json!(role.restart_policy), fields);
    let mut template = json!(role.spec.template);
    let mut spec = template["spec"].take();
    // The values of the framework's container come first, under the name of the role alone.
    let main = role
        .container
        .and_then(|n| Some(spec["containers"].as_array_mut()?.remove(n)));
    if let Some(Value::Object(mut main)) = main {
        main.remove("name");
        for field in ["image", "command", "args", "env", "resources"] {
            main.remove(field)
                .iter()
                .for_each(|value| add(name(field), value, fields));
        }
        add(role.slug.clone(), &Value::Object(main), fields);
    }
    add(role.slug.clone(), &spec, fields);
    add(name("metadata"), &template["metadata"], fields);
}

/// Adds the values inside a value, each under its path. Items of a list that have names are fields of these names.
fn add(path: String, value: &Value, fields: &mut Fields) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (name, member) in members {
                add(format!("{path}.{name}"), member, fields);
            }
        }
        Value::Array(items) => match item_key(items.iter()) {
            Some(key) => {
                for item in items {
                    let path = format!("{path}.{}", text(&item[key]));
                    add_item(path, key, item, fields);
                }
            }
            None => fields.push((path, value.to_string())),
        },
        scalar => fields.push((path, text(scalar))),
    }
}

fn add_item(path: String, key: &str, item: &Value, fields: &mut Fields) {
    let members = item.as_object().into_iter().flatten();
    for (name, member) in members.filter(|(name, _)| *name != key) {
        match (key, name.as_str()) {
            // A variable of the environment.
            ("name", "value") => add(path.clone(), member, fields),
            _ => add(format!("{path}.{name}"), member, fields),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the field that identifies the items of a list, if there are items and all of them have it.
pub(crate) fn item_key<'i>(items: impl Iterator<Item = &'i Value> + Clone) -> Option<&'static str> {
    items.clone().next()?;
    ITEM_KEYS
        .into_iter()
        .find(|key| items.clone().all(|item| item.get(key).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_named_by_the_path_of_their_owner() {
        let value = json!({
            "env": [{"name": "LR", "value": "0.1"}, {"name": "KEY", "valueFrom": {"secretKeyRef": {"key": "a", "name": "b"}}}],
            "args": ["a", "b"],
            "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}],
            "unset": null,
        });
        let mut fields = Fields::new();
        add("worker".to_owned(), &value, &mut fields);
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            fields,
            [
                r#"worker.args=["a","b"]"#,
                "worker.env.LR=0.1",
                "worker.env.KEY.valueFrom.secretKeyRef.key=a",
                "worker.env.KEY.valueFrom.secretKeyRef.name=b",
                "worker.volumes.data.emptyDir.sizeLimit=1Gi",
            ]
        );
    }
}
