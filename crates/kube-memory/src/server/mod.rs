//! The synchronous core: one request, one response.

mod aggregated;
pub(crate) mod commit;
pub(crate) mod discovery;
pub(crate) mod reviews;

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds;
use crate::kinds::{Description, Kind, Target};
use crate::object::document::Document;
use crate::request::{
    Form, Request,
    failure::{ApiResult, Failure},
};
use crate::storage::Storage;
use crate::store::{
    Store,
    object::{Object, encode, encode_in_version, metadata_only},
    tables::table_of_one,
};
use crate::subresource::{Subresource, Subresources};

/// The greatest size of a request's body in bytes.
const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// The settings that a cluster was built with.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    pub(crate) auto_namespaces: bool,
    pub(crate) manual_collection: bool,
    /// True to serve the built-in kinds that are only stored.
    pub(crate) stored_kinds: bool,
    /// True to evaluate the rules of definitions.
    #[cfg(feature = "rules")]
    pub(crate) rules: bool,
}

/// The whole state of a cluster.
pub(crate) struct Server {
    pub(crate) store: Store,
    pub(crate) settings: Settings,
    pub(crate) uids: u64,
    pub(crate) suffixes: u64,
    pub(crate) addresses: u32,
    pub(crate) next_watch: u64,
    pub(crate) subresources: Subresources,
    pub(crate) storage: Option<Box<dyn Storage>>,
}

/// A response: either complete, or a watch to read from.
pub(crate) enum ServerResponse {
    Done {
        code: u16,
        body: Bytes,
    },
    /// A response with code 200 in another format than JSON or text.
    Typed {
        media_type: &'static str,
        body: Bytes,
    },
    Watch {
        kind: usize,
        id: u64,
    },
}

impl ServerResponse {
    pub(crate) fn value(code: u16, value: &Value) -> Self {
        Self::Done {
            code,
            body: encode(value),
        }
    }

    pub(crate) fn failure(failure: &Failure) -> Self {
        if failure.is_plain_text {
            return Self::Done {
                code: failure.code,
                body: Bytes::from(failure.message.clone()),
            };
        }
        Self::value(failure.code, &failure.to_value())
    }
}

impl Server {
    pub(crate) fn new(settings: Settings, history_limit: usize, now: Timestamp) -> Self {
        let mut server = Self {
            store: Store::new(0, history_limit),
            settings,
            uids: 0,
            suffixes: 0,
            addresses: 0,
            next_watch: 0,
            subresources: Subresources::new(),
            storage: None,
        };
        for kind in kinds::built_in() {
            server.install(kind);
        }
        if server.settings.stored_kinds {
            for kind in kinds::stored::kinds() {
                server.install(kind);
            }
        }
        for namespace in ["default", "kube-system"] {
            server.ensure_namespace(namespace, now);
        }
        server
    }

    pub(crate) fn install(&mut self, kind: Kind) {
        let id = Arc::make_mut(&mut self.store.registry).add(kind);
        // The table must exist before the first watch.
        let _ = self.store.table_mut(id);
    }

    /// Returns true if a kind of this group, version and plural is served.
    pub(crate) fn serves(&self, description: &Description) -> bool {
        let kind = &description.kind;
        let Some(version) = kind.stored() else {
            return false;
        };
        let found = self
            .store
            .registry
            .find(&version.group, &version.name, &kind.plural);
        found.is_some()
    }

    pub(crate) fn install_description(&mut self, description: Description) {
        self.install(description.kind);
    }

    /// Returns a warning for the client that creates an object which no controller acts on.
    pub(crate) fn warning(&self, request: &Request) -> Option<String> {
        let path = &request.path;
        if request.method != Method::POST || path.name.is_some() {
            return None;
        }
        let target = self
            .store
            .registry
            .find(&path.group, &path.version, &path.plural)?;
        let kind = &target.kind;
        (kind.family == kinds::Family::Stored && kinds::stored::is_workload(&kind.kind)).then(|| {
            let name = &kind.kind;
            format!("no controller of this cluster acts on a {name}: it is stored, and gets no pods")
        })
    }

    /// Handles a request, then runs the collector until its queue is empty, unless collection is manual.
    /// Stores the changes of both.
    pub(crate) fn handle(&mut self, request: &Request, now: Timestamp) -> ServerResponse {
        self.store.now = now;
        let kinds = self.kinds_to_restore();
        let response = match self.route(request, now) {
            Ok(response) => response,
            Err(failure) => ServerResponse::failure(&failure),
        };
        if !self.settings.manual_collection {
            while self.collect_step(now) {}
        }
        if request.method != Method::GET {
            self.count_quotas();
        }
        match self.commit(kinds) {
            // A read returns objects that were stored before.
            Err(failure) if request.method != Method::GET => ServerResponse::failure(&failure),
            _ => response,
        }
    }

    fn route(&mut self, request: &Request, now: Timestamp) -> ApiResult<ServerResponse> {
        if request.body.len() > MAX_BODY_BYTES {
            return Err(Failure::too_large(MAX_BODY_BYTES));
        }
        let path = &request.path;
        if path.plural.is_empty() {
            return self.discover(request);
        }
        if let Some(response) = reviews::review(request) {
            return response;
        }
        let target = self
            .store
            .registry
            .find(&path.group, &path.version, &path.plural)
            .ok_or_else(|| self.not_served(&path.group, &path.version))?;
        if !request.is_acceptable {
            return Err(Failure::not_acceptable());
        }
        if !target.kind.namespaced && path.namespace.is_some() {
            return Err(Failure::no_such_resource());
        }
        let Some(name) = path.name.as_deref() else {
            return self.on_collection(request, &target, now);
        };
        if target.kind.namespaced && path.namespace.is_none() {
            return Err(Failure::no_such_resource());
        }
        match path.subresource.as_deref() {
            None => self.on_object(request, &target, name, false, now),
            Some("status") if target.has_status() => self.on_object(request, &target, name, true, now),
            Some(other) => self.on_subresource(request, &target, name, other, now),
        }
    }

    fn on_collection(
        &mut self,
        request: &Request,
        target: &Target,
        now: Timestamp,
    ) -> ApiResult<ServerResponse> {
        match request.method {
            Method::GET if request.query.watch => self.watch(request, target),
            Method::GET => self.list(request, target),
            Method::POST => {
                if target.kind.namespaced && request.path.namespace.is_none() {
                    return Err(Failure::method_not_allowed());
                }
                self.create(request, target, now)
            }
            Method::DELETE if target.kind.family == kinds::Family::Namespace => {
                Err(Failure::method_not_allowed())
            }
            Method::DELETE => self.delete_collection(request, target, now),
            _ if target.kind.is_custom() => Err(Failure::bad_request("name must be provided")),
            _ => Err(Failure::method_not_allowed()),
        }
    }

    /// Returns the failure for a resource that is not served. It is a `Status` only in groups of built-in kinds.
    fn not_served(&self, group: &str, version: &str) -> Box<Failure> {
        let mut all = self.store.registry.all();
        let known = group.is_empty()
            || all.any(|target| {
                let is_version = target.group() == group && target.version_name() == version;
                is_version && !target.kind.is_custom()
            });
        if known {
            Failure::no_such_resource()
        } else {
            Failure::path_not_found()
        }
    }

    fn on_object(
        &mut self,
        request: &Request,
        target: &Target,
        name: &str,
        is_status: bool,
        now: Timestamp,
    ) -> ApiResult<ServerResponse> {
        let of_status = is_status && target.kind.is_custom();
        match request.method {
            Method::GET => {
                let object = self.find(request, target, name)?;
                Ok(self.object_response(200, request, target, object))
            }
            Method::PUT => self.replace(request, target, name, is_status, now),
            Method::PATCH => self.patch(request, target, name, is_status, now),
            Method::DELETE if !is_status => self.delete(request, target, name, now),
            Method::POST if of_status => Err(Failure::verb_not_supported(target, "create")),
            Method::DELETE if of_status => Err(Failure::verb_not_supported(target, "delete")),
            _ => Err(Failure::method_not_allowed()),
        }
    }

    fn on_subresource(
        &mut self,
        request: &Request,
        target: &Target,
        name: &str,
        subresource: &str,
        now: Timestamp,
    ) -> ApiResult<ServerResponse> {
        if let Some(paths) = target.scale().filter(|_| subresource == "scale") {
            return self.on_scale(request, target, name, paths, now);
        }
        match (target.kind.family, subresource, &request.method) {
            (kinds::Family::Pod, "binding", &Method::POST) => self.bind(request, target, name, now),
            (kinds::Family::Pod, "eviction", &Method::POST) => self.evict(request, target, name, now),
            _ if target.kind.is_custom() => Err(Failure::not_found(target, name)),
            _ => Err(Failure::no_such_resource()),
        }
    }

    /// Returns the sub-resource that a request is for, if the embedding program serves it, and the object.
    pub(crate) fn served_subresource(
        &self,
        request: &Request,
    ) -> ApiResult<Option<(Subresource, Arc<Object>)>> {
        let path = &request.path;
        let name = path.subresource.as_deref().unwrap_or_default();
        let key = (path.plural.clone(), name.to_owned());
        let Some(subresource) = self.subresources.get(&key) else {
            return Ok(None);
        };
        let Some(target) = self.store.registry.find(&path.group, &path.version, &path.plural) else {
            return Ok(None);
        };
        let object = self.find(request, &target, path.name.as_deref().unwrap_or_default())?;
        Ok(Some((subresource.clone(), object.clone())))
    }

    /// Returns the object that a path names.
    pub(crate) fn find(&self, request: &Request, target: &Target, name: &str) -> ApiResult<&Arc<Object>> {
        let namespace = request.path.namespace.as_deref().unwrap_or_default();
        self.store
            .get(target.id, namespace, name)
            .ok_or_else(|| Failure::not_found(target, name))
    }

    /// Returns an object as a response, in the requested form.
    pub(crate) fn object_response(
        &self,
        code: u16,
        request: &Request,
        target: &Target,
        object: &Object,
    ) -> ServerResponse {
        let body = match request.form {
            Form::Whole => encode_in_version(target, object),
            Form::MetadataOnly => encode(&metadata_only(object)),
            Form::Table(include) => table_of_one(target, object, include, self.store.now),
        };
        ServerResponse::Done { code, body }
    }

    /// Formats a time as in objects: RFC 3339, whole seconds, UTC.
    pub(crate) fn timestamp(&self, time: Timestamp) -> String {
        let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
        whole.to_string()
    }

    /// Returns the next UID. It has the form of a random one, but is the same in every run with the same seed.
    pub(crate) fn next_uid(&mut self) -> String {
        self.uids += 1;
        let high = mix(self.settings.seed ^ mix(self.uids));
        let low = mix(high ^ self.uids.rotate_left(32));
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// Returns five characters for a generated name.
    pub(crate) fn next_suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        self.suffixes += 1;
        let mut bits = mix(self.settings.seed.rotate_left(17) ^ mix(self.suffixes));
        let mut suffix = String::with_capacity(5);
        for _ in 0..5 {
            let index = (bits % ALPHABET.len() as u64) as usize;
            bits /= ALPHABET.len() as u64;
            suffix.push(ALPHABET.get(index).copied().map_or('x', char::from));
        }
        suffix
    }

    /// Returns the next cluster address of a service, in 10.96.0.0/12.
    pub(crate) fn next_address(&mut self) -> String {
        self.addresses = self.addresses % 0x000f_fffe + 1;
        let [_, b, c, d] = self.addresses.to_be_bytes();
        format!("10.{}.{c}.{d}", 96 + u32::from(b))
    }

    /// Creates a namespace unless it exists.
    pub(crate) fn ensure_namespace(&mut self, name: &str, now: Timestamp) {
        let Some(target) = self.store.registry.find("", "v1", "namespaces") else {
            return;
        };
        if self.store.get(target.id, "", name).is_none() {
            let mut body = Document::default();
            body.insert("apiVersion", json!("v1"));
            body.insert("kind", json!("Namespace"));
            body.insert("metadata", json!({ "name": name }));
            // Only the name can be invalid. The caller's request then fails too, because the namespace does not
            // exist.
            let _ = self.insert(&target, "", body, None, false, now);
        }
    }
}

/// The finalizer of SplitMix64: a bijection that scatters neighboring numbers.
fn mix(value: u64) -> u64 {
    let mut bits = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
