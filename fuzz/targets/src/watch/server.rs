//! An API server that responds to lists and watches from a script.
//!
//! Each list or watch of a resource gets the next response for it. When no response is left, the request stays
//! without one.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::Response;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::model::Model;
use super::script::{Ending, ListOrWatch, RESOURCES, Responses, ScriptedResponse};

pub(super) struct Server {
    state: Mutex<ServerState>,
    exhausted: Notify,
}

#[derive(Default)]
struct ServerState {
    responses: Responses,
    /// The number of requests by resource, without those for further pages of a list.
    requests: BTreeMap<&'static str, u32>,
    /// The requested resources without further responses.
    silent: Vec<&'static str>,
    model: Model,
}

impl Server {
    pub(super) fn new(responses: Responses) -> Self {
        Self {
            state: Mutex::new(ServerState {
                responses,
                ..ServerState::default()
            }),
            exhausted: Notify::new(),
        }
    }

    /// Waits until all responses were sent, and each resource was requested once more.
    pub(super) async fn all_responses_sent(&self) {
        self.exhausted.notified().await;
    }

    /// Returns the number of responses of each resource that were not requested.
    pub(super) fn unused_responses(&self) -> BTreeMap<&'static str, usize> {
        let state = self.state.lock();
        state
            .responses
            .iter()
            .map(|(resource, all)| (*resource, all.len()))
            .collect()
    }

    /// Takes the model of the expected contents of the caches.
    pub(super) fn take_model(&self) -> Model {
        std::mem::take(&mut self.state.lock().model)
    }

    /// Asserts that no resource was requested more often than a backoff of half a second allows. A list and its watch
    /// may follow each wait.
    pub(super) fn assert_backoff(&self, within: Duration) {
        for (resource, times) in &self.state.lock().requests {
            let most = 6.0 + 2.0 * within.as_secs_f64() / 0.5;
            assert!(
                f64::from(*times) <= most,
                "{times} requests for {resource} within {within:?}"
            );
        }
    }

    pub(super) async fn response(&self, request: &ListOrWatch) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
        let Some(scripted) = self.next_response(request) else {
            return std::future::pending().await;
        };
        let chunk = scripted.chunk.min(scripted.body.len().max(1));
        let chunks: Vec<_> = scripted.body.chunks(chunk).map(Bytes::copy_from_slice).collect();
        let frames = stream::iter(chunks).map(|chunk| Ok(Frame::data(chunk)));
        let body = match scripted.ending {
            Ending::End => StreamBody::new(frames).boxed_unsync(),
            Ending::Hang => StreamBody::new(frames.chain(stream::pending())).boxed_unsync(),
            Ending::Break => {
                let broken = stream::iter([Err(io::Error::other("reset"))]);
                StreamBody::new(frames.chain(broken)).boxed_unsync()
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = scripted.code.try_into().expect("it is a status code");
        response
    }

    fn next_response(&self, request: &ListOrWatch) -> Option<ScriptedResponse> {
        let mut state = self.state.lock();
        let ServerState {
            responses,
            requests,
            silent,
            model,
        } = &mut *state;
        if !request.next_page {
            *requests.entry(request.resource).or_default() += 1;
        }
        let response = responses.get_mut(request.resource).and_then(VecDeque::pop_front);
        model.apply_response(request, response.as_ref());
        if response.is_none() && !silent.contains(&request.resource) {
            silent.push(request.resource);
            if silent.len() == RESOURCES.len() {
                self.exhausted.notify_one();
            }
        }
        response
    }
}
