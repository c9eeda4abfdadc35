//! Evaluates the rules of a definition on an object, as an API server does when the object is created.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use cel::extractors::This;
use cel::objects::{Key, OptionalValue};
use cel::{Context, Env, ExecutionError, Value, extensions};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSONSchemaProps, ValidationRule};
use serde_json::Value as Json;

use super::size::{self, Type};

/// Functions of Kubernetes that the interpreter lacks. Rules that call them are not evaluated.
const UNSUPPORTED_FUNCTIONS: &str = "asApproximateFloat asInteger bind cidr compareTo duration equivalent find findAll indexOf intersects ip \
    isCIDR isGreaterThan isIP isInteger isLessThan isQuantity isSemver isURL lastIndexOf optFlatMap optMap \
    quantity semver timestamp url";

/// Returns the functions that rules may call.
pub(super) fn environment() -> &'static Arc<Env> {
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

/// A rule that an object violates.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The path of the field that the rule concerns.
    pub(super) path: String,
    pub(super) message: String,
    pub(super) rule: String,
}

/// Returns the rules of a schema that an object violates.
pub(super) fn evaluate(schema: &JSONSchemaProps, object: &Json) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    visit(schema, object, "", &mut refusals);
    refusals
}

fn visit(schema: &JSONSchemaProps, json: &Json, path: &str, refusals: &mut Vec<Refusal>) {
    if json.is_null() {
        return;
    }
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        if let Some(message) = rejection(rule, schema, json) {
            let field = rule.field_path.as_deref().unwrap_or_default();
            let path = format!("{path}{field}");
            refusals.push(Refusal {
                path: path.trim_start_matches('.').to_owned(),
                message,
                rule: rule.rule.clone(),
            });
        }
    }
    for (name, field) in schema.properties.iter().flatten() {
        visit(field, &json[name], &kube_schema::field(path, name), refusals);
    }
    if let (Some(values), Json::Object(members)) = (size::values(schema), json) {
        for (key, value) in members {
            visit(values, value, &kube_schema::field(path, key), refusals);
        }
    }
    if let (Some(items), Json::Array(elements)) = (size::items(schema), json) {
        for (n, element) in elements.iter().enumerate() {
            visit(items, element, &kube_schema::item(path, n), refusals);
        }
    }
}

/// Returns the message of a rule if a value violates it.
fn rejection(rule: &ValidationRule, schema: &JSONSchemaProps, json: &Json) -> Option<String> {
    // `rule_costs` reports a rule that does not parse.
    let program = environment().compile(&rule.rule).ok()?;
    let references = program.references();
    let is_transition = references.has_variable("oldSelf") && rule.optional_old_self != Some(true);
    if is_transition
        || references
            .functions()
            .iter()
            .any(|name| UNSUPPORTED_FUNCTIONS.split(' ').any(|other| other == *name))
    {
        return None;
    }
    let context = context(schema, json);
    let message = match program.execute(&context) {
        Ok(Value::Bool(true)) => return None,
        Ok(Value::Bool(false)) => message(rule, &context),
        Ok(other) => format!("must be true or false (is {other:?})"),
        Err(error) => format!("cannot be evaluated: {error}"),
    };
    Some(message)
}

fn message(rule: &ValidationRule, context: &Context<'_, '_>) -> String {
    let made = rule.message_expression.as_deref().map(|expression| {
        let program = environment()
            .compile(expression)
            .map_err(|error| error.to_string())?;
        match program.execute(context) {
            Ok(Value::String(text)) => Ok(text.to_string()),
            Ok(other) => Err(format!("must be a string (is {other:?})")),
            Err(error) => Err(error.to_string()),
        }
    });
    match made {
        Some(Ok(text)) => text,
        // A server then uses a default message.
        Some(Err(error)) => {
            let mut message = rule.message.clone().unwrap_or_default();
            let _ = write!(message, "(its messageExpression fails: {error})");
            message
        }
        None => rule
            .message
            .clone()
            .unwrap_or_else(|| format!("failed rule: {}", rule.rule)),
    }
}

fn context(schema: &JSONSchemaProps, json: &Json) -> Context<'static, 'static> {
    let mut context = Context::with_env(environment().clone());
    context.add_variable_from_value("self", value(schema, json));
    context.add_variable_from_value("oldSelf", Value::Opaque(Arc::new(OptionalValue::none())));
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
fn value(schema: &JSONSchemaProps, json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(integer) if schema.type_.as_deref() != Some("number") => Value::Int(integer),
            _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(Arc::new(text.clone())),
        Json::Array(elements) => {
            let items = size::items(schema);
            let elements = elements.iter().filter_map(|element| Some(value(items?, element)));
            Value::List(Arc::new(elements.collect()))
        }
        Json::Object(members) => {
            let values = size::values(schema);
            let members = members.iter().filter(|(_, member)| !member.is_null());
            let members = members.filter_map(|(name, member)| match values {
                Some(values) => Some((name.clone(), value(values, member))),
                None => {
                    let field = schema.properties.as_ref()?.get(name)?;
                    Type::of(field)?;
                    Some((size::escape(name), value(field, member)))
                }
            });
            let members: HashMap<Key, Value> = members.map(|(name, member)| (name.into(), member)).collect();
            members.into()
        }
    }
}
