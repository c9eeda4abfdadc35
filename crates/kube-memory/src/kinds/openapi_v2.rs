//! OpenAPI v2, which Helm 3, Argo CD and kubectl (for a `List`) read: schemas without what v2 lacks, and the document in
//! protobuf.

use serde_json::{Map, Value, json};

/// The media type of the document in protobuf.
pub(crate) const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The old spelling of this media type.
pub(crate) const OLD_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The part before the name of a type in a reference of v3.
const COMPONENTS: &str = "#/components/schemas/";

/// Returns a schema of v3 in the terms of v2. As on a real API server, a value that may be null or have unknown members
/// has no type, since clients would reject it.
pub(crate) fn schema(v3: &Value) -> Value {
    let Some(members) = v3.as_object() else {
        return v3.clone();
    };
    let is = |name: &str| members.get(name) == Some(&Value::Bool(true));
    let open = is("nullable") || is("x-kubernetes-preserve-unknown-fields");
    let mut v2 = Map::new();
    for (name, value) in members {
        let converted = match name.as_str() {
            "nullable" | "oneOf" | "anyOf" | "not" => continue,
            "type" | "items" | "properties" if open => continue,
            "allOf" => match value.pointer("/0/$ref") {
                Some(target) => {
                    v2.insert("$ref".to_owned(), reference(target));
                    continue;
                }
                None => continue,
            },
            "$ref" => reference(value),
            "items" | "additionalProperties" => schema(value),
            "properties" => named(value),
            _ => value.clone(),
        };
        v2.insert(name.clone(), converted);
    }
    if v2.get("type") == Some(&Value::from("array")) && !v2.contains_key("items") {
        v2.remove("type");
    }
    if let (Some(Value::Array(required)), Some(properties)) =
        (v2.get_mut("required"), members.get("properties"))
    {
        required.retain(|name| {
            let property = name.as_str().and_then(|name| properties.get(name));
            property.is_none_or(|property| property.get("nullable") != Some(&Value::Bool(true)))
        });
    }
    Value::Object(v2)
}

/// Returns the schema of a kind with the members that all objects have.
pub(crate) fn object(v3: &Value) -> Value {
    let mut v2 = schema(v3);
    if let Some(properties) = v2.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, type_) in [
            ("apiVersion", "string"),
            ("kind", "string"),
            ("metadata", "object"),
        ] {
            properties.entry(name).or_insert_with(|| json!({ "type": type_ }));
        }
    }
    v2
}

fn named(schemas: &Value) -> Value {
    let schemas = schemas.as_object().into_iter().flatten();
    Value::Object(
        schemas
            .map(|(name, value)| (name.clone(), schema(value)))
            .collect(),
    )
}

fn reference(v3: &Value) -> Value {
    let text = v3.as_str().unwrap_or_default();
    Value::from(text.replacen(COMPONENTS, "#/definitions/", 1))
}

/// A message of protobuf.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.extend((value & 0x7f | 0x80).to_le_bytes().first());
            value >>= 7;
        }
        self.0.extend(value.to_le_bytes().first());
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.number(field << 3 | 2);
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    fn message(self, field: u64, value: Self) -> Self {
        self.bytes(field, &value.0)
    }

    fn messages(self, field: u64, values: impl IntoIterator<Item = Self>) -> Self {
        values
            .into_iter()
            .fold(self, |whole, value| whole.message(field, value))
    }

    /// Adds a text, a number or a flag, if there is one.
    fn scalar(mut self, field: u64, value: &Value) -> Self {
        match value {
            Value::String(text) => return self.bytes(field, text.as_bytes()),
            Value::Bool(flag) => {
                self.number(field << 3);
                self.number(u64::from(*flag));
            }
            Value::Number(number) => {
                self.number(field << 3);
                self.number(number.as_i64().unwrap_or_default().cast_unsigned());
            }
            _ => {}
        }
        self
    }

    fn double(mut self, field: u64, value: &Value) -> Self {
        if let Some(value) = value.as_f64() {
            self.number(field << 3 | 1);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
        self
    }

    fn texts(self, field: u64, values: &Value) -> Self {
        let values = values.as_array().into_iter().flatten();
        values.fold(self, |whole, value| whole.scalar(field, value))
    }

    fn extensions(self, field: u64, members: &Value) -> Self {
        let members = members.as_object().into_iter().flatten();
        let own = members.filter(|(name, _)| name.starts_with("x-"));
        self.messages(field, own.map(|(name, value)| pair(name, any(value))))
    }
}

/// A value of any type, as YAML.
fn any(value: &Value) -> Message {
    Message::default().bytes(2, value.to_string().as_bytes())
}

fn pair(name: &str, value: Message) -> Message {
    Message::default().bytes(1, name.as_bytes()).message(2, value)
}

fn pairs(values: &Value, encode: fn(&Value) -> Message) -> impl Iterator<Item = Message> {
    let values = values.as_object().into_iter().flatten();
    values.map(move |(name, value)| pair(name, encode(value)))
}

/// Returns the document in protobuf. The numbers are those of `OpenAPIv2.proto` of gnostic-models.
pub(crate) fn protobuf(document: &Value) -> Vec<u8> {
    let info = Message::default()
        .scalar(1, &document["info"]["title"])
        .scalar(2, &document["info"]["version"]);
    let paths = Message::default().messages(2, pairs(&document["paths"], encoded_path));
    let definitions = Message::default().messages(1, pairs(&document["definitions"], encoded_schema));
    Message::default()
        .scalar(1, &document["swagger"])
        .message(2, info)
        .message(8, paths)
        .message(9, definitions)
        .0
}

/// Encodes the `patch` of a path, which is all that a path has.
fn encoded_path(path: &Value) -> Message {
    let patch = &path["patch"];
    let parameters = patch["parameters"].as_array().into_iter().flatten();
    let parameters = parameters.map(|parameter| {
        let query = Message::default()
            .scalar(2, &parameter["in"])
            .scalar(4, &parameter["name"])
            .scalar(6, &parameter["type"]);
        let not_body = Message::default().message(3, query);
        Message::default().message(1, Message::default().message(2, not_body))
    });
    let operation = Message::default()
        .texts(7, &patch["consumes"])
        .messages(8, parameters)
        .extensions(13, patch);
    Message::default().message(8, operation)
}

fn encoded_schema(schema: &Value) -> Message {
    let mut message = Message::default();
    for (field, name) in [
        (1, "$ref"),
        (2, "format"),
        (3, "title"),
        (4, "description"),
        (8, "exclusiveMaximum"),
        (10, "exclusiveMinimum"),
        (11, "maxLength"),
        (12, "minLength"),
        (13, "pattern"),
        (14, "maxItems"),
        (15, "minItems"),
        (16, "uniqueItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ] {
        message = message.scalar(field, &schema[name]);
    }
    for (field, name) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        message = message.double(field, &schema[name]);
    }
    if let Some(default) = schema.get("default") {
        message = message.message(5, any(default));
    }
    let allowed = schema["enum"].as_array().into_iter().flatten();
    message = message.texts(19, &schema["required"]);
    message = message.messages(20, allowed.map(any));
    message = match &schema["additionalProperties"] {
        Value::Null => message,
        flag @ Value::Bool(_) => message.message(21, Message::default().scalar(2, flag)),
        schema => message.message(21, Message::default().message(1, encoded_schema(schema))),
    };
    if schema["type"].is_string() {
        message = message.message(22, Message::default().scalar(1, &schema["type"]));
    }
    if schema["items"].is_object() {
        let item = Message::default().message(1, encoded_schema(&schema["items"]));
        message = message.message(23, item);
    }
    if schema["properties"].is_object() {
        let properties = pairs(&schema["properties"], encoded_schema);
        message = message.message(25, Message::default().messages(1, properties));
    }
    message.extensions(31, schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_drop_keywords_that_v2_lacks() {
        let v3 = json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "string", "nullable": true},
            "b": {"description": "text", "allOf": [{"$ref": "#/components/schemas/T"}]},
            "c": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"d": {}}},
            "e": {"anyOf": [{"type": "string"}], "x-kubernetes-int-or-string": true},
        }});
        let v2 = json!({"type": "object", "required": ["b"], "properties": {
            "a": {},
            "b": {"description": "text", "$ref": "#/definitions/T"},
            "c": {"x-kubernetes-preserve-unknown-fields": true},
            "e": {"x-kubernetes-int-or-string": true},
        }});
        assert_eq!(schema(&v3), v2);
    }

    #[test]
    fn values_are_encoded_by_their_types() {
        let encoded =
            encoded_schema(&json!({"description": "t", "minimum": 0.5, "minLength": 300, "type": "string"}));
        let expected = [
            &[0x22, 1, b't', 0x60, 0xac, 2, 0x49][..],
            &0.5_f64.to_le_bytes(),
            &[0xb2, 1, 8, 10, 6],
            b"string",
        ];
        assert_eq!(encoded.0, expected.concat());
    }
}
