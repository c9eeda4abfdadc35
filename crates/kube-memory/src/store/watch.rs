//! Open watches: the changes that each one receives, and the lines that it has not sent yet.

use std::{collections::VecDeque, task::Waker};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::Target;
use crate::request::{Form, failure::Failure};
use crate::store::{
    object::{Action, Change, Object, encode, encode_in_version, event_line, metadata_only},
    selector::Filter,
    tables::table_of_one,
};

/// The number of unsent lines at which a watch is ended, as a server ends a client that reads too slowly.
const MAX_BACKLOG_LINES: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Watch {
    target: Target,
    namespace: Option<String>,
    filter: Filter,
    form: Form,
    pub(crate) bookmarks: bool,
    /// The watch receives only changes after this version.
    since: u64,
    lines: VecDeque<Bytes>,
    ended: bool,
    frozen: bool,
    waker: Option<Waker>,
}

/// The next item for the reader of a watch.
pub(crate) enum Next {
    Line(Bytes),
    Nothing { frozen: bool },
    End,
}

impl Watch {
    pub(crate) fn new(
        target: Target,
        namespace: Option<String>,
        filter: Filter,
        form: Form,
        bookmarks: bool,
        since: u64,
    ) -> Self {
        Self {
            target,
            namespace,
            filter,
            form,
            bookmarks,
            since,
            lines: VecDeque::new(),
            ended: false,
            frozen: false,
            waker: None,
        }
    }

    fn covers(&self, object: &Object) -> bool {
        self.namespace
            .as_ref()
            .is_none_or(|namespace| namespace == object.namespace())
    }

    /// Queues a change, in the form that results from the watch's selector.
    pub(crate) fn on_change(&mut self, change: &Change, now: Timestamp, wakers: &mut Vec<Waker>) {
        if self.ended || change.resource_version() <= self.since || !self.covers(&change.object) {
            return;
        }
        let after = change.action() != Action::Deleted && self.filter.matches(&change.object);
        let before = change
            .previous
            .as_ref()
            .is_some_and(|previous| self.filter.matches(previous));
        let line = match (before, after) {
            (false, false) => return,
            (false, true) => self.line(Action::Added, &change.object, now),
            (true, true) => self.line(Action::Modified, &change.object, now),
            (true, false) => match (change.action(), &change.previous) {
                (Action::Deleted, _) | (_, None) => self.line(Action::Deleted, &change.object, now),
                // The object left the selection: the event has its last selected state, with the new version.
                (_, Some(previous)) => {
                    let last = Object::new(previous.document().clone(), change.resource_version(), None);
                    self.line(Action::Deleted, &last, now)
                }
            },
        };
        self.push(line, wakers);
    }

    fn line(&self, action: Action, object: &Object, now: Timestamp) -> Bytes {
        if self.form == Form::Whole && action == object.action && self.target.is_stored_version() {
            return object.line();
        }
        event_line(action.as_str(), &self.body(object, now))
    }

    fn body(&self, object: &Object, now: Timestamp) -> Bytes {
        match self.form {
            Form::Whole => encode_in_version(&self.target, object),
            Form::MetadataOnly => encode(&metadata_only(object)),
            Form::Table(include) => table_of_one(&self.target, object, include, now),
        }
    }

    /// Queues an object that existed before the watch began.
    pub(crate) fn push_initial(&mut self, object: &Object, now: Timestamp) {
        if self.covers(object) && self.filter.matches(object) {
            let line = self.line(Action::Added, object, now);
            self.lines.push_back(line);
        }
    }

    /// Queues the bookmark that ends the initial events.
    pub(crate) fn push_initial_end(&mut self, version: u64) {
        let line = self.bookmark_line(version, true);
        self.lines.push_back(line);
    }

    /// Queues a failure and ends the watch after it.
    pub(crate) fn fail(&mut self, failure: &Failure) {
        self.lines
            .push_back(event_line("ERROR", &encode(&failure.to_value())));
        self.ended = true;
    }

    fn push(&mut self, line: Bytes, wakers: &mut Vec<Waker>) {
        if self.lines.len() >= MAX_BACKLOG_LINES {
            self.end(wakers);
            return;
        }
        self.lines.push_back(line);
        self.wake(wakers);
    }

    /// Ends the watch once its lines are sent, as if the server had closed the connection.
    pub(crate) fn end(&mut self, wakers: &mut Vec<Waker>) {
        self.ended = true;
        self.wake(wakers);
    }

    /// Ends the watch at once. Unsent lines are lost.
    pub(crate) fn cut(&mut self, wakers: &mut Vec<Waker>) {
        self.lines.clear();
        self.frozen = false;
        self.end(wakers);
    }

    /// Stops or resumes the flow of lines. A frozen watch does not even time out.
    pub(crate) fn freeze(&mut self, frozen: bool, wakers: &mut Vec<Waker>) {
        self.frozen = frozen;
        self.wake(wakers);
    }

    fn wake(&mut self, wakers: &mut Vec<Waker>) {
        if !self.frozen {
            wakers.extend(self.waker.take());
        }
    }

    /// Returns the next line, or registers the waker.
    pub(crate) fn next(&mut self, waker: &Waker) -> Next {
        if !self.frozen {
            if let Some(line) = self.lines.pop_front() {
                return Next::Line(line);
            }
            if self.ended {
                return Next::End;
            }
        }
        if self.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
        Next::Nothing { frozen: self.frozen }
    }

    /// Returns a bookmark, unless there are older unsent lines.
    pub(crate) fn bookmark(&self, version: u64) -> Option<Bytes> {
        self.lines.is_empty().then(|| self.bookmark_line(version, false))
    }

    fn bookmark_line(&self, version: u64, initial_end: bool) -> Bytes {
        let (api_version, kind) = match self.form {
            Form::Whole => (self.target.api_version(), self.target.kind.kind.as_str()),
            Form::MetadataOnly => ("meta.k8s.io/v1", "PartialObjectMetadata"),
            Form::Table(_) => ("meta.k8s.io/v1", "Table"),
        };
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if initial_end && let Some(map) = metadata.as_object_mut() {
            map.insert(
                "annotations".to_owned(),
                json!({"k8s.io/initial-events-end": "true"}),
            );
        }
        let object: Value = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        event_line("BOOKMARK", &encode(&object))
    }
}
