//! The asynchronous part: a `tower::Service` around the core, and watches as streaming bodies.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use tokio::time::{Instant, Sleep};

use crate::request::{Request, failure::Failure};
use crate::server::ServerResponse;
use crate::shared::Shared;
use crate::store::watch::Next;

/// The duration of a watch without `timeoutSeconds`, in seconds.
const DEFAULT_WATCH_SECONDS: u64 = 1800;

/// The API server as a [`tower::Service`], for [`kube::Client::new`]. A layer that injects faults can wrap it. It
/// never fails and is always ready; rejected requests get HTTP responses.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) shared: Arc<Shared>,
}

impl<B> tower::Service<http::Request<B>> for Endpoint
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    type Response = Response<Reply>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let shared = self.shared.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let request = match body.collect().await {
                Ok(body) => {
                    let method = parts.method.clone();
                    Request::new(method, &parts.uri, &parts.headers, body.to_bytes())
                }
                Err(error) => Err(Failure::bad_request(format!("the body cannot be read: {error}"))),
            };
            let served = request
                .as_ref()
                .map_or(Ok(None), |request| shared.served_subresource(request));
            let mut warning = None;
            let response = match (request, served) {
                (Ok(request), Ok(Some((subresource, object)))) => {
                    let response = subresource.call(parts, request.body, object).await;
                    return Ok(response.map(|body| Reply {
                        content: Content::Served(body),
                    }));
                }
                (Ok(request), Ok(None)) => {
                    warning = shared.warning(&request);
                    shared.handle(&request)
                }
                (Err(failure), _) | (_, Err(failure)) => ServerResponse::failure(&failure),
            };
            let mut response = respond(&shared, response, watch_seconds(parts.uri.query()));
            let warning = warning.and_then(|text| HeaderValue::try_from(format!("299 - \"{text}\"")).ok());
            if let Some(warning) = warning.filter(|_| response.status().is_success()) {
                response.headers_mut().insert(header::WARNING, warning);
            }
            Ok(response)
        })
    }
}

fn watch_seconds(query: Option<&str>) -> u64 {
    query
        .into_iter()
        .flat_map(|query| query.split('&'))
        .find_map(|pair| pair.strip_prefix("timeoutSeconds="))
        .and_then(|seconds| seconds.parse().ok())
        .filter(|seconds| *seconds > 0)
        .unwrap_or(DEFAULT_WATCH_SECONDS)
}

fn respond(shared: &Arc<Shared>, response: ServerResponse, seconds: u64) -> Response<Reply> {
    let mut media_type = "application/json";
    let (code, body) = match response {
        ServerResponse::Done { code, body } => {
            if !body.starts_with(b"{") {
                media_type = "text/plain; charset=utf-8";
            }
            (code, Content::Whole(Some(body)))
        }
        ServerResponse::Typed {
            media_type: of_body,
            body,
        } => {
            media_type = of_body;
            (200, Content::Whole(Some(body)))
        }
        ServerResponse::Watch { kind, id } => {
            let stream = WatchBody {
                shared: shared.clone(),
                kind,
                id,
                seconds,
                end: None,
                bookmark: None,
                finished: false,
            };
            (200, Content::Watch(Box::new(stream)))
        }
    };
    let mut response = Response::new(Reply { content: body });
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let media_type = header::HeaderValue::from_static(media_type);
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

/// The body of a response: a JSON text, or the lines of a watch as they are sent.
///
/// A watch needs a Tokio runtime with its timer enabled, for `timeoutSeconds` and bookmarks.
pub struct Reply {
    content: Content,
}

enum Content {
    Whole(Option<Bytes>),
    Watch(Box<WatchBody>),
    Served(UnsyncBoxBody<Bytes, Infallible>),
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.content {
            Content::Whole(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Content::Watch(watch) => watch
                .poll_line(context)
                .map(|line| line.map(|line| Ok(Frame::data(line)))),
            Content::Served(body) => Pin::new(body).poll_frame(context),
        }
    }
}

struct WatchBody {
    shared: Arc<Shared>,
    kind: usize,
    id: u64,
    seconds: u64,
    end: Option<Pin<Box<Sleep>>>,
    bookmark: Option<Pin<Box<Sleep>>>,
    finished: bool,
}

impl WatchBody {
    fn poll_line(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.finished {
            return Poll::Ready(None);
        }
        let Some((next, bookmarks)) = self.shared.with_watch(self.kind, self.id, |watch| {
            (watch.next(context.waker()), watch.bookmarks)
        }) else {
            return Poll::Ready(None);
        };
        match next {
            Next::Line(line) => return Poll::Ready(Some(line)),
            Next::End => {
                self.finished = true;
                return Poll::Ready(None);
            }
            Next::Nothing { frozen: true } => return Poll::Pending,
            Next::Nothing { frozen: false } => {}
        }
        let seconds = self.seconds;
        let end = self
            .end
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(Duration::from_secs(seconds))));
        if end.as_mut().poll(context).is_ready() {
            self.finished = true;
            return Poll::Ready(bookmarks.then(|| self.bookmark_line()).flatten());
        }
        let Some(interval) = self.shared.bookmark_interval.filter(|_| bookmarks) else {
            return Poll::Pending;
        };
        let timer = self
            .bookmark
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(interval)));
        if timer.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        timer.as_mut().reset(Instant::now() + interval);
        // The timer was ready in this poll, so it has to be polled again to be registered.
        if timer.as_mut().poll(context).is_ready() {
            context.waker().wake_by_ref();
        }
        match self.bookmark_line() {
            Some(line) => Poll::Ready(Some(line)),
            None => Poll::Pending,
        }
    }

    fn bookmark_line(&self) -> Option<Bytes> {
        self.shared.bookmark_line(self.kind, self.id)
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        self.shared.close_watch(self.kind, self.id);
    }
}
