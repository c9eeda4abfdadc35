//! Bodies in protobuf, which kubectl and programs in Go send for built-in kinds. They are converted to JSON.
//!
//! The fields are in `protobuf.txt`, which is written from the Go types: first a line for each kind with its message,
//! then a line for each message with its fields. A field is `number:name:type`, with `!` if JSON has its zero value too.
//! The name `*` is that of a message whose fields are members of the object itself. Other kinds are rejected with 415,
//! and clients have to send JSON.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value};

/// The media type of these bodies.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The bytes before the envelope.
const MAGIC: &[u8] = b"k8s\0";

/// The deepest nesting of messages. That of kinds is below 20.
const MAX_DEPTH: usize = 64;

#[derive(Debug)]
struct Field {
    number: u64,
    name: &'static str,
    type_: &'static str,
    keeps_zero: bool,
}

/// The fields of messages, and the messages of kinds, by `version kind`.
struct Fields {
    kinds: HashMap<&'static str, &'static str>,
    messages: HashMap<&'static str, Vec<Field>>,
}

static FIELDS: LazyLock<Fields> = LazyLock::new(|| read_fields(include_str!("protobuf.txt")));

fn read_fields(text: &'static str) -> Fields {
    let (mut kinds, mut messages) = (HashMap::new(), HashMap::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some((kind, message)) = line.split_once(" = ") {
            kinds.insert(kind, message);
            continue;
        }
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        messages.insert(name, words.filter_map(read_field).collect());
    }
    Fields { kinds, messages }
}

fn read_field(word: &'static str) -> Option<Field> {
    let (number, rest) = word.split_once(':')?;
    let (name, type_) = rest.split_once(':')?;
    Some(Field {
        number: number.parse().ok()?,
        name,
        type_: type_.trim_end_matches('!'),
        keeps_zero: type_.ends_with('!'),
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

/// Converts a message. Returns `None` if it is malformed.
fn message(name: &str, bytes: &[u8], depth: usize) -> Option<Map<String, Value>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let fields = FIELDS.messages.get(name)?;
    let mut object = Map::new();
    for (found, wire) in all(bytes)? {
        // Unknown fields are dropped, like unknown members of JSON.
        let Some(field) = fields.iter().find(|field| field.number == found) else {
            continue;
        };
        add(&mut object, field, wire, depth)?;
    }
    Some(object)
}

/// Adds the value of a field.
fn add(object: &mut Map<String, Value>, field: &Field, wire: Wire<'_>, depth: usize) -> Option<()> {
    let member = || field.name.to_owned();
    if field.name == "*" {
        object.extend(message(field.type_, wire.bytes()?, depth + 1)?);
    } else if let Some(item) = field.type_.strip_prefix('[') {
        let item = value(item, wire, depth)?;
        let list = object.entry(member()).or_insert_with(|| Value::Array(Vec::new()));
        list.as_array_mut()?.push(item);
    } else if let Some(item) = field.type_.strip_prefix('{') {
        let (mut key, mut entry) = ("", None);
        for (found, wire) in all(wire.bytes()?)? {
            match found {
                1 => key = wire.text()?,
                2 => entry = Some(value(item, wire, depth)?),
                _ => {}
            }
        }
        let entry = entry.unwrap_or_else(|| Value::from(""));
        let map = object
            .entry(member())
            .or_insert_with(|| Value::Object(Map::new()));
        map.as_object_mut()?.insert(key.to_owned(), entry);
    } else {
        let value = value(field.type_, wire, depth)?;
        if !value.is_null() && (field.keeps_zero || !is_zero(&value)) {
            object.insert(member(), value);
        }
    }
    Some(())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// Converts a value of a type: a letter, or the name of a message.
fn value(type_: &str, wire: Wire<'_>, depth: usize) -> Option<Value> {
    Some(match type_ {
        "t" => Value::from(wire.text()?),
        "n" => Value::from(wire.number()?.cast_signed()),
        "b" => Value::from(wire.number()? != 0),
        "y" => Value::from(STANDARD.encode(wire.bytes()?)),
        "T" => time(wire.bytes()?, 0)?,
        "U" => time(wire.bytes()?, 6)?,
        "Q" => {
            let quantity = all(wire.bytes()?)?.into_iter().find(|(found, _)| *found == 1);
            Value::from(quantity.and_then(|(_, text)| text.text()).unwrap_or("0"))
        }
        "I" => int_or_string(wire.bytes()?)?,
        "R" => {
            let raw = all(wire.bytes()?)?.into_iter().find(|(found, _)| *found == 1);
            match raw {
                Some((_, raw)) => serde_json::from_slice(raw.bytes()?).ok()?,
                None => Value::Null,
            }
        }
        name => Value::Object(message(name, wire.bytes()?, depth + 1)?),
    })
}

/// Converts a time with so many digits of a second. Returns null for a missing time, which is an empty message.
fn time(bytes: &[u8], digits: usize) -> Option<Value> {
    let (mut second, mut nanosecond) = (0, 0);
    for (found, wire) in all(bytes)? {
        match found {
            1 => second = wire.number()?.cast_signed(),
            2 => nanosecond = i32::try_from(wire.number()?).ok()?,
            _ => {}
        }
    }
    if second == 0 && nanosecond == 0 {
        return Some(Value::Null);
    }
    let nanosecond = if digits == 0 { 0 } else { nanosecond };
    let time = Timestamp::new(second, nanosecond).ok()?;
    Some(Value::from(format!("{time:.digits$}")))
}

fn int_or_string(bytes: &[u8]) -> Option<Value> {
    let mut value = Value::from(0);
    for (found, wire) in all(bytes)? {
        match (found, wire) {
            (2, Wire::Number(number)) if number != 0 => value = Value::from(number),
            (3, Wire::Bytes(text)) if !text.is_empty() => {
                value = Value::from(std::str::from_utf8(text).ok()?);
            }
            _ => {}
        }
    }
    Some(value)
}

/// Converts a body to JSON. Returns `None` if it is malformed or of a kind without fields in the table.
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
    // Every group has the same options.
    let version = if kind == "DeleteOptions" {
        "v1"
    } else {
        api_version
    };
    let name = FIELDS.kinds.get(format!("{version} {kind}").as_str())?;
    let mut object = message(name, raw, 0)?;
    object.insert("apiVersion".to_owned(), Value::from(api_version));
    object.insert("kind".to_owned(), Value::from(kind));
    Some(Value::Object(object))
}

#[cfg(test)]
mod tests {
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
    fn malformed_bodies_and_other_kinds_are_rejected() {
        let whole = envelope("ConfigMap", &field(1, &field(1, b"a")));
        assert!(to_json(&whole).is_some());
        for end in 0..whole.len() - 4 {
            assert_eq!(
                to_json(&whole[..end]).filter(|value| value["kind"] != ""),
                to_json(&whole[..end])
            );
        }
        assert_eq!(to_json(&envelope("Thing", b"")), None);
        assert_eq!(to_json(b"{}"), None);
        assert_eq!(to_json(&[MAGIC, &[0xff; 20]].concat()), None);
    }
}
