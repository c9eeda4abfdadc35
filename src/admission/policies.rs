//! Rules for the failure and success policies of a job.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use crate::api::{FailureAction, MAX_RESTARTS_IN_WINDOW};
use crate::job::rule as cel;
use crate::job::{Framework, RoleDefinition, Rule};
use crate::validate::MUST_BE_SET;
use crate::validate::policies::{ALWAYS_WITH_RULES, INVALID_EXIT_CODES, TWO_MATCHERS, WINDOW_WITHOUT_LIMIT};
use crate::validate::progress::{RESTART_WITHOUT_RESTARTS, WITHOUT_LIMIT};

use super::template::items;
use super::{MAX_ROLE_NAME, add, property};

/// Adds the rules to a spec that has these policies.
pub(super) fn on_spec(spec: &mut JSONSchemaProps, kind: &str, framework: &Framework) {
    let Some(policy) = property(spec, "runPolicy") else {
        return;
    };
    if let Some(success) = property(policy, "successPolicy") {
        on_roles(success, kind, framework);
    }
    on_progress(policy);
    let Some(failure) = property(policy, "failurePolicy") else {
        return;
    };
    on_failure_policy(failure, kind, framework);
    let specs = format!("self.{}", framework.roles_field);
    let rules = "self.runPolicy.failurePolicy.rules";
    let has_rules = format!(
        "has(self.runPolicy) && has(self.runPolicy.failurePolicy) && has({rules}) && {rules}.size() > 0"
    );
    let is_always = |spec: &str| format!("{spec}.?restartPolicy.orValue(\"\") == \"Always\"");
    let rule = |always: String| {
        Rule::new(
            format!("!({has_rules}) || !{always}"),
            ALWAYS_WITH_RULES.message(),
        )
    };
    if framework.roles_field.is_empty() {
        // A spec that only names a step of a shared template has no such field.
        let has_policy = |role: &RoleDefinition| role.template_from.is_none();
        let always = format!("({})", framework.any_spec(has_policy, |spec, _| is_always(spec)));
        return add(spec, rule(always));
    }
    let always = format!("{specs}.exists(k, {})", is_always(&format!("{specs}[k]")));
    add(
        spec,
        rule(always)
            .at(framework.roles_field)
            .unless(&format!("!has({specs})")),
    );
}

/// Adds the rules to a run policy with a progress policy. A pattern is compiled by the operator only, because CEL cannot
/// check a regular expression.
fn on_progress(policy: &mut JSONSchemaProps) {
    let Some(progress) = property(policy, "progress") else {
        return;
    };
    for (field, is_unset) in [
        ("startSeconds", "!has(self.startSeconds)"),
        ("onStall", "self.?onStall.orValue(\"\") in [\"\", \"Report\"]"),
    ] {
        let rule = format!("has(self.stalledAfterSeconds) || {is_unset}");
        add(progress, Rule::new(rule, WITHOUT_LIMIT.message()).at(field));
    }
    let restarts = "self.?backoffLimit.orValue(1) != 0 && self.?failurePolicy.?maxRestarts.orValue(1) != 0";
    let rule = format!("self.?progress.?onStall.orValue(\"\") != \"Restart\" || {restarts}");
    let rule = Rule::new(rule, RESTART_WITHOUT_RESTARTS.message());
    add(policy, rule.at("progress.onStall"));
}

fn on_failure_policy(failure: &mut JSONSchemaProps, kind: &str, framework: &Framework) {
    let with_number = Rule::new(
        "!has(self.windowSeconds) || has(self.maxRestarts)",
        WINDOW_WITHOUT_LIMIT.message(),
    );
    add(failure, with_number.at("windowSeconds"));
    let most = MAX_RESTARTS_IN_WINDOW;
    let few = format!("!has(self.windowSeconds) || !has(self.maxRestarts) || self.maxRestarts <= {most}");
    let few = Rule::with_message_of(few, |e| e.too_big("", "%d", f64::from(most)));
    add(failure, few.at("maxRestarts").with("self.maxRestarts"));
    let Some(rule) = property(failure, "rules").and_then(items) else {
        return;
    };
    let has_action = "has(self.action) && self.action != \"\"";
    let words = format!("{MUST_BE_SET}; use one of {}", FailureAction::WORDS.join(", "));
    add(rule, Rule::new(has_action, words).at("action"));
    let one = "!has(self.onExitCodes) || !has(self.onPodConditions)";
    add(rule, Rule::new(one, TWO_MATCHERS.message()));
    on_roles(rule, kind, framework);
    if let Some(codes) = property(rule, "onExitCodes") {
        let fine = "has(self.values) && self.values.size() > 0 && self.values.all(v, v >= 1 && v <= 255)";
        add(codes, Rule::new(fine, INVALID_EXIT_CODES.message()).at("values"));
    }
}

fn on_roles(policy: &mut JSONSchemaProps, kind: &str, framework: &Framework) {
    let names = framework.fixed_role_names();
    if let Some(role) = property(policy, "roles").and_then(items) {
        role.max_length = Some(MAX_ROLE_NAME);
        // A rule on a field does not see the names that a job's user has chosen.
        if framework.roles.iter().any(|role| role.source.is_open()) {
            return;
        }
        let known = format!("self.lowerAscii() in {}", cel::lower_list(&names));
        let rule = Rule::with_message_of(known, |e| e.unknown_role("", kind, "%s", &names));
        add(role, rule.with("self"));
    }
}
