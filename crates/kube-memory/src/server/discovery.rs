//! Discovery: `/version`, `/api`, `/apis` and the resources of a version.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use crate::kinds::{Family, Kind, Version, openapi, openapi_v2};
use crate::request::{
    Request,
    accept::{Accepted, Conversion, JSON, MEDIA_TYPES},
    failure::{ApiResult, Failure},
};
use crate::server::{Server, ServerResponse, aggregated, reviews::REVIEWS};
use crate::store::object::encode;

/// The formats of patches for which clients need no more than the document has. Those of strategic merge patches would
/// read the strategies of lists from it.
const PATCHES: [&str; 3] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];

/// The parameters of patches that kubectl looks for before it sends them.
const PARAMETERS: [&str; 2] = ["dryRun", "fieldValidation"];

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

const CUSTOM_VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

impl Server {
    pub(crate) fn discover(&self, request: &Request) -> ApiResult<ServerResponse> {
        if request.method != Method::GET {
            return Err(Failure::method_not_allowed());
        }
        let path = &request.path;
        let is_list = !matches!(path.group.as_str(), "health" | "openapi") && path.version != "version";
        let plain = |_, conversion: Conversion<'_>| {
            ["", "APIGroupDiscoveryList"]
                .contains(&conversion.kind)
                .then_some(())
        };
        if is_list && request.accepted.first(&MEDIA_TYPES, plain).is_none() {
            return Err(Failure::not_acceptable());
        }
        let whole = path.version.is_empty() && matches!(path.group.as_str(), "" | "*");
        if whole && aggregated::is_preferred(&request.accepted) {
            let groups = match path.group.as_str() {
                "" => BTreeMap::from([(String::new(), vec!["v1".to_owned()])]),
                _ => self.groups(),
            };
            let body = encode(&self.aggregated(&groups));
            return Ok(ServerResponse::Typed {
                media_type: aggregated::MEDIA_TYPE,
                body,
            });
        }
        if (path.group.as_str(), path.version.as_str()) == ("openapi", "v2") {
            let document = self.openapi_v2();
            if prefers_protobuf(&request.accepted) {
                return Ok(ServerResponse::Typed {
                    media_type: openapi_v2::PROTOBUF,
                    body: bytes::Bytes::from(openapi_v2::protobuf(&document)),
                });
            }
            return Ok(ServerResponse::value(200, &document));
        }
        let value = match (path.group.as_str(), path.version.as_str()) {
            ("", "version") => version_info(),
            ("health", _) => {
                let body = bytes::Bytes::from_static(b"ok");
                return Ok(ServerResponse::Done { code: 200, body });
            }
            ("", "") => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
            ("*", _) => {
                let groups: Vec<Value> = self
                    .groups()
                    .into_iter()
                    .map(|(group, versions)| group_members(&group, &versions))
                    .collect();
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
            }
            ("openapi", "") => match path.name.as_deref().unwrap_or_default() {
                "" => self.openapi(),
                document => self
                    .openapi_document(document)
                    .ok_or_else(Failure::no_such_resource)?,
            },
            (group, "") => {
                let groups = self.groups();
                let versions = groups.get(group).ok_or_else(Failure::path_not_found)?;
                group_value(group, versions)
            }
            (group, version) => self
                .resources(group, version)
                .ok_or_else(Failure::path_not_found)?,
        };
        Ok(ServerResponse::value(200, &value))
    }

    /// Returns the served versions of each group except the core group, those that clients prefer first: v1, v2beta1, v1beta1.
    fn groups(&self) -> BTreeMap<String, Vec<String>> {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for target in self.store.registry.all() {
            for version in target.kind.versions.iter().filter(|version| version.served) {
                let versions = groups.entry(version.group.clone()).or_default();
                if !versions.contains(&version.name) {
                    versions.push(version.name.clone());
                }
            }
        }
        for versions in groups.values_mut() {
            versions.sort_by_cached_key(|name| Reverse(kube::core::Version::parse(name).priority()));
        }
        for (group, ..) in REVIEWS {
            groups.insert(group.to_owned(), vec!["v1".to_owned()]);
        }
        groups.remove("");
        groups
    }

    /// Returns the list of the OpenAPI documents: one for each version of each group.
    fn openapi(&self) -> Value {
        let mut paths = serde_json::Map::new();
        let all = self
            .groups()
            .into_iter()
            .chain([(String::new(), vec!["v1".to_owned()])]);
        for (group, versions) in all {
            for version in versions {
                let path = match group.as_str() {
                    "" => format!("api/{version}"),
                    group => format!("apis/{group}/{version}"),
                };
                let url = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
                paths.insert(path, url);
            }
        }
        json!({ "paths": paths })
    }

    /// Returns the OpenAPI document of v2, for all versions of all groups.
    fn openapi_v2(&self) -> Value {
        let (mut paths, mut definitions) = (serde_json::Map::new(), serde_json::Map::new());
        let core = (String::new(), vec!["v1".to_owned()]);
        for (group, versions) in self.groups().into_iter().chain([core]) {
            for version in versions {
                let name = match group.as_str() {
                    "" => format!("api/{version}"),
                    group => format!("apis/{group}/{version}"),
                };
                let Some(mut document) = self.openapi_document(&name) else {
                    continue;
                };
                if let Some(of_version) = document["paths"].as_object_mut() {
                    for path in of_version.values_mut() {
                        path["patch"]["consumes"] = json!(PATCHES);
                        let parameter = |name| json!({"name": name, "in": "query", "type": "string"});
                        path["patch"]["parameters"] = PARAMETERS.map(parameter).into();
                    }
                    paths.append(of_version);
                }
                let schemas = document["components"]["schemas"].as_object();
                let converted = schemas.into_iter().flatten().map(|(name, schema)| {
                    let names = schema.get("x-kubernetes-group-version-kind");
                    let convert =
                        names.map_or(openapi_v2::schema as fn(&Value) -> Value, |_| openapi_v2::object);
                    (name.clone(), convert(schema))
                });
                definitions.extend(converted);
            }
        }
        json!({
            "swagger": "2.0",
            "info": {"title": "kube-memory", "version": "v1"},
            "paths": paths,
            "definitions": definitions,
        })
    }

    /// Returns what kubectl reads of an OpenAPI document such as `apis/kubeflow.org/v1`: that fields are validated here,
    /// and the schemas of definitions, for `kubectl explain`.
    fn openapi_document(&self, document: &str) -> Option<Value> {
        let (group, version) = match document.split_once('/')? {
            ("api", version) => ("", version),
            ("apis", rest) => rest.split_once('/')?,
            _ => return None,
        };
        let parameter = |name| json!({"name": name, "in": "query", "schema": {"type": "string"}});
        let mut paths = serde_json::Map::new();
        let mut schemas = openapi::schemas(group, version);
        for target in self.store.registry.all() {
            let kind = &target.kind;
            if served(kind, group, version).is_none() {
                continue;
            }
            let names = json!({"group": group, "version": version, "kind": kind.kind});
            let namespace = if kind.namespaced {
                "namespaces/{namespace}/"
            } else {
                ""
            };
            paths.insert(
                format!("/{document}/{namespace}{}/{{name}}", kind.plural),
                json!({"patch": {
                    "parameters": PARAMETERS.map(parameter),
                    "responses": {},
                    "x-kubernetes-group-version-kind": names,
                }}),
            );
            let definition = format!("{}.{group}", kind.plural);
            if let Some(mut schema) = self.schema_of(&definition, version) {
                schema["x-kubernetes-group-version-kind"] = json!([names]);
                let reversed = group.rsplit('.').collect::<Vec<_>>().join(".");
                schemas.insert(format!("{reversed}.{version}.{}", kind.kind), schema);
            }
        }
        (!paths.is_empty()).then(|| {
            json!({
                "openapi": "3.0.0",
                "info": {"title": "kube-memory", "version": "v1"},
                "paths": paths,
                "components": {"schemas": schemas},
            })
        })
    }

    /// Returns the schema of a version of a CustomResourceDefinition.
    fn schema_of(&self, definition: &str, version: &str) -> Option<Value> {
        let target = self.store.registry.by_plural("customresourcedefinitions")?;
        let object = self.store.get(target.id, "", definition)?;
        let mut versions = object.value()["spec"]["versions"].as_array()?.iter();
        let found = versions.find(|found| found["name"] == version)?;
        Some(found["schema"]["openAPIV3Schema"].clone()).filter(Value::is_object)
    }

    pub(super) fn resources(&self, group: &str, version: &str) -> Option<Value> {
        let mut resources = Vec::new();
        let mut api_version = None;
        for target in self.store.registry.all() {
            let Some(found) = served(&target.kind, group, version) else {
                continue;
            };
            api_version = Some(found.api_version.clone());
            describe(&target.kind, found, &mut resources);
            for subresource in self
                .subresources
                .values()
                .filter(|sub| sub.resource == target.kind.plural)
            {
                resources.push(json!({
                    "name": format!("{}/{}", subresource.resource, subresource.name),
                    "singularName": "",
                    "namespaced": target.kind.namespaced,
                    "kind": subresource.kind,
                    "verbs": subresource.verbs,
                }));
            }
        }
        for (_, plural, kind, namespaced) in REVIEWS.iter().filter(|(of, ..)| *of == group && version == "v1")
        {
            api_version = Some(format!("{group}/{version}"));
            resources.push(json!({
                "name": plural,
                "singularName": kind.to_lowercase(),
                "namespaced": namespaced,
                "kind": kind,
                "verbs": ["create"],
            }));
        }
        let api_version = api_version?;
        Some(json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources,
        }))
    }
}

/// Returns true if a client prefers OpenAPI v2 in protobuf.
fn prefers_protobuf(accepted: &Accepted) -> bool {
    let names = [JSON, openapi_v2::PROTOBUF, openapi_v2::OLD_PROTOBUF];
    accepted.first(&names, |name, _| Some(name != JSON)) == Some(true)
}

/// Returns the version of a kind if it is served.
fn served<'k>(kind: &'k Kind, group: &str, version: &str) -> Option<&'k Version> {
    let mut versions = kind.versions.iter();
    versions.find(|found| found.served && found.group == group && found.name == version)
}

/// Returns the verbs of a kind in the order of a real server.
fn verbs(kind: &Kind) -> Vec<&'static str> {
    match kind.family {
        Family::Custom => CUSTOM_VERBS.to_vec(),
        Family::Namespace => VERBS
            .into_iter()
            .filter(|verb| *verb != "deletecollection")
            .collect(),
        _ => VERBS.to_vec(),
    }
}

fn describe(kind: &Kind, version: &Version, resources: &mut Vec<Value>) {
    let mut whole = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs(kind),
    });
    for (key, names) in [
        ("shortNames", &kind.short_names),
        ("categories", &kind.categories),
    ] {
        if !names.is_empty() {
            whole[key] = json!(names);
        }
    }
    resources.push(whole);
    let sub = |name: &str, kind_name: &str, verbs: &[&str]| {
        json!({
            "name": format!("{}/{name}", kind.plural),
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": kind_name,
            "verbs": verbs,
        })
    };
    if version.status {
        resources.push(sub("status", &kind.kind, &["get", "patch", "update"]));
    }
    if version.scale.is_some() {
        let mut scale = sub("scale", "Scale", &["get", "patch", "update"]);
        scale["group"] = json!("autoscaling");
        scale["version"] = json!("v1");
        resources.push(scale);
    }
    if kind.family == Family::Pod {
        resources.push(sub("binding", "Binding", &["create"]));
        let mut eviction = sub("eviction", "Eviction", &["create"]);
        eviction["group"] = json!("policy");
        eviction["version"] = json!("v1");
        resources.push(eviction);
    }
}

fn group_value(group: &str, versions: &[String]) -> Value {
    let mut value = group_members(group, versions);
    value["kind"] = json!("APIGroup");
    value["apiVersion"] = json!("v1");
    value
}

/// Returns a group as an item of the list of groups.
fn group_members(group: &str, versions: &[String]) -> Value {
    let shown: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "versions": shown, "preferredVersion": shown.first()})
}

fn version_info() -> Value {
    json!({
        "major": "1",
        "minor": "35",
        "gitVersion": "v1.35.0-memory",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "memory",
    })
}
