//! Rules in CEL, with which an API server rejects what validation would reject.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;

use super::errors::{FieldErrors, joined};
use super::framework::Framework;
use super::role_definition::{RoleDefinition, RoleSource};

/// A rule in CEL for the API server alone, such as one that compares with the old object. What the operator checks as well
/// is a [`Check`](super::Check).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    expression: String,
    message: String,
    /// A CEL list of the values for `%s` and `%d` in the message.
    values: Option<String>,
    field: Option<String>,
    pub(crate) place: RulePlace,
    optional_old_self: bool,
}

/// The place of a rule, which is `self` in its CEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RulePlace {
    /// The object, with `metadata.name` and `spec`.
    Object,
    Spec,
    /// Each entry of this list or map in the spec.
    Entries(&'static str),
}

impl Rule {
    /// Creates a rule on the spec that `expression` must be true. `message` has the problem and the remedy, joined by
    /// `"; "`. It does not contain the path: see [`at`](Self::at).
    ///
    /// ```
    /// use training_job::Rule;
    ///
    /// fn rule() -> Rule {
    ///     Rule::new("self.seed == oldSelf.seed", "must not change; create another job").at("seed")
    /// }
    /// ```
    pub fn new(expression: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            expression: expression.into(),
            message: message.into(),
            values: None,
            field: None,
            place: RulePlace::Spec,
            optional_old_self: false,
        }
    }

    /// Creates a rule with the message that validation uses for the same error.
    pub(crate) fn with_message_of(
        expression: impl Into<String>,
        push: impl FnOnce(&mut FieldErrors),
    ) -> Self {
        let mut errors = FieldErrors::default();
        push(&mut errors);
        let error = errors.iter().next();
        let message = error.map(|error| joined(&error.problem, &error.remedy));
        Self::new(expression, message.unwrap_or_default())
    }

    /// Sets the field that the message concerns, relative to the field with the rule.
    #[must_use]
    pub fn at(mut self, field: &str) -> Self {
        self.field = Some(format!(".{field}"));
        self
    }

    /// Applies the rule to each entry of the list or map `spec.<field>` instead of the spec. `self` is the entry, and
    /// [`at`](Self::at) names a field of it.
    #[must_use]
    pub(crate) fn each(mut self, field: &'static str) -> Self {
        self.place = RulePlace::Entries(field);
        self
    }

    /// Applies the rule to new objects as a whole. An existing one is not checked, because its status must stay writable.
    #[must_use]
    pub(crate) fn of_new_objects(mut self) -> Self {
        self.place = RulePlace::Object;
        self.unless("oldSelf.hasValue() || !has(self.spec)")
            .optional_old_self()
    }

    /// Sets a CEL expression for the value of `%s` (a string) or `%d` (an integer) in the message.
    #[must_use]
    pub fn with(self, value: &str) -> Self {
        self.with_list(format!("[{value}]"))
    }

    /// Sets a CEL expression for the list of values of each `%s` and `%d` in the message.
    #[must_use]
    pub fn with_list(mut self, values: impl Into<String>) -> Self {
        self.values = Some(values.into());
        self
    }

    /// Makes `oldSelf` optional: it has no value when the object is created.
    #[must_use]
    pub(crate) fn optional_old_self(mut self) -> Self {
        self.optional_old_self = true;
        self
    }

    /// Restricts the rule to objects for which `condition` is false.
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
            optional_old_self: rule.optional_old_self.then_some(true),
            ..Self::default()
        }
    }
}

/// Returns a CEL string literal. It has double quotes, because definitions are written in single quotes.
pub(crate) fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns a CEL list of strings.
pub(crate) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<_> = words.into_iter().map(literal).collect();
    format!("[{}]", words.join(", "))
}

/// Returns a CEL list of strings in lower case.
pub(crate) fn lower_list(words: &[&str]) -> String {
    let lower: Vec<_> = words.iter().map(|word| word.to_lowercase()).collect();
    list(lower.iter().map(String::as_str))
}

/// Returns CEL for the alphabetically first key `k` of a map for which `condition` is true. The order of a map itself
/// is random.
fn first_key(condition: &str) -> String {
    format!("[self.filter(k, {condition})].map(u, u.filter(k, u.all(j, k <= j))[0])[0]")
}

/// Returns CEL on the spec that is true if any of these roles has a replica.
pub fn any_replica(framework: &Framework, roles: &[&str]) -> String {
    any_with_replicas(framework, roles, "!= 0")
}

/// Returns CEL on the spec that is true if the number of replicas of any of these roles satisfies a comparison such
/// as `> 4`.
pub fn any_with_replicas(framework: &Framework, roles: &[&str], comparison: &str) -> String {
    let is_named = |definition: &&RoleDefinition| roles.contains(&definition.name);
    let named = framework.roles.iter().filter(is_named);
    let mut any: Vec<_> = named
        .filter_map(|definition| {
            definition
                .source
                .any(|spec| format!("{spec}.?{}.orValue(1) {comparison}", definition.replicas_field))
        })
        .collect();
    let entries: Vec<_> = framework.entries().map(|entry| entry.name).collect();
    if any.is_empty() || roles.iter().any(|role| entries.contains(role)) {
        let specs = format!("self.{}", framework.roles_field);
        let (role, replicas) = (framework.role_of("k"), framework.replicas_of(&specs, "k"));
        let of_entries = format!(
            "{specs}.exists(k, {role}.lowerAscii() in {} && {replicas} {comparison})",
            lower_list(roles)
        );
        any.insert(0, of_entries);
    }
    any.join(" || ")
}

/// Returns CEL on the spec for the number of these roles that it names.
pub fn roles_named(framework: &Framework, roles: &[&str]) -> String {
    let specs = format!("self.{}", framework.roles_field);
    let role = framework.role_of("k");
    format!(
        "{specs}.filter(k, {role}.lowerAscii() in {}).size()",
        lower_list(roles)
    )
}

/// CEL for an entry of the replica specs in a macro such as `specs.exists(k, ...)`: the entry is a map's key or a
/// list's item.
impl Framework {
    /// Returns CEL on the spec that is true if the replica spec of any role that `is_asked` meets a condition. `condition`
    /// gets CEL for the replica spec, and the name of its field with the number of replicas.
    pub(crate) fn any_spec(
        &self,
        is_asked: impl Fn(&RoleDefinition) -> bool,
        condition: impl Fn(&str, &str) -> String,
    ) -> String {
        let with = |replicas: &'static str| {
            let condition = &condition;
            move |spec: &str| condition(spec, replicas)
        };
        let entries = match (self.roles_field, self.role_key) {
            ("", _) => None,
            (field, None) => RoleSource::Map(field).any(with("replicas")),
            (field, Some(key)) => RoleSource::List { field, key }.any(with("replicas")),
        };
        let others = self.roles.iter().filter(|role| is_asked(role));
        let others = others.filter_map(|role| role.source.any(with(role.replicas_field)));
        entries.into_iter().chain(others).collect::<Vec<_>>().join(" || ")
    }

    /// Returns CEL for the role of the entry `k`.
    pub(crate) fn role_of(&self, k: &str) -> String {
        match self.role_key {
            None => k.to_owned(),
            // Without `.?` and `orValue`, because an API server has no size for their values, and assumes the
            // maximum.
            Some(key) => format!("(has({k}.{key}) ? {k}.{key} : \"\")"),
        }
    }

    /// Returns CEL that is true if `condition` holds for the entry `k`, or if the entry is an item without a role,
    /// because the kind may assign one.
    pub(crate) fn or_unnamed(&self, k: &str, condition: &str) -> String {
        match self.role_key {
            None => condition.to_owned(),
            Some(key) => format!("!has({k}.{key}) || {condition}"),
        }
    }

    /// Returns CEL for the number of replicas of the entry `k` of `specs`.
    pub(crate) fn replicas_of(&self, specs: &str, k: &str) -> String {
        match self.role_key {
            None => format!("{specs}[{k}].?replicas.orValue(1)"),
            Some(_) => format!("{k}.?replicas.orValue(1)"),
        }
    }

    /// Returns CEL on the replica specs for the role of the first entry `k` for which `condition` is true.
    pub(crate) fn first_role(&self, condition: &str) -> String {
        match self.role_key {
            None => first_key(condition),
            Some(_) => format!("self.filter(k, {condition}).map(k, {})[0]", self.role_of("k")),
        }
    }
}

impl RoleSource {
    /// Returns CEL on the spec that is true if any replica spec in the field of its own meets a condition.
    fn any(self, condition: impl Fn(&str) -> String) -> Option<String> {
        let field = format!("self.{}", self.field()?);
        Some(match self {
            Self::Entry | Self::Field(_) => format!("(has({field}) && {})", condition(&field)),
            Self::Map(_) => {
                let condition = condition(&format!("{field}[k]"));
                format!("(has({field}) && {field}.exists(k, {condition}))")
            }
            Self::List { .. } => format!("(has({field}) && {field}.exists(k, {}))", condition("k")),
        })
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
