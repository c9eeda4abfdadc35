//! Validation of request options: unsupported values, and options that exclude each other.

use http::Method;
use serde_json::Value;

use crate::object::cause::Cause;
use crate::request::{
    Query, Request,
    failure::{ApiResult, Failure},
};

const MATCH: &str = "resourceVersionMatch";

fn reject(causes: &[Cause]) -> ApiResult<()> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid_options("ListOptions", causes))
}

fn unsupported(found: &str, allowed: &[&str]) -> Cause {
    let allowed: Vec<String> = allowed.iter().map(|rule| format!("{rule:?}")).collect();
    Cause::unsupported(MATCH, &Value::from(found), &allowed)
}

pub(crate) fn check_write(request: &Request) -> ApiResult<()> {
    let query = &request.query;
    let options = match request.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        Method::DELETE => "DeleteOptions",
        _ => return Ok(()),
    };
    let mut causes = Vec::new();
    if request.is_apply() && query.manager.is_empty() {
        causes.push(Cause::required("fieldManager", "is required for apply patch"));
    }
    if request.is_plain_patch() && query.force {
        causes.push(Cause::forbidden(
            "force",
            "may not be specified for non-apply patch",
        ));
    }
    if query.dry_run_modes.iter().any(|mode| mode != "All") {
        let modes = Value::from(query.dry_run_modes.clone());
        causes.push(Cause::unsupported("dryRun", &modes, &["\"All\"".to_owned()]));
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid_options(options, &causes))
}

pub(crate) fn check_list(query: &Query) -> ApiResult<()> {
    let mut causes = Vec::new();
    let version = query.version.as_deref().unwrap_or_default();
    if let Some(rule) = query.version_match.as_deref() {
        let mut forbid = |why: &str| causes.push(Cause::forbidden(MATCH, why));
        if version.is_empty() {
            forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if query.continue_token.is_some() {
            forbid("resourceVersionMatch is forbidden when continue is provided");
        }
        if !matches!(rule, "Exact" | "NotOlderThan") {
            causes.push(unsupported(rule, &["Exact", "NotOlderThan", ""]));
        }
        if rule == "Exact" && version == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(Cause::forbidden(MATCH, why));
        }
    }
    if query.initial_events.is_some() {
        let why = "sendInitialEvents is forbidden for list";
        causes.push(Cause::forbidden("sendInitialEvents", why));
    }
    reject(&causes)?;
    if query.continue_token.is_some() && !version.is_empty() && version != "0" {
        let why = "specifying resource version is not allowed when using continue";
        return Err(Failure::bad_request(why));
    }
    Ok(())
}

pub(crate) fn check_watch(query: &Query) -> ApiResult<()> {
    let mut causes = Vec::new();
    let rule = query.version_match.as_deref().unwrap_or_default();
    if query.initial_events.is_some() && rule != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        causes.push(Cause::forbidden(MATCH, why));
    }
    if !rule.is_empty() {
        if query.initial_events.is_none() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            causes.push(Cause::forbidden(MATCH, why));
        }
        if rule != "NotOlderThan" {
            causes.push(unsupported(rule, &["NotOlderThan"]));
        }
    }
    if query.continue_token.is_some() {
        causes.push(Cause::forbidden("continue", "continue is forbidden for watch"));
    }
    reject(&causes)
}
