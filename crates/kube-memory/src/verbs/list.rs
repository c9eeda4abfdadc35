//! Lists, paged or whole, and the start of watches.

use std::{ops::Bound, sync::Arc};

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::kinds::Target;
use crate::request::{
    Form, Request,
    failure::{ApiResult, Failure},
    options,
};
use crate::server::{Server, ServerResponse};
use crate::store::{
    object::{Object, bare, encode, encode_in_version, metadata_only},
    selector::Filter,
    tables::table,
    watch::Watch,
};
use crate::verbs::continue_token::ContinueToken;

impl Server {
    pub(crate) fn list(&mut self, request: &Request, target: &Target) -> ApiResult<ServerResponse> {
        let query = &request.query;
        let filter = Filter::parse(&query.labels, &query.fields, target)?;
        options::check_list(query)?;
        let namespace = request.path.namespace.as_deref();
        let current = self.store.version();
        let requested = version(query.version.as_deref())
            .map_err(|why| Failure::bad_request(format!("invalid resource version: {why}")))?;
        let continue_token = match query.continue_token.as_deref() {
            None => None,
            Some(token) => Some(ContinueToken::decode(token, namespace)?),
        };
        if requested > current {
            return Err(Failure::version_too_large(requested, current));
        }
        let exact = match &continue_token {
            Some(continue_token) if continue_token.version > 0 => u64::try_from(continue_token.version).ok(),
            None if query.version_match.as_deref() == Some("Exact") && requested > 0 => Some(requested),
            _ => None,
        };
        let after = continue_token
            .as_ref()
            .map(|continue_token| &continue_token.after);
        let unchanged = |version: u64| {
            self.store
                .changes_since(target.id, version)
                .is_ok_and(|mut changes| changes.next().is_none())
        };
        let found: Vec<Arc<Object>> = match exact {
            Some(version) if !unchanged(version) => {
                let Some(objects) = self.store.at_version(target.id, version) else {
                    return Err(match &continue_token {
                        Some(continue_token) => {
                            Failure::expired_page(continue_token.for_current_state(namespace))
                        }
                        None => Failure::expired_exactly(),
                    });
                };
                let from = after.cloned().map_or(Bound::Unbounded, Bound::Excluded);
                objects
                    .range((from, Bound::Unbounded))
                    .filter(|((space, _), _)| namespace.is_none_or(|namespace| namespace == space))
                    .map(|(_, object)| object.clone())
                    .collect()
            }
            _ => self.store.iter(target.id, namespace, after).cloned().collect(),
        };
        let shown_version = exact.unwrap_or(current);
        let limit = match usize::try_from(query.limit) {
            // A list at version 0 may be served from a cache, which ignores the limit.
            Ok(limit) if limit > 0 && query.version.as_deref() != Some("0") => limit,
            _ => usize::MAX,
        };
        let mut page = Vec::new();
        let mut seen = 0;
        for object in &found {
            if page.len() == limit {
                break;
            }
            seen += 1;
            if filter.matches(object) {
                page.push(object.clone());
            }
        }
        // The rest may contain no match, so the last page may be empty, as with a real server.
        let rest = found.len() - seen;
        let next = page
            .last()
            .filter(|_| rest > 0)
            .map(|last| ContinueToken::after(shown_version, last).encode(namespace));
        let remaining = (rest > 0 && filter.is_empty()).then_some(rest);
        let body = self.list_body(request, target, page.iter(), shown_version, next, remaining);
        Ok(ServerResponse::Done { code: 200, body })
    }

    /// Returns a list's JSON, assembled from the JSON of its objects.
    pub(crate) fn list_body<'a>(
        &self,
        request: &Request,
        target: &Target,
        objects: impl Iterator<Item = &'a Arc<Object>>,
        version: u64,
        next: Option<String>,
        remaining: Option<usize>,
    ) -> Bytes {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), Value::from(version.to_string()));
        match next {
            Some(next) => {
                metadata.insert("continue".to_owned(), Value::from(next));
            }
            // Lists of custom resources always have this member.
            None if target.kind.is_custom() && request.form == Form::Whole => {
                metadata.insert("continue".to_owned(), Value::from(""));
            }
            None => {}
        }
        if let Some(remaining) = remaining {
            metadata.insert("remainingItemCount".to_owned(), Value::from(remaining));
        }
        let (api_version, kind) = match request.form {
            Form::Table(include) => {
                let objects = objects.map(AsRef::as_ref);
                return table(target, objects, metadata, include, self.store.now);
            }
            Form::Whole => (target.api_version(), target.kind.list_kind.as_str()),
            Form::MetadataOnly => ("meta.k8s.io/v1", "PartialObjectMetadataList"),
        };
        let head = format!(
            "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{},\"items\":[",
            Value::from(kind),
            Value::from(api_version),
            Value::Object(metadata)
        );
        let mut body = head.into_bytes();
        for (index, object) in objects.enumerate() {
            if index > 0 {
                body.push(b',');
            }
            let item = match request.form {
                Form::MetadataOnly | Form::Table(_) => encode(&metadata_only(object)),
                Form::Whole if target.kind.is_custom() => encode_in_version(target, object),
                Form::Whole if target.is_stored_version() => object.bare(),
                Form::Whole => bare(&target.in_request_version(object.document())),
            };
            body.extend_from_slice(&item);
        }
        body.extend_from_slice(b"]}");
        Bytes::from(body)
    }

    /// Opens a watch and queues the events after the requested version.
    pub(crate) fn watch(&mut self, request: &Request, target: &Target) -> ApiResult<ServerResponse> {
        let query = &request.query;
        let filter = Filter::parse(&query.labels, &query.fields, target)?;
        options::check_watch(query)?;
        let since = version(query.version.as_deref()).map_err(Failure::internal)?;
        let current = self.store.version();
        let initial_events = query.initial_events == Some(true);
        let initial = initial_events || since == 0;
        if initial_events && since > current {
            return Err(Failure::version_too_large(since, current));
        }
        let mut watch = Watch::new(
            target.clone(),
            request.path.namespace.clone(),
            filter,
            request.form,
            query.bookmarks,
            if initial { current } else { since },
        );
        let now = self.store.now;
        if initial {
            for object in self
                .store
                .iter(target.id, request.path.namespace.as_deref(), None)
            {
                watch.push_initial(object, now);
            }
            if initial_events && query.bookmarks {
                watch.push_initial_end(current);
            }
        } else {
            match self.store.changes_since(target.id, since) {
                Err(oldest) => watch.fail(&Failure::expired(since, oldest)),
                Ok(changes) => {
                    let mut no_wakers = Vec::new();
                    for change in changes {
                        watch.on_change(change, now, &mut no_wakers);
                    }
                }
            }
        }
        self.next_watch += 1;
        let id = self.next_watch;
        if let Some(table) = self.store.table_mut(target.id) {
            table.watches.insert(id, watch);
        }
        Ok(ServerResponse::Watch { kind: target.id, id })
    }
}

fn version(text: Option<&str>) -> Result<u64, String> {
    match text {
        None => Ok(0),
        Some(text) => text.parse().map_err(|_| {
            format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
        }),
    }
}
