//! Normalized objects: without defaults of the API server, times and identities.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

/// The finalizer that keeps a pod while it is being deleted.
pub(crate) const HOLD: &str = "compat.example.com/hold";

type Object = Map<String, Value>;

fn object(value: &Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

/// Removes the API server's defaults.
fn strip(object: &mut Object, defaults: Value) {
    for (key, default) in defaults.as_object().unwrap() {
        if object.get(key) == Some(default) {
            object.remove(key);
        }
    }
}

/// Filters a list of objects, and removes the list if it is then empty.
fn retain(object: &mut Object, key: &str, keep: impl Fn(&Value) -> bool) {
    if let Some(Value::Array(items)) = object.get_mut(key) {
        items.retain(keep);
        if items.is_empty() {
            object.remove(key);
        }
    }
}

fn is_token(item: &Value) -> bool {
    item["name"]
        .as_str()
        .is_some_and(|name| name.starts_with("kube-api-access-"))
}

fn container(value: &Value) -> Value {
    let mut it = object(value);
    let image = it.get("image").and_then(Value::as_str).unwrap_or_default();
    let latest = image.ends_with(":latest") || !image.rsplit('/').next().unwrap().contains([':', '@']);
    strip(
        &mut it,
        json!({
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {},
            "imagePullPolicy": if latest { "Always" } else { "IfNotPresent" },
        }),
    );
    for port in it
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        strip(port.as_object_mut().unwrap(), json!({"protocol": "TCP"}));
    }
    retain(&mut it, "volumeMounts", |mount| !is_token(mount));
    it.into()
}

fn pod_spec(spec: &Value) -> Value {
    let mut spec = object(spec);
    strip(
        &mut spec,
        json!({
            "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0, "schedulerName": "default-scheduler", "securityContext": {},
            "terminationGracePeriodSeconds": 30, "serviceAccountName": "default",
        }),
    );
    // Our operator sets it in every pod.
    strip(&mut spec, json!({"enableServiceLinks": false}));
    // `serviceAccount` repeats `serviceAccountName`.
    spec.remove("nodeName");
    spec.remove("serviceAccount");
    retain(&mut spec, "tolerations", |t| {
        let of_nodes = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
        !(of_nodes.iter().any(|key| t["key"] == *key) && t["tolerationSeconds"] == 300)
    });
    retain(&mut spec, "volumes", |volume| !is_token(volume));
    for key in ["containers", "initContainers"] {
        if let Some(Value::Array(items)) = spec.get_mut(key) {
            items.iter_mut().for_each(|item| *item = container(item));
        }
    }
    spec.into()
}

/// Returns the labels, annotations, finalizers, owners, and whether the object is being deleted.
pub(crate) fn meta(value: &Value, job: &str) -> Object {
    let meta = &value["metadata"];
    let mut out = Object::new();
    for key in ["labels", "annotations"] {
        if meta[key].as_object().is_some_and(|map| !map.is_empty()) {
            out.insert(key.to_owned(), meta[key].clone());
        }
    }
    let finalizers = meta["finalizers"].as_array().into_iter().flatten();
    let finalizers: Vec<_> = finalizers.filter(|f| *f != HOLD).cloned().collect();
    if !finalizers.is_empty() {
        out.insert("finalizers".to_owned(), finalizers.into());
    }
    if let Some(owners) = meta["ownerReferences"].as_array() {
        let owner = |owner: &Value| -> Value {
            let mut owner = object(owner);
            let uid = if owner["uid"] == job {
                "<the job>"
            } else {
                "<other>"
            };
            owner.insert("uid".to_owned(), uid.into());
            owner.into()
        };
        out.insert("ownerReferences".to_owned(), owners.iter().map(owner).collect());
    }
    if !meta["deletionTimestamp"].is_null() {
        out.insert("terminating".to_owned(), true.into());
    }
    out
}

pub(crate) fn pod(value: &Value, job: &str, recreated: bool) -> Value {
    let mut out = meta(value, job);
    out.insert("phase".to_owned(), value["status"]["phase"].clone());
    if recreated {
        out.insert("recreated".to_owned(), true.into());
    }
    out.insert("spec".to_owned(), pod_spec(&value["spec"]));
    out.into()
}

pub(crate) fn service(value: &Value, job: &str) -> Value {
    let given = &value["spec"];
    let mut out = meta(value, job);
    let ports = given["ports"].as_array().into_iter().flatten();
    let mut ports: Vec<_> = ports.map(object).collect();
    for port in &mut ports {
        let number = port["port"].clone();
        strip(port, json!({"protocol": "TCP", "targetPort": number}));
    }
    // The Go operator writes them in random order.
    ports.sort_by_key(|port| {
        let name = port.get("name").and_then(Value::as_str).unwrap_or_default();
        (name.to_owned(), port["port"].as_i64())
    });
    let address = match given["clusterIP"].as_str() {
        Some("None") => "None",
        _ => "<ip>",
    };
    let mut spec = Object::new();
    spec.insert("clusterIP".to_owned(), address.into());
    spec.insert("selector".to_owned(), given["selector"].clone());
    spec.insert("ports".to_owned(), ports.into_iter().map(Value::from).collect());
    let mut more = Object::new();
    for key in ["type", "publishNotReadyAddresses", "sessionAffinity"] {
        if let Some(value) = given.get(key) {
            more.insert(key.to_owned(), value.clone());
        }
    }
    strip(
        &mut more,
        json!({"type": "ClusterIP", "publishNotReadyAddresses": false, "sessionAffinity": "None"}),
    );
    spec.extend(more);
    out.insert("spec".to_owned(), spec.into());
    out.into()
}

/// Returns any other object without its status.
pub(crate) fn other(value: &Value, job: &str) -> Value {
    let mut out = meta(value, job);
    let content = object(value).into_iter();
    let told = ["metadata", "kind", "apiVersion", "status"];
    out.extend(content.filter(|(key, _)| !told.contains(&key.as_str())));
    if out
        .get("type")
        .is_some_and(|type_| type_ == "kubernetes.io/ssh-auth")
    {
        out.insert("data".to_owned(), keys(&value["data"]));
    }
    out.into()
}

/// Returns what the values of a key pair are.
fn keys(data: &Value) -> Value {
    let describe = |value: &Value| {
        let bytes = BASE64_STANDARD.decode(value.as_str().unwrap_or_default());
        let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        let forms = [
            (
                "-----BEGIN EC PRIVATE KEY-----\n",
                "<private key, PEM EC PRIVATE KEY>",
            ),
            (
                "ecdsa-sha2-nistp521 ",
                "<public key ecdsa-sha2-nistp521, of the private key>",
            ),
        ];
        let form = forms.iter().find(|(begin, _)| text.starts_with(begin));
        json!(form.map_or("<other>", |(_, form)| form))
    };
    let data = data.as_object().into_iter().flatten();
    data.map(|(key, value)| (key.clone(), describe(value))).collect()
}

/// Returns the status and the true conditions. The times of start and end are replaced by whether they have `moved`
/// since the last step.
pub(crate) fn status(status: &Value, before: &Value) -> (Value, Value) {
    let mut out = object(status);
    // The controller keeps its own records in this field.
    out.remove("recovery");
    // These fields for `kubectl get` follow from the others, and the Go operator has none of them.
    out.remove("ready");
    out.remove("waitingReason");
    out.remove("waitingSince");
    for key in ["startTime", "completionTime"] {
        if let Some(time) = out.get_mut(key) {
            let moved = before.get(key).is_some_and(|before| before != time);
            *time = if moved { "<time, changed>" } else { "<time>" }.into();
        }
    }
    let mut state = Vec::new();
    for condition in out
        .get_mut("conditions")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if condition["status"] == "True" {
            state.push(condition["type"].clone());
        }
        for key in ["lastTransitionTime", "lastUpdateTime"] {
            if let Some(time) = condition.get_mut(key) {
                *time = "<time>".into();
            }
        }
    }
    if let Some(latest) = out.get_mut("failure") {
        hide_time(latest);
    }
    let earlier = out.get_mut("failureHistory").and_then(Value::as_array_mut);
    earlier.into_iter().flatten().for_each(hide_time);
    (out.into(), state.into())
}

/// Hides the time of a failure. The time of a deletion may be missing, because only an operator that observed it has it.
fn hide_time(failure: &mut Value) {
    let is_deletion = failure["reason"] == "PodDeleted";
    let Some(failure) = failure.as_object_mut() else {
        return;
    };
    failure.remove("summary");
    let time = failure.remove("time").filter(|_| !is_deletion);
    failure.extend(time.map(|_| ("time".to_owned(), "<time>".into())));
}

/// Returns one line for each object that an event names: our operator sends one event for all pods of a pass.
/// Empty if no operator sent the event.
pub(crate) fn event(value: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let source = match text(&value["source"]["component"]) {
        source if source.is_empty() => text(&value["reportingComponent"]),
        source => source,
    };
    if !source.ends_with("job-controller") {
        return Vec::new();
    }
    let about = &value["involvedObject"];
    let [type_, reason, message] = ["type", "reason", "message"].map(|key| text(&value[key]));
    let (type_, message) = of_failed_job(&type_, &reason, &message);
    let head = format!(
        "{type_} {reason} ({source}, {}/{})",
        text(&about["kind"]),
        text(&about["name"]),
    );
    let several = ["Created pod", "Deleted pod", "Created service", "Deleted service"];
    for done in several {
        if let Some(names) = message.strip_prefix(&format!("{done}s: ")) {
            let (names, more) = names.split_once(" and ").unwrap_or((names, ""));
            let mut lines: Vec<_> = names
                .split(", ")
                .map(|n| format!("{head}: {done}: {n}"))
                .collect();
            if !more.is_empty() {
                lines.push(format!("{head}: {MORE}"));
            }
            return lines;
        }
    }
    vec![format!("{head}: {message}")]
}

/// The line of docs/users/differences.md about the events of failed jobs.
pub(crate) const FAILED_JOB: &str = "the event of a failed job is Normal, unless an exit code is permanent";

/// Returns the type and message that the Go operator gives the event of a failed job. Ours is a Warning with the same
/// sentence, and the cause in parentheses after it. This is the only event whose text differs.
fn of_failed_job<'m>(type_: &'m str, reason: &str, message: &'m str) -> (&'m str, &'m str) {
    let cause = message.split_once(" (").filter(|(_, cause)| cause.ends_with(')'));
    match cause {
        Some((sentence, _)) if type_ == "Warning" && reason.ends_with("JobFailed") => {
            let is_permanent = sentence.contains(" is failing because ");
            (if is_permanent { "Warning" } else { "Normal" }, sentence)
        }
        _ => (type_, message),
    }
}

/// Stands in the line of an event that does not name all its objects.
pub(crate) const MORE: &str = "<more>";

#[test]
fn each_object_has_an_event() {
    let mut value = json!({
        "type": "Normal", "reason": "R", "source": {"component": "mxjob-controller"},
        "involvedObject": {"kind": "MXJob", "name": "j"}, "message": "Created pods: a, b and 3 more",
    });
    let head = "Normal R (mxjob-controller, MXJob/j)";
    let expected = ["Created pod: a", "Created pod: b", "<more>"].map(|m| format!("{head}: {m}"));
    assert_eq!(event(&value), expected);
    value["message"] = "Created pod: a".into();
    assert_eq!(event(&value), [format!("{head}: Created pod: a")]);
    value["source"]["component"] = "kubelet".into();
    assert!(event(&value).is_empty());
}

#[test]
fn only_type_and_cause_of_the_event_of_a_failed_job_differ() {
    let failed = |type_| {
        of_failed_job(
            type_,
            "MXJobFailed",
            "1 Worker replica(s) failed. (w-0: exit code 1)",
        )
    };
    assert_eq!(failed("Warning"), ("Normal", "1 Worker replica(s) failed."));
    assert_eq!(failed("Normal").0, "Normal");
    assert!(
        failed("Normal").1.ends_with(')'),
        "an event of the wrong type differs"
    );
    let by_code = "job \"job\" is failing because \"Worker\" replica(s) failed.";
    let ours = format!("{by_code} (w-0: exit code 1)");
    assert_eq!(
        of_failed_job("Warning", "MXJobFailed", &ours),
        ("Warning", by_code)
    );
    assert_eq!(
        of_failed_job("Warning", "MXJobFailed", by_code),
        ("Warning", by_code)
    );
    let other = ("Warning", "an event (of another reason)");
    assert_eq!(of_failed_job(other.0, "FailedCreatePod", other.1), other);
}
