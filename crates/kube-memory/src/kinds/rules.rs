//! Evaluates the rules of definitions (`x-kubernetes-validations`) on objects, with the crate `cel`.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, LazyLock},
};

use cel::extractors::This;
use cel::objects::{Key, OptionalValue};
use cel::{Context, Env, ExecutionError, Program, Value, extensions};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use crate::object::{cause::Cause, json};

/// The functions of Kubernetes that the interpreter lacks. A rule that calls one is not evaluated.
const UNSUPPORTED_FUNCTIONS: &str = "asApproximateFloat asInteger bind cidr compareTo duration equivalent find findAll indexOf intersects ip \
    isCIDR isGreaterThan isIP isInteger isLessThan isQuantity isSemver isURL lastIndexOf optFlatMap optMap \
    quantity semver timestamp url";

/// Returns the functions that rules of definitions may call, for the interpreter.
pub fn rule_environment() -> &'static Arc<Env> {
    static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
        let mut environment = Env::stdlib();
        for extension in [extensions::strings, extensions::lists] {
            // Each extension is added once, so a conflict is impossible.
            let _ = environment.add_extension(extension);
        }
        Arc::new(environment)
    });
    &ENVIRONMENT
}

/// A compiled rule. `None` if it does not parse or calls a function that the interpreter lacks.
type Compiled = Option<Arc<Program>>;

/// The rules of one version of a definition (`x-kubernetes-validations`). A rule is compiled when it is evaluated for the
/// first time. Rules that call functions which the interpreter lacks are not evaluated: see
/// [`Builder::rules`](crate::Builder::rules).
#[derive(Default)]
pub struct Rules {
    schema: Json,
    compiled: Mutex<BTreeMap<String, Compiled>>,
}

/// A rule that an object violates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleViolation {
    /// Path of the field that the rule concerns, such as `spec.replicas`; empty for the object itself.
    pub path: String,
    /// Message of the API server.
    pub message: String,
    /// Text of the rule.
    pub rule: String,
    /// Error of the rule's `messageExpression`. The API server then uses the fixed message.
    pub message_error: Option<String>,
}

/// The message of a violated rule, and the error of its `messageExpression`.
struct Said {
    message: String,
    error: Option<String>,
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

impl Rules {
    /// Takes the rules of an `openAPIV3Schema`.
    #[must_use]
    pub fn of_schema(schema: &Json) -> Self {
        let mut schema = schema.clone();
        if schema["type"] == "object" {
            // Rules of the whole object always see these members.
            let add = |names: [&str; 2], parent: &mut Json| {
                for name in names {
                    let known = &mut parent["properties"][name];
                    if known.is_null() {
                        *known = json!({"type": "string"});
                    }
                }
            };
            add(["apiVersion", "kind"], &mut schema);
            let metadata = &mut schema["properties"]["metadata"];
            add(["name", "generateName"], metadata);
            metadata["type"] = json!("object");
        }
        Self {
            schema,
            compiled: Mutex::default(),
        }
    }

    /// Returns the rules that an object violates. `old` is its stored state. Parts that are unchanged are not checked again.
    #[must_use]
    pub fn violations(&self, object: &Json, old: Option<&Json>) -> Vec<RuleViolation> {
        let mut violations = Vec::new();
        self.visit(&self.schema, object, old, "", &mut |path, rule, _, said| {
            violations.push(RuleViolation {
                path: path.to_owned(),
                message: said.message,
                rule: rule["rule"].as_str().unwrap_or_default().to_owned(),
                message_error: said.error,
            });
        });
        violations
    }

    /// Adds a cause for each rule that an object violates, as [`violations`](Self::violations) does.
    pub(crate) fn check(&self, object: &Json, old: Option<&Json>, causes: &mut Vec<Cause>) {
        self.visit(&self.schema, object, old, "", &mut |path, rule, json, said| {
            causes.push(cause(path, &rule["reason"], json, &said.message));
        });
    }

    /// Calls `found` with the path, the rule, the value and the message of each violated rule.
    fn visit(
        &self,
        schema: &Json,
        json: &Json,
        old: Option<&Json>,
        path: &str,
        found: &mut dyn FnMut(&str, &Json, &Json, Said),
    ) {
        if json.is_null() || old == Some(json) {
            return;
        }
        for rule in json::array(schema.get("x-kubernetes-validations")) {
            if let Some(said) = self.violation(rule, schema, json, old) {
                let field = rule["fieldPath"].as_str().unwrap_or_default();
                let path = format!("{path}{field}");
                found(path.trim_start_matches('.'), rule, json, said);
            }
        }
        if let Some(properties) = schema["properties"].as_object() {
            for (name, field) in properties {
                let path = kube_schema::field(path, name);
                self.visit(
                    field,
                    &json[name],
                    old.and_then(|old| old.get(name)),
                    &path,
                    found,
                );
            }
        }
        if let (Some(values), Json::Object(members)) = (values(schema), json) {
            for (key, value) in members {
                let old = old.and_then(|old| old.get(key));
                self.visit(values, value, old, &format!("{path}[{key}]"), found);
            }
        }
        if let (Some(items), Json::Array(elements)) = (items(schema), json) {
            for (place, element) in elements.iter().enumerate() {
                // Only elements of a list with keys belong to each other.
                let old = same_element(schema, element, old);
                self.visit(items, element, old, &kube_schema::item(path, place), found);
            }
        }
    }

    fn compile(&self, text: &str) -> Compiled {
        let mut compiled = self.compiled.lock();
        if let Some(known) = compiled.get(text) {
            return known.clone();
        }
        let program = rule_environment().compile(text).ok().filter(|program| {
            let references = program.references();
            let functions = references.functions();
            let mut unsupported = UNSUPPORTED_FUNCTIONS.split(' ');
            !unsupported.any(|name| functions.contains(&name))
        });
        let program = program.map(Arc::new);
        compiled.insert(text.to_owned(), program.clone());
        program
    }

    /// Returns the message of a rule if a value violates it.
    fn violation(&self, rule: &Json, schema: &Json, json: &Json, old: Option<&Json>) -> Option<Said> {
        let text = rule["rule"].as_str().unwrap_or_default();
        let program = self.compile(text)?;
        let optional = rule["optionalOldSelf"] == true;
        if program.references().has_variable("oldSelf") && !optional && old.is_none() {
            return None;
        }
        let old = old.map(|old| value(schema, old));
        let old = match (optional, old) {
            (true, Some(old)) => Value::Opaque(Arc::new(OptionalValue::of(old))),
            (false, Some(old)) => old,
            (_, None) => Value::Opaque(Arc::new(OptionalValue::none())),
        };
        let context = context(value(schema, json), old);
        match program.execute(&context) {
            Ok(Value::Bool(true)) => None,
            Ok(Value::Bool(false)) => Some(self.message(rule, &context)),
            Ok(_) => Some(Said::only(format!(
                "rule: {text} evaluated to a value that is not a bool"
            ))),
            Err(error) => Some(Said::only(format!("rule: {text} evaluation error: {error}"))),
        }
    }

    fn message(&self, rule: &Json, context: &Context<'_, '_>) -> Said {
        let made = rule["messageExpression"].as_str().map(|expression| {
            let program = self.compile(expression);
            let program = program.ok_or_else(|| "it cannot be compiled".to_owned())?;
            match program.execute(context) {
                Ok(Value::String(text)) => Ok(text.to_string()),
                Ok(other) => Err(format!("must be a string (is {other:?})")),
                Err(error) => Err(error.to_string()),
            }
        });
        let error = match made {
            Some(Ok(made)) => return Said::only(made),
            Some(Err(error)) => Some(error),
            None => None,
        };
        let fixed = rule["message"].as_str().map(str::to_owned);
        let message =
            fixed.unwrap_or_else(|| format!("failed rule: {}", rule["rule"].as_str().unwrap_or_default()));
        Said { message, error }
    }
}

impl Said {
    fn only(message: String) -> Self {
        Self { message, error: None }
    }
}

fn cause(path: &str, reason: &Json, json: &Json, message: &str) -> Cause {
    let path = if path.is_empty() { "<nil>" } else { path };
    match reason.as_str() {
        Some("FieldValueForbidden") => Cause::forbidden(path, message),
        Some("FieldValueRequired") => Cause::required(path, message),
        Some("FieldValueDuplicate") => Cause::duplicate(path, json),
        _ if json.is_object() || json.is_array() => Cause::invalid_without_value(path, message),
        _ => Cause::invalid(path, json, message),
    }
}

/// Returns the old element with the same keys, in a list with keys.
fn same_element<'o>(schema: &Json, element: &Json, old: Option<&'o Json>) -> Option<&'o Json> {
    let keys: Vec<&str> = json::array(schema.get("x-kubernetes-list-map-keys"))
        .filter_map(Json::as_str)
        .collect();
    let mut elements = old?.as_array()?.iter();
    let is_same = |old: &&Json| keys.iter().all(|key| old.get(*key) == element.get(*key));
    elements.find(is_same).filter(|_| !keys.is_empty())
}

/// Returns the schema of a list's items.
fn items(schema: &Json) -> Option<&Json> {
    schema.get("items").filter(|items| items.is_object())
}

/// Returns the schema of a map's values.
fn values(schema: &Json) -> Option<&Json> {
    schema
        .get("additionalProperties")
        .filter(|values| values.is_object())
}

/// Reserved words, which rules escape in names of fields.
const RESERVED_WORDS: &str = "true false null in as break const continue else for function if import let loop package namespace return var \
    void while";

/// Returns the name of a field in rules.
fn escape(name: &str) -> String {
    if RESERVED_WORDS.split(' ').any(|word| word == name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

/// Returns true if rules see values of this schema: it has a type, down to the items of its lists and maps.
fn is_visible(schema: &Json) -> bool {
    if schema["x-kubernetes-int-or-string"] == true {
        return true;
    }
    match schema["type"].as_str() {
        None => false,
        Some("array") => items(schema).is_some_and(is_visible),
        Some("object") => values(schema).is_none_or(is_visible),
        Some(_) => true,
    }
}

fn context(own: Value, old: Value) -> Context<'static, 'static> {
    let mut context = Context::with_env(rule_environment().clone());
    context.add_variable_from_value("self", own);
    context.add_variable_from_value("oldSelf", old);
    type List = This<Arc<Vec<Value>>>;
    let most = |list: &[Value], greater: bool| {
        let mut items = list.iter();
        let first = items.next().cloned();
        let first = first.ok_or_else(|| ExecutionError::function_error("max or min", "the list is empty"))?;
        Ok(items.fold(first, |most, item| {
            match (*item > most) == greater && *item != most {
                true => item.clone(),
                false => most,
            }
        }))
    };
    // Adding a function fails only if the name is taken, which is not the case.
    let _ = context.add_function("max", move |This(list): List| most(&list, true));
    let _ = context.add_function("min", move |This(list): List| most(&list, false));
    let _ = context.add_function("isSorted", |This(list): List| list.is_sorted());
    let _ = context.add_function("sum", |This(list): List| {
        list.iter()
            .try_fold(Value::Int(0), |sum, item| match (sum, item) {
                (Value::Int(sum), Value::Int(item)) => Ok(Value::Int(sum.saturating_add(*item))),
                (Value::Int(0), Value::Float(item)) => Ok(Value::Float(*item)),
                (Value::Float(sum), Value::Float(item)) => Ok(Value::Float(sum + item)),
                _ => Err(ExecutionError::function_error(
                    "sum",
                    "not all items are numbers of one type",
                )),
            })
    });
    context
}

/// Converts a value to the form that rules see: without fields outside the schema, and with the number types of the
/// schema.
fn value(schema: &Json, json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(integer) if schema["type"] != "number" => Value::Int(integer),
            _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(Arc::new(text.clone())),
        Json::Array(elements) => {
            let items = items(schema);
            let elements = elements.iter().filter_map(|element| Some(value(items?, element)));
            Value::List(Arc::new(elements.collect()))
        }
        Json::Object(members) => {
            let values = values(schema);
            let members = members.iter().filter(|(_, member)| !member.is_null());
            let members = members.filter_map(|(name, member)| match values {
                Some(values) => Some((name.clone(), value(values, member))),
                None => {
                    let field = schema["properties"].get(name).filter(|field| is_visible(field))?;
                    Some((escape(name), value(field, member)))
                }
            });
            let members: HashMap<Key, Value> = members.map(|(name, member)| (name.into(), member)).collect();
            members.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Json, object: &Json, old: Option<&Json>) -> Vec<String> {
        let mut causes = Vec::new();
        Rules::of_schema(schema).check(object, old, &mut causes);
        causes.iter().map(|cause| format!("{cause:?}")).collect()
    }

    #[test]
    fn an_old_value_is_seen_and_unchanged_parts_are_not_checked_again() {
        let schema = json!({"type": "object", "properties": {
            "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}]},
            "small": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3", "message": "small"}]},
        }});
        let old = json!({"fixed": "a", "small": 7});
        assert!(check(&schema, &json!({"fixed": "b"}), None).is_empty());
        let changed = check(&schema, &json!({"fixed": "b", "small": 7}), Some(&old));
        assert!(changed.len() == 1 && changed[0].contains("fixed"), "{changed:?}");
        assert_eq!(
            check(&schema, &json!({"fixed": "a", "small": 8}), Some(&old)).len(),
            1
        );
    }

    #[test]
    fn a_rule_with_a_function_that_is_missing_is_not_evaluated() {
        let schema = json!({"type": "string", "x-kubernetes-validations": [{"rule": "isQuantity(self)"}]});
        assert!(check(&schema, &json!("x"), None).is_empty());
    }
}
