//! Rules on the object, on its roles, and on each of them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use crate::job::Framework;
use kube_syntax::names::{DNS_1035, LABEL_MAX};

use super::{add, role_names};
use crate::job::Rule;
use crate::job::rule as cel;

/// The most characters of an object's name: the API server's own bound.
const NAME_MAX: i64 = 253;

/// The number of replicas of role `k`, in the roles' own rules.
const REPLICAS: &str = "self[k].?replicas.orValue(1)";

pub(super) fn on_object(root: &mut JSONSchemaProps, framework: &Framework) {
    let specs = framework.specs_field;
    let name = JSONSchemaProps {
        type_: Some("string".to_owned()),
        max_length: Some(NAME_MAX),
        ..JSONSchemaProps::default()
    };
    let mut metadata = JSONSchemaProps {
        type_: Some("object".to_owned()),
        properties: Some([("name".to_owned(), name)].into()),
        ..JSONSchemaProps::default()
    };
    if let Some(name) = metadata.properties.as_mut().and_then(|p| p.get_mut("name")) {
        let rule = Rule::saying(format!("self.matches({})", cel::literal(DNS_1035)), |e| {
            e.bad_job_name("", "%s");
        });
        add(name, rule.with("self"));
    }
    root.properties
        .get_or_insert_default()
        .insert("metadata".to_owned(), metadata);

    let rule = Rule::saying("has(self.spec) || oldSelf.hasValue()", |e| {
        e.no_role("", &role_names(framework));
    });
    add(root, rule.at("spec").since_creation());

    // A role that was there before with as many replicas may stay, or the status of its job could never
    // be written.
    let replicas = format!("self.spec.{specs}[k].?replicas");
    let counts = format!("{replicas}.orValue(1) != 0");
    let length =
        format!("self.metadata.name.size() + k.size() + 2 + string({replicas}.orValue(1) - 1).size()");
    let old = format!("oldSelf.?spec.?{specs}[?k]");
    let rule = Rule::saying(
        format!(
            "!has(self.spec) || !has(self.spec.{specs}) || self.spec.{specs}.all(k, {replicas}.orValue(1) == 0 || {length} <= {LABEL_MAX} || {old}.hasValue() && {old}.?replicas == {replicas})"
        ),
        |e| e.long_service("", "%d", "%d"),
    );
    let lengths = format!("self.spec.{specs}.map(k, {counts}, {length})");
    let values = format!("[{lengths}.max()].map(n, [n, n - {LABEL_MAX}])[0]");
    add(root, rule.with_list(values).since_creation());
}

pub(super) fn on_specs(specs: &mut JSONSchemaProps, kind: &str, framework: &Framework) {
    let names = role_names(framework);
    add(specs, Rule::saying("self.size() > 0", |e| e.no_role("", &names)));

    let known = format!("k.lowerAscii() in {}", cel::lower_list(&names));
    let rule = Rule::saying(format!("self.all(k, {known})"), |e| {
        e.unknown_role("", kind, "%s", &names);
    });
    add(specs, rule.with(&cel::first_key(&format!("!({known})"))));

    let once = "self.exists_one(j, j.lowerAscii() == k.lowerAscii())";
    let rule = Rule::saying(format!("self.all(k, {once})"), |e| e.role_twice("", "%s"));
    add(specs, rule.with(&cel::first_key(&format!("!{once}"))));

    let some = format!("self.size() == 0 || self.exists(k, {REPLICAS} != 0)");
    add(specs, Rule::saying(some, |e| e.no_replica("")));

    for role in framework.roles {
        let Some(max) = role.max else { continue };
        let is_role = format!("k.lowerAscii() == {}", cel::literal(&role.name.to_lowercase()));
        let rule = Rule::saying(format!("self.all(k, !({is_role}) || {REPLICAS} <= {max})"), |e| {
            e.too_big("", "%d", max.into())
        });
        let value = format!("self.map(k, {is_role}, {REPLICAS}).max()");
        add(specs, rule.with(&value).at(&format!("{}.replicas", role.name)));
    }
}

pub(super) fn on_role(role: &mut JSONSchemaProps, framework: &Framework) {
    let has_containers = "self.?template.?spec.?containers.orValue([]).size() > 0";
    let rule = Rule::saying(has_containers, |e| e.no_container("", framework.container));
    add(role, rule.at("template.spec.containers"));
}
