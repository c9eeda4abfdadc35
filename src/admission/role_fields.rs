//! Rules for roles that have a field of their own.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrBool,
};
use kube_schema::names::{DNS_1035, MAX_LABEL_CHARS};

use crate::api::MAX_REPLICAS;
use crate::job::rule as cel;
use crate::job::{Framework, RoleDefinition, RoleSource, Rule};

use super::check::{self, Mistake, USUAL_FIELD};
use super::{MAX_ROLE_NAME, MAX_ROLES, add, property, roles, template};

/// Adds the rules for `definition` to the spec, if it has a field of its own.
pub(super) fn on_spec(spec: &mut JSONSchemaProps, definition: &RoleDefinition, framework: &Framework) {
    let Some(field) = definition.source.field() else {
        return;
    };
    if definition.min > 0 && !definition.source.is_open() {
        let enough = format!(
            "has(self.{field}) && self.{field}.?{}.orValue(1) >= {}",
            definition.replicas_field, definition.min
        );
        let rule = Rule::with_message_of(enough, |e| e.too_few_replicas("", definition));
        add(spec, rule.at(field));
    }
    let Some(specs) = property(spec, field) else {
        return;
    };
    let replica_spec = match definition.source {
        RoleSource::Entry | RoleSource::Field(_) => Some(specs),
        RoleSource::Map(_) => {
            specs.max_properties.get_or_insert(MAX_ROLES);
            let is_name = format!("k.matches({})", cel::literal(DNS_1035));
            let rule = Rule::with_message_of(format!("self.all(k, {is_name})"), |e| {
                e.bad_role_name("", "%s");
            });
            add(specs, rule.with(&format!("self.filter(k, !{is_name})[0]")));
            let is_own = format!("!(k in {})", fixed(framework));
            let rule =
                Rule::with_message_of(format!("self.all(k, {is_own})"), |e| e.role_name_taken("", "%s"));
            add(specs, rule.with(&format!("self.filter(k, !{is_own})[0]")));
            match &mut specs.additional_properties {
                Some(JSONSchemaPropsOrBool::Schema(entry)) => Some(&mut **entry),
                _ => None,
            }
        }
        RoleSource::List { key, .. } => {
            specs.max_items.get_or_insert(MAX_ROLES);
            let once = format!("self.exists_one(j, j.{key} == k.{key})");
            let rule = Rule::with_message_of(format!("self.all(k, {once})"), |e| e.role_name_taken("", "%s"));
            add(specs, rule.with(&format!("self.filter(k, !{once})[0].{key}")));
            let Some(entry) = template::items(specs) else {
                return;
            };
            if let Some(name) = property(entry, key) {
                name.max_length.get_or_insert(MAX_ROLE_NAME);
                let is_name = format!("self.matches({})", cel::literal(DNS_1035));
                let rule = Rule::with_message_of(is_name, |e| e.bad_role_name("", "%s"));
                add(name, rule.with("self"));
                let is_own = format!("!(self in {})", fixed(framework));
                let rule = Rule::with_message_of(is_own, |e| e.role_name_taken("", "%s"));
                add(name, rule.with("self"));
            }
            Some(entry)
        }
    };
    if let Some(replica_spec) = replica_spec {
        on_replica_spec(replica_spec, definition, framework);
    }
    if let Some(template) = definition.template_from {
        roles::on_template(
            spec,
            template,
            Some(field),
            framework.container_name(definition),
            framework,
        );
    }
}

/// Bounds the number of a role's replicas in the field that the kind names, and removes the usual field.
pub(super) fn bound_replicas(spec: &mut JSONSchemaProps, definition: &RoleDefinition) -> Result<(), Mistake> {
    let field = definition.source.field();
    let Some(field) = field.filter(|_| definition.replicas_field != USUAL_FIELD) else {
        return Ok(());
    };
    let entry = match definition.source.is_open() {
        true => Some(check::entries_of(spec, field)?),
        false => property(spec, field),
    };
    if let Some(properties) = entry.and_then(|entry| entry.properties.as_mut()) {
        properties.remove(USUAL_FIELD);
        if let Some(number) = properties.get_mut(definition.replicas_field) {
            number.minimum.get_or_insert(0.0);
            number.maximum.get_or_insert(MAX_REPLICAS.into());
        }
    }
    Ok(())
}

/// Adds the rule for the length of the names of services, for roles that have a field of their own. It applies to new jobs
/// only: the status of an existing job must stay writable, and its roles cannot be compared at an acceptable cost.
pub(super) fn on_name_lengths(root: &mut JSONSchemaProps, framework: &Framework) {
    let ends: Vec<String> = framework.roles.iter().filter_map(longest_end).collect();
    if ends.is_empty() {
        return;
    }
    let longest = format!("self.metadata.name.size() + [{}].max()", ends.join(", "));
    let rule = Rule::with_message_of(
        format!("!has(self.spec) || oldSelf.hasValue() || {longest} <= {MAX_LABEL_CHARS}"),
        |e| e.long_service("", "%d", "%d"),
    );
    let values = format!("[{longest}].map(n, [n, n - {MAX_LABEL_CHARS}])[0]");
    add(root, rule.with_list(values).optional_old_self());
}

/// Returns CEL for the most characters that follow the job's name in the names of a role's services.
fn longest_end(definition: &RoleDefinition) -> Option<String> {
    let specs = format!(
        "self.spec.{}",
        definition.source.field().filter(|_| definition.has_service)?
    );
    // `-`, the name, `-`, and the index of the last replica.
    let length = |name: &str, spec: &str| {
        let replicas = format!("{spec}.?{}.orValue(1)", definition.replicas_field);
        (
            format!("{replicas} != 0"),
            format!("{name} + 2 + string({replicas} - 1).size()"),
        )
    };
    let of_each = |name: &str, spec: &str| {
        let (counts, length) = length(name, spec);
        (
            format!("{specs}.exists(k, {counts})"),
            format!("{specs}.map(k, {counts}, {length}).max()"),
        )
    };
    let (counts, longest) = match definition.source {
        RoleSource::List { key, .. } => of_each(&format!("k.{key}.size()"), "k"),
        RoleSource::Map(_) => of_each("k.size()", &format!("{specs}[k]")),
        RoleSource::Entry | RoleSource::Field(_) => match definition.service {
            Some(end) => (
                format!("{specs}.?{}.orValue(1) != 0", definition.replicas_field),
                (end.len() + 1).to_string(),
            ),
            None => length(&definition.name.len().to_string(), &specs),
        },
    };
    Some(format!("(has({specs}) && {counts} ? {longest} : 0)"))
}

/// Adds a rule for each two fields with roles that users name: no name may be in both.
pub(super) fn on_names_of_two_fields(spec: &mut JSONSchemaProps, framework: &Framework) {
    let open = |definition: &&RoleDefinition| definition.source.is_open();
    let sources: Vec<RoleSource> = framework
        .roles
        .iter()
        .filter(open)
        .map(|role| role.source)
        .collect();
    for (n, second) in sources.iter().enumerate() {
        for first in &sources[..n] {
            if let Some(rule) = no_name_in_both(*first, *second) {
                add(spec, rule);
            }
        }
    }
}

fn no_name_in_both(first: RoleSource, second: RoleSource) -> Option<Rule> {
    let (first_field, second_field) = (first.field()?, second.field()?);
    // The name of the entry `k` of the second field.
    let name = match second {
        RoleSource::List { key, .. } => format!("k.{key}"),
        _ => "k".to_owned(),
    };
    let is_in_first = match first {
        RoleSource::List { key, .. } => format!("self.{first_field}.exists(j, j.{key} == {name})"),
        _ => format!("{name} in self.{first_field}"),
    };
    let has_both = format!("has(self.{first_field}) && has(self.{second_field})");
    let rule = format!("!({has_both}) || self.{second_field}.all(k, !({is_in_first}))");
    let suffix = name.trim_start_matches('k');
    let twice = format!("self.{second_field}.filter(k, {is_in_first})[0]{suffix}");
    let rule = Rule::with_message_of(rule, |e| e.role_name_taken("", "%s"));
    Some(rule.at(second_field).with(&twice))
}

/// Returns a CEL list of the names that users cannot choose, because the kind has roles of these names.
fn fixed(framework: &Framework) -> String {
    cel::lower_list(&framework.fixed_role_names())
}

fn on_replica_spec(replica_spec: &mut JSONSchemaProps, definition: &RoleDefinition, framework: &Framework) {
    let field = definition.replicas_field;
    let replicas = format!("self.?{field}.orValue(1)");
    if definition.source.is_open() && definition.min > 0 {
        let min = definition.min;
        let rule = Rule::with_message_of(format!("{replicas} >= {min}"), |e| {
            e.too_small("", "%d", min.into());
        });
        add(replica_spec, rule.at(field).with(&replicas));
    }
    let max = definition.max;
    if max < MAX_REPLICAS.unsigned_abs() {
        let rule = Rule::with_message_of(format!("{replicas} <= {max}"), |e| {
            e.too_big("", "%d", max.into());
        });
        add(replica_spec, rule.at(field).with(&replicas));
    }
    if definition.template_from.is_none() {
        let container = framework.container_name(definition);
        roles::on_template(replica_spec, "template", None, container, framework);
    }
}
