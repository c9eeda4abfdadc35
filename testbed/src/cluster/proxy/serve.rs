//! The proxy's connections.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::rule::{Fault, Reply, Rule};
use super::watches::{BoxError, Part, Stream};
use super::{RecordedCall, Shared};

type ApiResponse = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// Serves connections until it is dropped, which closes them.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                connections.spawn(attend(stream, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn attend(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(move |request| answer(Arc::clone(&shared), request));
    // A connection ends because of the other side, or because of a fault.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Returns a response, or an error, which closes the connection.
async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<ApiResponse, BoxError> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let request = Request::from_parts(head, ());
    let (number, rule) = enter(&shared, RecordedCall::of(&request, &body));
    let forward = Forward {
        shared: &shared,
        number,
        request,
        body,
    };
    let Some(rule) = rule else {
        return forward.whole().await;
    };
    forward.through(&rule).await
}

fn enter(shared: &Shared, mut call: RecordedCall) -> (usize, Option<Arc<Rule>>) {
    let mut state = shared.state.lock();
    let rule = state.rules.iter().find(|rule| rule.takes(&call)).cloned();
    call.faulty = rule.is_some();
    state.calls.push(call);
    let number = state.calls.len() - 1;
    drop(state);
    shared.changed.send_replace(());
    (number, rule)
}

/// A call to forward.
struct Forward<'a> {
    shared: &'a Arc<Shared>,
    number: usize,
    request: Request<()>,
    body: Bytes,
}

impl Forward<'_> {
    async fn through(self, rule: &Rule) -> Result<ApiResponse, BoxError> {
        let shared = self.shared;
        match &rule.fault {
            Fault::Refused(reply) => {
                rule.happens(shared);
                Ok(canned_response(reply))
            }
            Fault::BlackHole => {
                rule.happens(shared);
                rule.lifted().await;
                Err("lost".into())
            }
            Fault::Held => {
                rule.happens(shared);
                rule.lifted().await;
                self.whole().await
            }
        }
    }

    /// Sends the call to the API server.
    async fn send(self) -> Result<Response<Body>, BoxError> {
        let (mut head, ()) = self.request.into_parts();
        for name in [
            HOST,
            CONNECTION,
            ACCEPT_ENCODING,
            TRANSFER_ENCODING,
            CONTENT_LENGTH,
        ] {
            head.headers.remove(name);
        }
        let body = Body::from(self.body.to_vec());
        let mut answer = self.shared.upstream.send(Request::from_parts(head, body)).await?;
        for name in [CONNECTION, TRANSFER_ENCODING] {
            answer.headers_mut().remove(name);
        }
        self.shared.state.lock().calls[self.number].code = Some(answer.status().as_u16());
        self.shared.changed.send_replace(());
        Ok(answer)
    }

    /// Sends the call to the API server and passes on the whole response.
    async fn whole(self) -> Result<ApiResponse, BoxError> {
        let shared = self.shared;
        let (verb, resource) = {
            let call = &shared.state.lock().calls[self.number];
            (call.verb, call.resource.clone())
        };
        let (head, body) = self.send().await?.into_parts();
        if verb != "watch" || !head.status.is_success() {
            let body = body.collect().await?.to_bytes();
            return Ok(Response::from_parts(head, full(body)));
        }
        let stream = Arc::new(Stream::new(&resource));
        let (to, from) = mpsc::channel(1);
        tokio::spawn(Arc::clone(&stream).carry(body, to));
        shared.state.lock().streams.push(stream);
        shared.changed.send_replace(());
        let parts = futures::stream::unfold(from, async |mut from| {
            let part: Part = from.recv().await?;
            Some((part.map(Frame::data), from))
        });
        Ok(Response::from_parts(head, StreamBody::new(parts).boxed_unsync()))
    }
}

fn full(body: Bytes) -> UnsyncBoxBody<Bytes, BoxError> {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

fn canned_response(reply: &Reply) -> ApiResponse {
    let mut answer = Response::builder()
        .status(reply.code)
        .header(CONTENT_TYPE, reply.content_type);
    for (name, value) in &reply.headers {
        answer = answer.header(*name, value);
    }
    answer
        .body(full(Bytes::from(reply.body.clone())))
        .expect("a test's reply is well-formed")
}
