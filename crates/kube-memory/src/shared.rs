//! The state that handles to a cluster share: the server under a lock, and its clock.

use std::{sync::Arc, task::Waker, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;

use parking_lot::Mutex;

use crate::request::{Request, failure::ApiResult};
use crate::server::{Server, ServerResponse};
use crate::store::{object::Object, watch::Watch};
use crate::subresource::Subresource;

pub(crate) type Clock = Box<dyn Fn() -> Timestamp + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) server: Mutex<Server>,
    pub(crate) clock: Clock,
    pub(crate) bookmark_interval: Option<Duration>,
}

impl Shared {
    /// Runs `act` on the locked server, then wakes the watches that have lines to read.
    pub(crate) fn locked<T>(&self, act: impl FnOnce(&mut Server) -> T) -> T {
        let mut server = self.server.lock();
        let result = act(&mut server);
        let wakers = std::mem::take(&mut server.store.wakers);
        drop(server);
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    pub(crate) fn handle(&self, request: &Request) -> ServerResponse {
        let now = (self.clock)();
        self.locked(|server| server.handle(request, now))
    }

    pub(crate) fn warning(&self, request: &Request) -> Option<String> {
        // Other requests do not take the lock.
        (request.method == http::Method::POST).then(|| self.server.lock().warning(request))?
    }

    /// Returns the sub-resource that a request is for, if the embedding program serves it, and the object. Most requests
    /// do not take the lock.
    pub(crate) fn served_subresource(
        &self,
        request: &Request,
    ) -> ApiResult<Option<(Subresource, Arc<Object>)>> {
        match request.path.subresource.as_deref() {
            None | Some("status") => Ok(None),
            Some(_) => self.server.lock().served_subresource(request),
        }
    }

    pub(crate) fn with_watch<T>(&self, kind: usize, id: u64, act: impl FnOnce(&mut Watch) -> T) -> Option<T> {
        let mut server = self.server.lock();
        server.store.table_mut(kind)?.watches.get_mut(&id).map(act)
    }

    /// Returns a bookmark, unless it would overtake unsent lines.
    pub(crate) fn bookmark_line(&self, kind: usize, id: u64) -> Option<Bytes> {
        let server = self.server.lock();
        let version = server.store.version();
        server.store.table(kind)?.watches.get(&id)?.bookmark(version)
    }

    pub(crate) fn close_watch(&self, kind: usize, id: u64) {
        let mut server = self.server.lock();
        if let Some(table) = server.store.table_mut(kind) {
            table.watches.remove(&id);
        }
    }
}
