//! Finds the right place of a misplaced field: another place in the schema with a field of this name.

use std::collections::BTreeSet;

use kube_schema::quantity::is_quantity;
use kube_schema::{Schema, Step, Type, field, item};
use serde_json::Value;

use crate::api::schema::object_meta;

/// The maximum number of places that are named. A field that more places could take has no known place. The same
/// place in several roles or items counts once.
const MAX_PLACES: usize = 2;

/// The maximum number of places that are named if all are the same place in several roles or items.
const MAX_ALIKE_PLACES: usize = 4;

/// The maximum number of entries of a map or a list that are searched. No more would be named.
const MAX_SEARCHED_ENTRIES: usize = 16;

/// The maps of resource quantities.
const RESOURCE_MAPS: [&str; 3] = ["limits", "requests", "minResources"];

/// A place in an object: its schema, its value and its path.
#[derive(Clone)]
struct Place<'a> {
    schema: &'a Schema,
    value: Option<&'a Value>,
    path: String,
    /// The path with one name for all keys of maps and all items of lists.
    pattern: String,
}

impl<'a> Place<'a> {
    fn root(schema: &'a Schema, object: &'a Value) -> Self {
        Self {
            schema,
            value: Some(object),
            path: String::new(),
            pattern: String::new(),
        }
    }

    /// Returns the place one step below this one, if the schema has it.
    fn step(&self, step: &Step<'_>) -> Option<Self> {
        let (schema, value, path) = match step {
            Step::Member(key) => (
                self.schema.member(key)?,
                self.value.and_then(|v| v.get(key)),
                field(&self.path, key),
            ),
            Step::Item(index) => (
                self.schema.items()?,
                self.value.and_then(|v| v.get(index)),
                item(&self.path, *index),
            ),
        };
        let pattern = match step {
            Step::Member(key) if self.schema.property(key).is_some() => field(&self.pattern, key),
            Step::Member(_) | Step::Item(_) => item(&self.pattern, 0),
        };
        Some(Self {
            schema,
            value: value.filter(|value| !value.is_null()),
            path,
            pattern,
        })
    }

    /// Returns the places one step below this one: all properties that `moved` could create, and the keys and items
    /// that the object has.
    fn below(&self, moved: &Moved<'_>) -> Vec<Self> {
        let properties = self.schema.properties().map(|(name, _)| name);
        let properties = properties.filter(|name| self.is_open_to(name, moved));
        let mut steps: Vec<_> = properties.map(Step::Member).collect();
        match self.value {
            Some(Value::Object(members)) if self.schema.map_values().is_some() => {
                steps.extend(
                    members
                        .keys()
                        .take(MAX_SEARCHED_ENTRIES)
                        .map(|key| Step::Member(key)),
                );
            }
            Some(Value::Array(items)) => {
                steps.extend((0..items.len().min(MAX_SEARCHED_ENTRIES)).map(Step::Item))
            }
            _ => {}
        }
        let mut places: Vec<_> = steps.iter().filter_map(|step| self.step(step)).collect();
        // A definition leaves the metadata of the object itself to the API server.
        if self.path.is_empty() {
            places.push(Self {
                schema: object_meta(),
                value: self.value.and_then(|v| v.get("metadata")),
                path: "metadata".to_owned(),
                pattern: "metadata".to_owned(),
            });
        }
        places
    }

    /// Returns true if a property can be created here to hold the moved field.
    fn is_open_to(&self, name: &str, moved: &Moved<'_>) -> bool {
        if self.path.is_empty() {
            // The operator writes the status.
            return !matches!(name, "metadata" | "status");
        }
        // A new object needs its other required fields as well.
        let is_complete = self.value.is_some()
            || self.schema.required().iter().all(|required| {
                required == name || required == moved.key || moved.beside.contains(&required.as_str())
            });
        // The resources of a whole pod are rare. Usually its containers have them.
        let is_of_containers = name == "resources"
            && self.schema.property("containers").is_some()
            && self.value.is_none_or(|value| value.get(name).is_none());
        is_complete && !is_of_containers
    }

    /// Returns true for a map or a list, such as roles and containers.
    fn is_collection(&self) -> bool {
        self.schema.map_values().is_some() || self.schema.items().is_some()
    }
}

/// A field in a wrong place.
struct Moved<'a> {
    key: &'a str,
    /// The fields next to it.
    beside: Vec<&'a str>,
}

/// Returns the paths at which `value`, which is under a key at `steps` in `object`, may belong.
///
/// The nearest places are returned. Places within the parent value come first, then those within its parent, and so
/// on. Among these the least deep count, and places that take all of the value are preferred. No path is returned if
/// there are many.
pub(super) fn places(root: &Schema, object: &Value, steps: &[Step<'_>], value: &Value) -> Vec<String> {
    let Some((Step::Member(key), around)) = steps.split_last() else {
        return Vec::new();
    };
    // Too many nested objects have these two fields.
    if matches!(*key, "apiVersion" | "kind") {
        return Vec::new();
    }
    let mut place = Place::root(root, object);
    let mut bases = vec![place.clone()];
    for step in around {
        let Some(next) = place.step(step) else { break };
        place = next;
        bases.push(place.clone());
    }
    let parent = place.value.and_then(Value::as_object);
    let moved = Moved {
        key,
        beside: parent
            .into_iter()
            .flat_map(|m| m.keys().map(String::as_str))
            .collect(),
    };
    if is_amount(key, value) {
        return nearest(&bases, &moved, &|place| {
            let maps = RESOURCE_MAPS.into_iter().filter(|map| {
                let values = place.schema.property(map).and_then(Schema::map_values);
                values.is_some_and(|values| values.type_() == Some(Type::IntOrString))
            });
            maps.filter_map(|map| place.step(&Step::Member(map))).collect()
        });
    }
    // A misplaced name belongs to the metadata, because many other objects have a name.
    let is_named = |place: &Place<'_>| *key != "name" || place.pattern.ends_with("metadata");
    let field_that = |fits: &dyn Fn(&Schema) -> bool| {
        nearest(&bases, &moved, &|place| {
            let takes = place.schema.property(key).is_some_and(fits)
                && place.is_open_to(key, &moved)
                && is_named(place);
            if takes { vec![place.clone()] } else { Vec::new() }
        })
    };
    let whole = field_that(&|schema| schema.fits(value) && schema.check_value(value).is_empty());
    if whole.is_empty() {
        field_that(&|schema| schema.fits(value))
    } else {
        whole
    }
}

/// Returns true for a quantity under the name of a resource.
fn is_amount(key: &str, value: &Value) -> bool {
    let is_resource = matches!(key, "cpu" | "memory" | "ephemeral-storage")
        || key.starts_with("hugepages-")
        || key.contains('/');
    let is_quantity = match value {
        Value::String(text) => is_quantity(text),
        Value::Number(_) => true,
        _ => false,
    };
    is_resource && is_quantity
}

/// Returns the paths of the field in the places that `takers` finds. The least deep places below the innermost base
/// that has any are used.
///
/// A field in one role or container does not belong to another one, so the siblings of the entry around the field are
/// skipped.
fn nearest<'a>(
    bases: &[Place<'a>],
    moved: &Moved<'_>,
    takers: &dyn Fn(&Place<'a>) -> Vec<Place<'a>>,
) -> Vec<String> {
    let innermost = bases.last().map(|base| base.path.as_str());
    let mut searched = innermost.map(|path| field(path, moved.key)).unwrap_or_default();
    for base in bases.iter().rev() {
        if !base.is_collection() || Some(base.path.as_str()) == innermost {
            let found = nearest_below(base.clone(), &searched, moved, takers);
            if !found.is_empty() {
                return few(found, moved.key);
            }
        }
        searched.clone_from(&base.path);
    }
    Vec::new()
}

/// Does the same below one base. Skips the place with the path `searched` and everything below it.
fn nearest_below<'a>(
    base: Place<'a>,
    searched: &str,
    moved: &Moved<'_>,
    takers: &dyn Fn(&Place<'a>) -> Vec<Place<'a>>,
) -> Vec<Place<'a>> {
    let mut level = vec![base];
    while !level.is_empty() {
        let found: Vec<_> = level.iter().flat_map(takers).collect();
        if !found.is_empty() {
            return found;
        }
        let below = level.iter().flat_map(|place| place.below(moved));
        level = below.filter(|place| place.path != searched).collect();
    }
    Vec::new()
}

/// Returns the paths of a field in these places, or none if there are many.
fn few(places: Vec<Place<'_>>, key: &str) -> Vec<String> {
    let patterns: BTreeSet<_> = places.iter().map(|place| place.pattern.clone()).collect();
    let max = if patterns.len() == 1 {
        MAX_ALIKE_PLACES
    } else {
        MAX_PLACES
    };
    if patterns.len() > MAX_PLACES {
        return Vec::new();
    }
    places
        .iter()
        .take(max)
        .map(|place| field(&place.path, key))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        let amounts = json!({"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}});
        let source = json!({"type": "object", "required": ["disk", "site"], "properties": {
            "disk": {"type": "string"}, "site": {"type": "string"}, "cache": {"type": "string"},
        }});
        let container = json!({"type": "object", "properties": {
            "image": {"type": "string"},
            "name": {"type": "string"},
            "mode": {"type": "boolean"},
            "guard": {"type": "object", "properties": {"strict": {"type": "boolean"}}},
            "resources": {"type": "object", "properties": {"limits": amounts, "requests": amounts}},
        }});
        let template = json!({"type": "object", "properties": {
            "class": {"type": "string"},
            "guard": {"type": "object", "properties": {"group": {"type": "integer"}}},
            "overhead": amounts,
            "resources": {"type": "object", "properties": {"limits": amounts, "requests": amounts}},
            "containers": {"type": "array", "items": container},
            "volumes": {"type": "array", "items": {"type": "object", "properties": {"source": source}}},
        }});
        Schema::new(&json!({"type": "object", "properties": {
            "kind": {"type": "string"},
            "spec": {"type": "object", "properties": {
                "policy": {"type": "object", "properties": {
                    "limit": {"type": "integer"}, "mode": {"type": "string"}, "minResources": amounts,
                }},
                "roles": {"type": "object", "additionalProperties": {"type": "object", "properties": {
                    "count": {"type": "integer"}, "template": template,
                }}},
            }},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        }}))
    }

    /// Returns the places of a field at a path of keys and numbers.
    fn find(path: &str, value: Value) -> Vec<String> {
        let role = json!({"template": {"containers": [{"image": "x"}], "volumes": [{}]}});
        let object = json!({"kind": "K", "spec": {"roles": {"A": role, "B": role}}});
        let steps: Vec<_> = path
            .split(' ')
            .map(|step| step.parse().map_or(Step::Member(step), Step::Item))
            .collect();
        places(&schema(), &object, &steps, &value)
    }

    #[test]
    fn the_nearest_place_that_takes_the_value_is_found() {
        for (path, value, place) in [
            ("policy", json!({}), "spec.policy"),
            ("name", json!("a"), "metadata.name"),
            ("metadata policy", json!({}), "spec.policy"),
            ("spec roles policy", json!({}), "spec.policy"),
            ("spec roles A class", json!("a"), "spec.roles.A.template.class"),
            ("spec roles A limit", json!(1), "spec.policy.limit"),
            (
                "spec roles A image",
                json!("a"),
                "spec.roles.A.template.containers[0].image",
            ),
            ("spec roles A template count", json!(1), "spec.roles.A.count"),
            ("spec roles A name", json!("a"), "metadata.name"),
            // The type and the members of the value decide between two fields of one name.
            ("spec roles A mode", json!("a"), "spec.policy.mode"),
            (
                "spec roles A mode",
                json!(true),
                "spec.roles.A.template.containers[0].mode",
            ),
            (
                "spec roles A guard",
                json!({"strict": true}),
                "spec.roles.A.template.containers[0].guard",
            ),
            (
                "spec roles A guard",
                json!({"group": 1}),
                "spec.roles.A.template.guard",
            ),
            (
                "spec roles A guard",
                json!({"stirct": true}),
                "spec.roles.A.template.guard",
            ),
            (
                "spec roles A resources",
                json!({"limits": {"cpu": 1}}),
                "spec.roles.A.template.containers[0].resources",
            ),
            (
                "spec policy example.com/gpu",
                json!(1),
                "spec.policy.minResources[example.com/gpu]",
            ),
        ] {
            assert_eq!(find(path, value), [place], "{path}");
        }
    }

    #[test]
    fn resources_belong_to_containers() {
        let ask = |map: &str, key: &str| format!("spec.roles.A.template.containers[0].resources.{map}{key}");
        for at in [
            "spec roles A template",
            "spec roles A template containers 0",
            "spec roles A template containers 0 resources",
        ] {
            let found = find(&format!("{at} example.com/gpu"), json!(1));
            assert_eq!(
                found,
                [
                    ask("limits", "[example.com/gpu]"),
                    ask("requests", "[example.com/gpu]")
                ]
            );
            assert_eq!(
                find(&format!("{at} memory"), json!("1Gi")),
                [ask("limits", ".memory"), ask("requests", ".memory")]
            );
            // Other names are not keys of a map of amounts.
            assert_eq!(find(&format!("{at} shmSize"), json!("1Gi")), Vec::<String>::new());
        }
        assert_eq!(
            find("spec roles A template image", json!("x")),
            ["spec.roles.A.template.containers[0].image"]
        );
    }

    #[test]
    fn the_same_place_in_several_roles_is_named_for_each() {
        let each = ["spec.roles.A.template.class", "spec.roles.B.template.class"];
        assert_eq!(find("spec class", json!("a")), each);
        assert_eq!(
            find("spec roles count", json!(1)),
            ["spec.roles.A.count", "spec.roles.B.count"]
        );
        // A field in one role does not belong to another role.
        let role = json!({"template": {"containers": [{"image": "x"}]}});
        let object = json!({"spec": {"roles": {"A": {}, "B": role}}});
        let steps = ["spec", "roles", "A", "image"].map(Step::Member);
        assert_eq!(
            places(&schema(), &object, &steps, &json!("x")),
            Vec::<String>::new()
        );
        let roles: serde_json::Map<String, Value> = "abcdefg"
            .chars()
            .map(|name| (name.to_string(), role.clone()))
            .collect();
        let object = json!({"spec": {"roles": roles}});
        let found = places(
            &schema(),
            &object,
            &["spec", "image"].map(Step::Member),
            &json!("x"),
        );
        assert_eq!(found.len(), MAX_ALIKE_PLACES, "{found:?}");
    }

    #[test]
    fn the_first_of_many_roles_are_searched() {
        let role = json!({"template": {"containers": [{"image": "x"}]}});
        let found = |empty: usize| {
            let mut roles: serde_json::Map<String, Value> =
                (0..empty).map(|n| (format!("r{n:02}"), json!({}))).collect();
            roles.insert("z".to_owned(), role.clone());
            let object = json!({"spec": {"roles": roles}});
            places(
                &schema(),
                &object,
                &["spec", "image"].map(Step::Member),
                &json!("x"),
            )
        };
        assert_eq!(
            found(MAX_SEARCHED_ENTRIES - 1),
            ["spec.roles.z.template.containers[0].image"]
        );
        assert_eq!(found(MAX_SEARCHED_ENTRIES), Vec::<String>::new());
    }

    #[test]
    fn unlikely_places_are_not_suggested() {
        for (path, value) in [
            ("spec roles A other", json!(1)),
            // Fields of any object, and fields that only the operator writes.
            ("spec roles A template kind", json!("Pod")),
            ("spec roles A template apiVersion", json!("v1")),
            ("spec roles A template status", json!({})),
            ("spec phase", json!("Done")),
            // The object that could have the field requires other fields as well.
            ("spec roles A template cache", json!("none")),
        ] {
            assert_eq!(find(path, value), Vec::<String>::new(), "{path}");
        }
        let volume = json!({"disk": "a", "site": "b"});
        let object = json!({"spec": {"roles": {"A": {"template": {"volumes": [volume]}}}}});
        let steps = ["spec", "roles", "A", "template", "volumes"].map(Step::Member);
        let steps: Vec<_> = steps
            .into_iter()
            .chain([Step::Item(0), Step::Member("disk")])
            .collect();
        let place = "spec.roles.A.template.volumes[0].source.disk";
        assert_eq!(places(&schema(), &object, &steps, &json!("a")), [place]);
    }
}
