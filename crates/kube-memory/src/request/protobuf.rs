//! Bodies in protobuf, which kubectl sends for the objects that it creates itself. They are converted to JSON.
//!
//! The fields of the few kinds that kubectl creates are in tables below. Other kinds are rejected with 415, and clients
//! have to send JSON.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

/// The media type of these bodies.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The bytes before the envelope.
const MAGIC: &[u8] = b"k8s\0";

/// The type of a field.
#[derive(Debug, Clone, Copy)]
enum Type {
    /// A string, left out if it is empty.
    Text,
    /// A number, left out if it is zero.
    Number,
    /// A number that may be zero.
    OptionalNumber,
    OptionalFlag,
    Texts,
    Message(&'static [Field]),
    Messages(&'static [Field]),
    TextMap,
    BytesMap,
    QuantityMap,
    IntOrString,
}

/// The number, the name in JSON and the type of a field.
type Field = (u64, &'static str, Type);

use Type::{
    BytesMap, IntOrString, Message, Messages, Number, OptionalFlag, OptionalNumber, QuantityMap, Text,
    TextMap, Texts,
};

const OWNER: &[Field] = &[
    (1, "kind", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "controller", OptionalFlag),
    (7, "blockOwnerDeletion", OptionalFlag),
];

/// Without what only a server sets.
const METADATA: &[Field] = &[
    (1, "name", Text),
    (2, "generateName", Text),
    (3, "namespace", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (11, "labels", TextMap),
    (12, "annotations", TextMap),
    (13, "ownerReferences", Messages(OWNER)),
    (14, "finalizers", Texts),
];

const METADATA_FIELD: Field = (1, "metadata", Message(METADATA));

const PRECONDITIONS: &[Field] = &[(1, "uid", Text), (2, "resourceVersion", Text)];

const DELETE_OPTIONS: &[Field] = &[
    (1, "gracePeriodSeconds", OptionalNumber),
    (2, "preconditions", Message(PRECONDITIONS)),
    (3, "orphanDependents", OptionalFlag),
    (4, "propagationPolicy", Text),
    (5, "dryRun", Texts),
];

const OBJECT_REFERENCE: &[Field] = &[
    (1, "kind", Text),
    (2, "namespace", Text),
    (3, "name", Text),
    (4, "uid", Text),
];

const SERVICE_PORT: &[Field] = &[
    (1, "name", Text),
    (2, "protocol", Text),
    (3, "port", Number),
    (4, "targetPort", IntOrString),
    (5, "nodePort", Number),
    (6, "appProtocol", Text),
];

const SERVICE: &[Field] = &[
    (1, "ports", Messages(SERVICE_PORT)),
    (2, "selector", TextMap),
    (3, "clusterIP", Text),
    (4, "type", Text),
    (5, "externalIPs", Texts),
    (7, "sessionAffinity", Text),
    (10, "externalName", Text),
    (13, "publishNotReadyAddresses", OptionalFlag),
];

const QUOTA: &[Field] = &[(1, "hard", QuantityMap), (2, "scopes", Texts)];

const RESOURCE_ATTRIBUTES: &[Field] = &[
    (1, "namespace", Text),
    (2, "verb", Text),
    (3, "group", Text),
    (4, "version", Text),
    (5, "resource", Text),
    (6, "subresource", Text),
    (7, "name", Text),
];

const PATH_ATTRIBUTES: &[Field] = &[(1, "path", Text), (2, "verb", Text)];

const ACCESS: &[Field] = &[
    (1, "resourceAttributes", Message(RESOURCE_ATTRIBUTES)),
    (2, "nonResourceAttributes", Message(PATH_ATTRIBUTES)),
];

/// Returns the fields of a kind.
fn fields(kind: &str) -> Option<&'static [Field]> {
    Some(match kind {
        "ConfigMap" => &[
            METADATA_FIELD,
            (2, "data", TextMap),
            (3, "binaryData", BytesMap),
            (4, "immutable", OptionalFlag),
        ],
        "Secret" => &[
            METADATA_FIELD,
            (2, "data", BytesMap),
            (3, "type", Text),
            (4, "stringData", TextMap),
            (5, "immutable", OptionalFlag),
        ],
        "Namespace" => &[METADATA_FIELD],
        "ServiceAccount" => &[METADATA_FIELD, (2, "secrets", Messages(OBJECT_REFERENCE))],
        "ResourceQuota" => &[METADATA_FIELD, (2, "spec", Message(QUOTA))],
        "Service" => &[METADATA_FIELD, (2, "spec", Message(SERVICE))],
        "Eviction" => &[METADATA_FIELD, (2, "deleteOptions", Message(DELETE_OPTIONS))],
        "DeleteOptions" => DELETE_OPTIONS,
        "SelfSubjectAccessReview" => &[METADATA_FIELD, (2, "spec", Message(ACCESS))],
        "SelfSubjectRulesReview" => &[METADATA_FIELD, (2, "spec", Message(&[(1, "namespace", Text)]))],
        "SelfSubjectReview" => &[METADATA_FIELD],
        _ => return None,
    })
}

/// The value of a field on the wire.
enum Wire<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

impl<'b> Wire<'b> {
    fn bytes(self) -> Option<&'b [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_) => None,
        }
    }

    fn text(self) -> Option<&'b str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Bytes(_) => None,
        }
    }
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Returns the next field: its number and value.
fn next<'b>(bytes: &mut &'b [u8]) -> Option<(u64, Wire<'b>)> {
    let tag = number(bytes)?;
    let mut take = |length: usize| {
        let (value, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(Wire::Bytes(value))
    };
    let value = match tag & 7 {
        0 => Wire::Number(number(bytes)?),
        1 => take(8)?,
        2 => {
            let length = usize::try_from(number(bytes)?).ok()?;
            let (value, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            Wire::Bytes(value)
        }
        5 => take(4)?,
        _ => return None,
    };
    Some((tag >> 3, value))
}

/// Returns the fields of a message, or `None` if it is malformed.
fn all(mut bytes: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        found.push(next(&mut bytes)?);
    }
    Some(found)
}

fn message(fields: &[Field], bytes: &[u8]) -> Option<Map<String, Value>> {
    let mut object = Map::new();
    for (found, wire) in all(bytes)? {
        // Unknown fields are dropped, like unknown members of JSON.
        let Some((_, name, type_)) = fields.iter().find(|(number, ..)| *number == found) else {
            continue;
        };
        add(&mut object, name, *type_, wire)?;
    }
    Some(object)
}

/// Adds the value of a field.
fn add(object: &mut Map<String, Value>, name: &str, type_: Type, wire: Wire<'_>) -> Option<()> {
    let mut set = |value: Value| object.insert(name.to_owned(), value);
    match type_ {
        Text => {
            let text = wire.text()?;
            if !text.is_empty() {
                set(Value::from(text));
            }
        }
        Number | OptionalNumber => {
            let number = wire.number()?.cast_signed();
            if number != 0 || matches!(type_, OptionalNumber) {
                set(Value::from(number));
            }
        }
        OptionalFlag => {
            set(Value::from(wire.number()? != 0));
        }
        Message(fields) => {
            set(Value::Object(message(fields, wire.bytes()?)?));
        }
        IntOrString => {
            let parts = all(wire.bytes()?)?;
            let mut value = Value::from(0);
            for (found, wire) in parts {
                match (found, wire) {
                    (2, Wire::Number(number)) if number != 0 => value = Value::from(number),
                    (3, Wire::Bytes(text)) if !text.is_empty() => {
                        value = Value::from(std::str::from_utf8(text).ok()?)
                    }
                    _ => {}
                }
            }
            set(value);
        }
        Texts => push(object, name, Value::from(wire.text()?)),
        Messages(fields) => push(object, name, Value::Object(message(fields, wire.bytes()?)?)),
        TextMap | BytesMap | QuantityMap => {
            let (mut key, mut value) = ("", Value::from(""));
            for (found, wire) in all(wire.bytes()?)? {
                match (found, type_) {
                    (1, _) => key = wire.text()?,
                    (2, TextMap) => value = Value::from(wire.text()?),
                    (2, BytesMap) => value = Value::from(STANDARD.encode(wire.bytes()?)),
                    (2, _) => {
                        let quantity = all(wire.bytes()?)?.into_iter().find(|(found, _)| *found == 1);
                        value = Value::from(quantity.and_then(|(_, text)| text.text()).unwrap_or("0"));
                    }
                    _ => {}
                }
            }
            let map = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
            map.as_object_mut()?.insert(key.to_owned(), value);
        }
    }
    Some(())
}

fn push(object: &mut Map<String, Value>, name: &str, value: Value) {
    let list = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    if let Some(list) = list.as_array_mut() {
        list.push(value);
    }
}

/// Converts a body to JSON. Returns `None` if it is malformed or of another kind than those in the tables.
pub(crate) fn to_json(body: &[u8]) -> Option<Value> {
    let envelope = all(body.strip_prefix(MAGIC)?)?;
    let (mut api_version, mut kind, mut raw) = ("", "", &[][..]);
    for (found, wire) in envelope {
        match found {
            1 => {
                for (found, wire) in all(wire.bytes()?)? {
                    match found {
                        1 => api_version = wire.text()?,
                        2 => kind = wire.text()?,
                        _ => {}
                    }
                }
            }
            2 => raw = wire.bytes()?,
            _ => {}
        }
    }
    let mut object = message(fields(kind)?, raw)?;
    object.insert("apiVersion".to_owned(), Value::from(api_version));
    object.insert("kind".to_owned(), Value::from(kind));
    Some(Value::Object(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(number: u8, value: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(value.len()).unwrap()], value].concat()
    }

    fn envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
        let types = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [
            MAGIC,
            &field(1, &types),
            &field(2, raw),
            &field(3, b""),
            &field(4, b""),
        ]
        .concat()
    }

    #[test]
    fn objects_that_kubectl_creates_become_json() {
        let metadata = field(1, &[field(1, b"a"), field(2, b""), field(8, b"")].concat());
        let entry = |value: &[u8]| field(2, &[field(1, b"key"), field(2, value)].concat());
        let map = envelope("ConfigMap", &[metadata.clone(), entry(b"value")].concat());
        let expected = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "value"},
        });
        assert_eq!(to_json(&map), Some(expected));
        let secret = envelope("Secret", &[metadata.clone(), entry(b"value")].concat());
        assert_eq!(to_json(&secret).unwrap()["data"]["key"], "dmFsdWU=");
        let hard = field(1, &[field(1, b"pods"), field(2, &field(1, b"4"))].concat());
        let quota = envelope("ResourceQuota", &[metadata, field(2, &hard)].concat());
        assert_eq!(to_json(&quota).unwrap()["spec"], json!({"hard": {"pods": "4"}}));
    }

    #[test]
    fn malformed_bodies_and_other_kinds_are_rejected() {
        let whole = envelope("ConfigMap", &field(1, &field(1, b"a")));
        assert!(to_json(&whole).is_some());
        for end in 0..whole.len() - 4 {
            assert_eq!(
                to_json(&whole[..end]).filter(|value| value["kind"] != ""),
                to_json(&whole[..end])
            );
        }
        assert_eq!(to_json(&envelope("Pod", b"")), None);
        assert_eq!(to_json(b"{}"), None);
        assert_eq!(to_json(&[MAGIC, &[0xff; 20]].concat()), None);
    }
}
