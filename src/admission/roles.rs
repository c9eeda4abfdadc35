//! Rules for the object, for its roles, and for each role.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use crate::api::MAX_REPLICAS;
use crate::job::Framework;
use kube_schema::names::{DNS_1035, MAX_LABEL_CHARS, MAX_SUBDOMAIN_CHARS};

use super::{add, property, template};
use crate::job::Rule;
use crate::job::rule as cel;

pub(super) fn on_object(root: &mut JSONSchemaProps, framework: &Framework) {
    let name = JSONSchemaProps {
        type_: Some("string".to_owned()),
        max_length: Some(MAX_SUBDOMAIN_CHARS as i64),
        ..JSONSchemaProps::default()
    };
    let mut metadata = JSONSchemaProps {
        type_: Some("object".to_owned()),
        properties: Some([("name".to_owned(), name)].into()),
        ..JSONSchemaProps::default()
    };
    if let Some(name) = metadata.properties.as_mut().and_then(|p| p.get_mut("name")) {
        let rule = match framework.has_services() {
            true => Rule::with_message_of(format!("self.matches({})", cel::literal(DNS_1035)), |e| {
                e.bad_job_name("", "%s");
            })
            .with("self"),
            false => Rule::with_message_of(format!("self.size() <= {MAX_LABEL_CHARS}"), |e| {
                e.long_name("", "%d");
            })
            .with("self.size()"),
        };
        add(name, rule);
    }
    root.properties
        .get_or_insert_default()
        .insert("metadata".to_owned(), metadata);

    let rule = Rule::with_message_of("has(self.spec) || oldSelf.hasValue()", |e| {
        e.no_role("", &framework.fixed_role_names());
    });
    add(root, rule.at("spec").optional_old_self());
}

/// Adds the rule for the length of names. The names of services follow from the keys of the map of replica specs.
pub(super) fn on_name_lengths(root: &mut JSONSchemaProps, framework: &Framework) {
    let specs = framework.roles_field;
    // An existing role with an unchanged number of replicas is accepted. Otherwise the status of its job could never
    // be written.
    let replicas = format!("self.spec.{specs}[k].?replicas");
    let counts = format!("{replicas}.orValue(1) != 0");
    let length =
        format!("self.metadata.name.size() + k.size() + 2 + string({replicas}.orValue(1) - 1).size()");
    // Numbers are compared instead of optional values, because API servers of version 1.30 cannot estimate the size
    // of optional values, so that the cost of the rule would be unbounded.
    let old = format!("oldSelf.?spec.?{specs}[?k]");
    let rule = Rule::with_message_of(
        format!(
            "!has(self.spec) || !has(self.spec.{specs}) || self.spec.{specs}.all(k, {replicas}.orValue(1) == 0 || {length} <= {MAX_LABEL_CHARS} || {old}.hasValue() && {old}.?replicas.orValue(1) == {replicas}.orValue(1))"
        ),
        |e| e.long_service("", "%d", "%d"),
    );
    let lengths = format!("self.spec.{specs}.map(k, {counts}, {length})");
    let values = format!("[{lengths}.max()].map(n, [n, n - {MAX_LABEL_CHARS}])[0]");
    add(root, rule.with_list(values).optional_old_self());
}

pub(super) fn on_specs(specs: &mut JSONSchemaProps, kind: &str, framework: &Framework) {
    let names = framework.role_names();
    let (role, replicas) = (framework.role_of("k"), framework.replicas_of("self", "k"));
    add(
        specs,
        Rule::with_message_of("self.size() > 0", |e| e.no_role("", &names)),
    );

    let known = framework.or_unnamed(
        "k",
        &format!("{role}.lowerAscii() in {}", cel::lower_list(&names)),
    );
    let rule = Rule::with_message_of(format!("self.all(k, {known})"), |e| {
        e.unknown_role("", kind, "%s", &names);
    });
    add(specs, rule.with(&framework.first_role(&format!("!({known})"))));

    let once = format!(
        "self.exists_one(j, {}.lowerAscii() == {role}.lowerAscii())",
        framework.role_of("j")
    );
    let all_once = format!("self.all(k, {})", framework.or_unnamed("k", &once));
    let rule = Rule::with_message_of(all_once, |e| e.role_twice("", "%s"));
    add(specs, rule.with(&framework.first_role(&format!("!{once}"))));

    if !framework.needs_some_role() {
        let some = format!("self.size() == 0 || self.exists(k, {replicas} != 0)");
        add(specs, Rule::with_message_of(some, |e| e.no_replica("")));
    }
    for definition in framework.entries() {
        let is_role = format!("{role}.lowerAscii() == {}", cel::literal(&definition.slug()));
        if definition.min > 0 {
            let enough = format!("{is_role} && {replicas} >= {}", definition.min);
            let enough = framework.or_unnamed("k", &enough);
            let enough = format!("self.size() == 0 || self.exists(k, {enough})");
            add(
                specs,
                Rule::with_message_of(enough, |e| e.too_few_replicas("", definition)),
            );
        }
        let max = definition.max;
        if max < MAX_REPLICAS.unsigned_abs() {
            let rule =
                Rule::with_message_of(format!("self.all(k, !({is_role}) || {replicas} <= {max})"), |e| {
                    e.too_big("", "%d", max.into())
                });
            let rule = rule.with(&format!("self.map(k, {is_role}, {replicas}).max()"));
            add(
                specs,
                match framework.role_key {
                    None => rule.at(&format!("{}.replicas", definition.name)),
                    Some(_) => rule,
                },
            );
        }
    }
}

/// Adds the rules of the pod template that `role` has in the field `field`. If the roles of a list share the template,
/// `roles` is the field with the list, and the template may be incomplete while that list is empty.
pub(super) fn on_template(
    role: &mut JSONSchemaProps,
    field: &str,
    roles: Option<&str>,
    main: &str,
    framework: &Framework,
) {
    let mut has_containers = format!("self.?{field}.?spec.?containers.orValue([]).size() > 0");
    if framework.fills_in_templates {
        has_containers = format!("!has(self.{field}) || {has_containers}");
    }
    if let Some(roles) = roles {
        has_containers = format!("!has(self.{roles}) || self.{roles}.size() == 0 || {has_containers}");
    }
    let rule = Rule::with_message_of(has_containers, |e| e.no_container("", main));
    add(role, rule.at(&format!("{field}.spec.containers")));
    if let Some(template) = property(role, field) {
        template::tighten(template, main, framework);
    }
}
