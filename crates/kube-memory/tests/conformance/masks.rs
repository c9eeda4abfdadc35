//! Masks for values that differ between any two clusters, such as UIDs. The same value gets the same mask everywhere.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Members with the time of an action of the server.
const TIMES: [&str; 3] = ["creationTimestamp", "deletionTimestamp", "lastTransitionTime"];
/// Members that are not compared: `managedFields`, which the in-memory API has not, and a hash in discovery that clients do not
/// read.
const SKIPPED: [&str; 2] = ["managedFields", "storageVersionHash"];
/// The texts before the message of a JSON decoder. The message itself is cut off, because each decoder has its own.
const DECODERS: [&str; 5] = [
    "json: ",
    "error decoding patch: ",
    "couldn't get version/kind; json parse error: ",
    "\"<the object>\": ",
    " cannot be handled as a ",
];
/// The mask of a version that depends on other activity in a cluster.
const SOME_VERSION: &str = "<version>";

/// Returns true for an age in a table, such as `3s`.
fn is_age(text: &str) -> bool {
    text.strip_suffix('s')
        .is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The values masked so far in the responses of one server.
#[derive(Debug, Default)]
pub(crate) struct Masks {
    /// The values of one kind, each with its mask.
    seen: BTreeMap<&'static str, Vec<(String, String)>>,
    step: usize,
    count: usize,
}

impl Masks {
    /// Begins a step. Masks contain the step in which a value first appeared, so that a difference in one step does
    /// not shift later masks.
    pub(crate) fn begin_step(&mut self) {
        self.step += 1;
        self.count = 0;
    }

    /// Returns a copy of a response that may be compared with the other server's.
    pub(crate) fn hide(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(members) => self.hide_object(members),
            Value::Array(items) => items.iter().map(|item| self.hide(item)).collect(),
            Value::String(text) if is_age(text) => Value::from("<age>"),
            Value::String(text) => Value::from(self.hide_text(text)),
            other => other.clone(),
        }
    }

    fn hide_object(&mut self, members: &Map<String, Value>) -> Value {
        let mut hidden = Map::new();
        let mut keys: Vec<&String> = members.keys().collect();
        keys.sort();
        let base = members.get("generateName").and_then(Value::as_str);
        // The version of a list or a bookmark belongs to the cluster, not to an object.
        let is_cursor = members.contains_key("remainingItemCount") || !members.contains_key("name");
        for key in keys {
            let value = &members[key];
            // Descriptions of columns are texts for people, which kubectl does not print.
            let is_column = key == "description" && members.contains_key("priority");
            if SKIPPED.contains(&key.as_str()) || is_column {
                continue;
            }
            let text = value.as_str().unwrap_or_default();
            let masked = match key.as_str() {
                // The real server repeats some causes.
                "causes" => self.hide(&once(value)),
                _ if text.is_empty() => self.hide(value),
                "uid" => Value::from(self.mask("uid", text)),
                "resourceVersion" if is_cursor => Value::from(SOME_VERSION),
                "resourceVersion" => Value::from(self.mask("version", text)),
                key if TIMES.contains(&key) => Value::from("<time>"),
                "clusterIP" if text != "None" => Value::from(self.mask("address", text)),
                "continue" => self.hide(&open(text)),
                "name" => match base.and_then(|base| text.strip_prefix(base)) {
                    Some(suffix) if suffix.len() == 5 => Value::from(self.mask("generated", text)),
                    _ => self.hide(value),
                },
                _ => self.hide(value),
            };
            hidden.insert(key.clone(), masked);
        }
        Value::Object(hidden)
    }

    /// Returns the mask of a value: the same one on every call.
    fn mask(&mut self, kind: &'static str, text: &str) -> String {
        let seen = self.seen.entry(kind).or_default();
        if let Some((_, mask)) = seen.iter().find(|(known, _)| known == text) {
            return mask.clone();
        }
        self.count += 1;
        let mask = format!("<{kind} {}.{}>", self.step, self.count);
        seen.push((text.to_owned(), mask.clone()));
        mask
    }

    /// Masks values in a text that also appeared elsewhere.
    fn hide_text(&self, text: &str) -> String {
        let mut hidden = text.to_owned();
        for kind in ["uid", "address", "generated"] {
            for (known, mask) in self.seen.get(kind).into_iter().flatten() {
                hidden = hidden.replace(known, mask);
            }
        }
        if let (Some(start), Some(end)) = (hidden.find("patch: Invalid value: \"{"), hidden.rfind("}\": ")) {
            hidden.replace_range(start + 23..end + 1, "<the object>");
        } else if let (true, Some(end)) = (hidden.starts_with("Invalid value: \"{"), hidden.rfind("}\": ")) {
            hidden.replace_range(16..end + 1, "<the object>");
        }
        let ends = DECODERS
            .iter()
            .filter_map(|marker| Some(hidden.find(marker)? + marker.len()));
        let error_at = ends.min();
        if let Some(end) = error_at.filter(|_| !hidden.contains("strict decoding error")) {
            hidden.truncate(end);
        }
        if text.contains("ResourceVersion in record") {
            for (version, mask) in self.seen.get("version").into_iter().flatten() {
                hidden = hidden.replace(&format!("({version})"), &format!("({mask})"));
            }
        }
        if text.starts_with("too old resource version") || text.contains("Too large resource version: ") {
            let runs = hidden.split_inclusive(|c: char| !c.is_ascii_digit());
            hidden = runs
                .map(|run| match run.trim_start_matches(|c: char| c.is_ascii_digit()) {
                    rest if rest.len() < run.len() => format!("{SOME_VERSION}{rest}"),
                    _ => run.to_owned(),
                })
                .collect();
        }
        hidden
    }
}

/// Returns a list without duplicates.
fn once(list: &Value) -> Value {
    let mut kept: Vec<Value> = Vec::new();
    for item in list.as_array().into_iter().flatten() {
        if !kept.contains(item) {
            kept.push(item.clone());
        }
    }
    Value::from(kept)
}

/// Returns the content of a continue token, with its version masked.
fn open(token: &str) -> Value {
    let decoded = decode(token).and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let Some(mut value) = decoded else {
        return Value::from(token);
    };
    if value["rv"].as_i64().is_some_and(|version| version > 0) {
        value["rv"] = Value::from(SOME_VERSION);
    }
    value
}

/// Decodes base 64 in its form for URLs.
fn decode(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for digit in text.trim_end_matches('=').bytes() {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_value_has_the_same_mask() {
        let mut masks = Masks::default();
        let object = |uid: &str, owner: &str| json!({"metadata": {"uid": uid, "ownerReferences": [{"name": "b", "uid": owner}]}});
        let one = masks.hide(&object("u1", "u2"));
        let mut others = Masks::default();
        assert_eq!(one, others.hide(&object("x", "y")));
        assert_ne!(others.hide(&object("x", "x")), masks.hide(&object("u1", "u2")));
        assert_eq!(
            masks.hide(&json!("the UID (u2) is not u1")),
            json!("the UID (<uid 0.1>) is not <uid 0.2>")
        );
    }

    #[test]
    fn numbers_in_texts_are_versions_only_where_versions_are_spoken_of() {
        let masks = Masks::default();
        assert_eq!(
            masks.hide_text("too old resource version: 1 (77)"),
            "too old resource version: <version> (<version>)"
        );
        assert_eq!(masks.hide_text("at most 63 bytes"), "at most 63 bytes");
    }

    #[test]
    fn a_continue_token_is_opened() {
        let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiJhXHUwMDAwIn0";
        let content = json!({"v": "meta.k8s.io/v1", "rv": "<version>", "start": "a\u{0}"});
        assert_eq!(open(token), content);
    }
}
