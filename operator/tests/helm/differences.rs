//! Compares objects by what they mean, and lists the intended differences between kustomize and the chart.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// The differences that are intended: a kind and optionally a name, the start of a path, and the reason.
pub(crate) const INTENDED: &str = "\
* | /metadata/labels/helm.sh/chart | a standard label of Helm
* | /metadata/labels/app.kubernetes.io/instance | the release
* | /metadata/labels/app.kubernetes.io/managed-by | a standard label of Helm
Namespace kubeflow | - | helm --create-namespace creates it, and helm uninstall keeps it
CustomResourceDefinition | /metadata/annotations/helm.sh/resource-policy | helm uninstall keeps them
CustomResourceDefinition | /metadata/labels/ | kustomize has only the labels that training-operator crd prints
ClusterRole training-jobs-namespace-admin | /metadata/labels/app.kubernetes.io/ | kustomize has no standard labels on it
ClusterRole kubeflow-training- | /metadata/labels/app.kubernetes.io/ | kustomize has no standard labels on them
PodMonitor | /metadata/labels/app.kubernetes.io/ | kustomize has only the name
PrometheusRule | /metadata/labels/app.kubernetes.io/ | kustomize has only the name
ConfigMap training-operator-dashboard | /metadata/labels/app.kubernetes.io/ | kustomize has no standard labels on it
Deployment | /spec/template/metadata/labels/app.kubernetes.io/instance | the release
Deployment | /spec/template/spec/containers/0/imagePullPolicy | the API server's default
Deployment | /spec/template/spec/containers/0/args/--zap-log-level | the program's default
Deployment | /spec/template/spec/containers/0/env/0/value | the namespace of the jobs may be another than the release's
";

/// Returns the differences between two sets of objects, as an object, a path and both values.
pub(crate) fn differences(kustomize: &[Value], helm: &[Value]) -> Vec<(String, String, String)> {
    let [kustomize, helm] = [kustomize, helm].map(|objects| {
        let named = objects.iter().map(|object| (name(object), leaves(object)));
        named.collect::<BTreeMap<_, _>>()
    });
    let names: BTreeSet<&String> = kustomize.keys().chain(helm.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        let (Some(left), Some(right)) = (kustomize.get(name), helm.get(name)) else {
            let only = if helm.contains_key(name) {
                "Helm"
            } else {
                "kustomize"
            };
            found.push((name.clone(), String::new(), format!("only {only} has it")));
            continue;
        };
        let paths: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
        for path in paths {
            let (left, right) = (left.get(path), right.get(path));
            if left != right {
                found.push((
                    name.clone(),
                    path.clone(),
                    format!("kustomize {left:?}, Helm {right:?}"),
                ));
            }
        }
    }
    found
}

pub(crate) fn is_intended([kind, start, _]: &[&str; 3], (name, path, _): &(String, String, String)) -> bool {
    let is_whole = *start == "-";
    (*kind == "*" || name.starts_with(kind))
        && is_whole == path.is_empty()
        && (is_whole || path.starts_with(start))
}

fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let name = format!("{} {}", text(&object["kind"]), text(&metadata["name"]));
    match text(&metadata["namespace"]) {
        namespace if namespace.is_empty() => name,
        namespace => format!("{name} in {namespace}"),
    }
}

/// Returns the values of an object by their paths.
fn leaves(object: &Value) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let mut object = object.clone();
    if let Some(rules) = object.get_mut("rules") {
        *rules = permissions(rules);
    }
    if let Some(arguments) = object.pointer_mut("/spec/template/spec/containers/0/args") {
        *arguments = flags(arguments);
    }
    add_leaves(&object, "", &mut all);
    all
}

fn add_leaves(value: &Value, path: &str, all: &mut BTreeMap<String, Value>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().map(|(k, v)| (k.clone(), v)).collect()
        }
        Value::Array(items) if !items.is_empty() => items
            .iter()
            .enumerate()
            .map(|(n, v)| (n.to_string(), v))
            .collect(),
        _ => return drop(all.insert(path.to_owned(), value.clone())),
    };
    for (name, child) in children {
        add_leaves(child, &format!("{path}/{name}"), all);
    }
}

/// Returns the permissions of rules, one by one.
pub(crate) fn permissions(rules: &Value) -> Value {
    let texts = |list: &Value| -> Vec<String> { serde_json::from_value(list.clone()).unwrap_or_default() };
    let mut all = Map::new();
    for rule in rules.as_array().into_iter().flatten() {
        let only = texts(&rule["resourceNames"]).join(",");
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    all.insert(format!("{verb} {resource}.{group} {only}"), true.into());
                }
            }
        }
    }
    all.into()
}

/// Returns the values of flags by their names. A flag that is repeated has all its values, in order.
fn flags(arguments: &Value) -> Value {
    let mut all = BTreeMap::<String, BTreeSet<String>>::new();
    for argument in arguments.as_array().unwrap() {
        let argument = argument.as_str().unwrap();
        let (name, values) = argument.split_once('=').unwrap_or((argument, "true"));
        let values = values.split(',').map(str::to_owned);
        all.entry(name.to_owned()).or_default().extend(values);
    }
    serde_json::to_value(all).unwrap()
}
