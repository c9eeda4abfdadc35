//! Rules in CEL, by which an API server refuses what validation would refuse.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;

use super::errors::FieldErrors;
use super::framework::Framework;

/// A rule in CEL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    expression: String,
    message: String,
    /// A list of what stands for `%s` and `%d` in the message.
    values: Option<String>,
    field: Option<String>,
    sees_creation: bool,
}

impl Rule {
    /// That `expression` is true; `message` says what is wrong if it is not, and what to do about it.
    ///
    /// To say the same as [`FieldErrors::push`], the message is its problem and its remedy, joined by `"; "`; or the problem
    /// alone, if the remedy is empty. The path is not in it: see [`at`](Self::at).
    ///
    /// ```
    /// use training_job::{FieldErrors, Rule};
    ///
    /// fn validate(size: i32, errors: &mut FieldErrors) {
    ///     if size % 2 == 1 {
    ///         errors.push("spec.size", "it is odd", "use an even number");
    ///     }
    /// }
    ///
    /// fn rule() -> Rule {
    ///     Rule::new("self.?size.orValue(0) % 2 == 0", "it is odd; use an even number").at("size")
    /// }
    /// ```
    pub fn new(expression: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            expression: expression.into(),
            message: message.into(),
            values: None,
            field: None,
            sees_creation: false,
        }
    }

    /// The same, with the words that the validation has for it.
    pub(crate) fn saying(expression: impl Into<String>, say: impl FnOnce(&mut FieldErrors)) -> Self {
        let mut errors = FieldErrors::default();
        say(&mut errors);
        let said = errors.iter().next();
        let message = said.map(|e| match e.remedy.as_str() {
            "" => e.problem.clone(),
            remedy => format!("{}; {remedy}", e.problem),
        });
        Self::new(expression, message.unwrap_or_default())
    }

    /// The field, below the one that has the rule, that the message is about.
    #[must_use]
    pub fn at(mut self, field: &str) -> Self {
        self.field = Some(format!(".{field}"));
        self
    }

    /// An expression for what stands for `%s` (a string) or `%d` (an integer) in the message.
    #[must_use]
    pub fn with(self, value: &str) -> Self {
        self.with_list(format!("[{value}]"))
    }

    /// An expression for a list of what stands for each `%s` and `%d` in the message.
    #[must_use]
    pub fn with_list(mut self, values: impl Into<String>) -> Self {
        self.values = Some(values.into());
        self
    }

    /// `oldSelf` is optional, and none when the object is created.
    #[must_use]
    pub(crate) fn since_creation(mut self) -> Self {
        self.sees_creation = true;
        self
    }

    /// The same rule, which does not apply where `condition` is true.
    #[must_use]
    pub(crate) fn unless(mut self, condition: &str) -> Self {
        self.expression = format!("{condition} || ({})", self.expression);
        self
    }
}

impl From<Rule> for ValidationRule {
    fn from(rule: Rule) -> Self {
        let (message, expression) = match rule.values {
            None => (Some(rule.message), None),
            Some(values) => (None, Some(format!("{}.format({values})", literal(&rule.message)))),
        };
        Self {
            rule: rule.expression,
            message,
            message_expression: expression,
            field_path: rule.field,
            optional_old_self: rule.sees_creation.then_some(true),
            ..Self::default()
        }
    }
}

/// A string. In double quotes, since definitions are written in single ones.
pub(crate) fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A list of strings.
pub(crate) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<_> = words.into_iter().map(literal).collect();
    format!("[{}]", words.join(", "))
}

/// A list of strings in lower case.
pub(crate) fn lower_list(words: &[&str]) -> String {
    let lower: Vec<_> = words.iter().map(|word| word.to_lowercase()).collect();
    list(lower.iter().map(String::as_str))
}

/// The first, in the order of the alphabet, of the keys `k` of a map of which `condition` is true. A
/// map's own order is another each time.
fn first_key(condition: &str) -> String {
    format!("[self.filter(k, {condition})].map(u, u.filter(k, u.all(j, k <= j))[0])[0]")
}

/// In CEL, of the spec: whether any of these roles has a replica.
pub fn any_replica(framework: &Framework, roles: &[&str]) -> String {
    any_with_replicas(framework, roles, 1)
}

/// In CEL, of the spec: whether any of these roles has so many replicas, at least 1.
pub(super) fn any_with_replicas(framework: &Framework, roles: &[&str], least: u32) -> String {
    let specs = format!("self.{}", framework.roles_field);
    let (role, replicas) = (framework.role_of("k"), framework.replicas_of(&specs, "k"));
    let enough = match least {
        1 => "!= 0".to_owned(),
        least => format!(">= {least}"),
    };
    format!(
        "{specs}.exists(k, {role}.lowerAscii() in {} && {replicas} {enough})",
        lower_list(roles)
    )
}

/// In CEL, of the spec: how many of these roles it names.
pub fn roles_named(framework: &Framework, roles: &[&str]) -> String {
    let specs = format!("self.{}", framework.roles_field);
    let role = framework.role_of("k");
    format!(
        "{specs}.filter(k, {role}.lowerAscii() in {}).size()",
        lower_list(roles)
    )
}

/// What stands for an entry of the replica specs in a macro such as `specs.exists(k, ...)`: a map's key, or a list's item.
impl Framework {
    /// In CEL: the role of the entry `k`.
    pub(crate) fn role_of(&self, k: &str) -> String {
        match self.role_key {
            None => k.to_owned(),
            // Not by `.?` and `orValue`: an API server has no size for what they give, and takes it for endless.
            Some(key) => format!("(has({k}.{key}) ? {k}.{key} : \"\")"),
        }
    }

    /// In CEL: `condition` of the entry `k`, or that it is an item that names no role. The kind may give it one.
    pub(crate) fn or_unnamed(&self, k: &str, condition: &str) -> String {
        match self.role_key {
            None => condition.to_owned(),
            Some(key) => format!("!has({k}.{key}) || {condition}"),
        }
    }

    /// In CEL: the number of replicas of the entry `k` of `specs`.
    pub(crate) fn replicas_of(&self, specs: &str, k: &str) -> String {
        match self.role_key {
            None => format!("{specs}[{k}].?replicas.orValue(1)"),
            Some(_) => format!("{k}.?replicas.orValue(1)"),
        }
    }

    /// In CEL, of the replica specs: the role of the first entry `k` of which `condition` is true.
    pub(crate) fn first_role(&self, condition: &str) -> String {
        match self.role_key {
            None => first_key(condition),
            Some(_) => format!("self.filter(k, {condition}).map(k, {})[0]", self.role_of("k")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_quoted() {
        let rule: ValidationRule = Rule::new("false", r#"it is "%s": \d"#).with("self").into();
        assert_eq!(
            rule.message_expression.as_deref(),
            Some(r#""it is \"%s\": \\d".format([self])"#)
        );
    }
}
