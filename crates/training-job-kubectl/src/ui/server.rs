//! Serves the pages over HTTP on a loopback address.

use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{FuturesUnordered, LocalBoxStream};
use http::header::{self, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{Either, Full, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio::time::sleep;
use training_job_story::STYLE;

use super::access::{Access, Head, Verdict};
use super::changes::{self, Change};
use super::log;
use super::route::Route;
use super::views::{Page, Views};

/// The maximum number of connections. Further clients wait.
const MAX_CONNECTIONS: usize = 64;

/// The maximum number of pages that wait for changes. Further ones are rejected with 503.
const MAX_LISTENERS: usize = 32;

/// The maximum number of open logs. Further ones are rejected with 503.
const MAX_LOGS: usize = 16;

/// The time that a client has for the head of a request.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause after a connection that could not be accepted, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The number of changes that a listener may be behind. One that is further behind takes all for changed.
const CHANGES: usize = 256;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; \
                      img-src 'self' data:; frame-src 'self'; frame-ancestors 'self'; form-action 'self'; base-uri 'none'";

/// The headers of all responses.
const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

const SCRIPT: &str = include_str!("ui.js");
const UI_STYLE: &str = include_str!("ui.css");

type Frames = LocalBoxStream<'static, Result<Frame<Bytes>, Infallible>>;
type Reply = Response<Either<Full<Bytes>, StreamBody<Frames>>>;

struct Server {
    access: Access,
    views: Views,
    changes: broadcast::Sender<Change>,
    listeners: Arc<Semaphore>,
    logs: Arc<Semaphore>,
}

/// Serves until the future is dropped, which ends the connections.
pub(super) async fn serve(listener: &TcpListener, access: Access, views: Views) {
    let namespace = views.namespace.as_deref();
    let mut watched = pin!(changes::watch(&views.client, namespace, &views.kinds));
    let (changes, _) = broadcast::channel(CHANGES);
    let server = Rc::new(Server {
        access,
        views,
        changes,
        listeners: Arc::new(Semaphore::new(MAX_LISTENERS)),
        logs: Arc::new(Semaphore::new(MAX_LOGS)),
    });
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => connections.push(connection(stream, Rc::clone(&server))),
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(()) = connections.next() => {}
            // Sending fails if no page listens.
            Some(change) = watched.next() => drop(server.changes.send(change)),
        }
    }
}

/// Serves a connection until it ends. Its errors are those of the client.
async fn connection(stream: TcpStream, server: Rc<Server>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let server = Rc::clone(&server);
        async move { Ok::<_, Infallible>(server.answer(&request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(CLIENT_TIMEOUT);
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

impl Server {
    async fn answer(&self, request: &Request<Incoming>) -> Reply {
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let verdict = self.access.verdict(&Head {
            method: request.method().as_str(),
            host: text(header::HOST),
            path,
            query,
            cookies: text(header::COOKIE).unwrap_or_default(),
        });
        match verdict {
            Verdict::Allowed => match Route::parse(path, query) {
                Some(route) => self.show(route).await,
                None => page(Page::not_found()),
            },
            Verdict::SignIn { location, cookie } => {
                let mut reply = whole(303, TEXT, "");
                for (name, value) in [(header::LOCATION, location), (header::SET_COOKIE, cookie)] {
                    if let Ok(value) = HeaderValue::from_str(&value) {
                        reply.headers_mut().insert(name, value);
                    }
                }
                reply
            }
            Verdict::Refused { code, reason } => {
                let mut reply = whole(code, TEXT, format!("{reason}\n"));
                if code == 405 {
                    let allowed = HeaderValue::from_static("GET, HEAD");
                    reply.headers_mut().insert(header::ALLOW, allowed);
                }
                reply
            }
        }
    }

    async fn show(&self, route: Route) -> Reply {
        match route {
            Route::List(query) => page(self.views.list(&query).await),
            Route::Job { job, uid } => page(self.views.job(&job, uid.as_deref()).await),
            Route::Style => whole(200, "text/css; charset=utf-8", format!("{STYLE}{UI_STYLE}")),
            Route::Script => whole(200, "text/javascript; charset=utf-8", SCRIPT),
            Route::Events { job, has_ticks } => match permit(&self.listeners) {
                Some(permit) => {
                    let messages = changes::messages(self.changes.subscribe(), job, has_ticks, permit);
                    streamed("text/event-stream", messages)
                }
                None => busy(),
            },
            Route::Log {
                namespace,
                pod,
                container,
            } => match permit(&self.logs) {
                Some(permit) => match self.views.log(&namespace, &pod, container).await {
                    Ok(log) => streamed(TEXT, log::frames(log, permit)),
                    Err(problem) => page(problem),
                },
                None => busy(),
            },
        }
    }
}

fn permit(semaphore: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(semaphore).try_acquire_owned().ok()
}

fn busy() -> Reply {
    whole(503, TEXT, "too many open pages; close some\n")
}

fn page(page: Page) -> Reply {
    whole(page.code, HTML, page.html)
}

fn whole(code: u16, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = reply(content_type, Either::Left(Full::new(body.into())));
    *reply.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply
}

fn streamed(content_type: &'static str, frames: Frames) -> Reply {
    reply(content_type, Either::Right(StreamBody::new(frames)))
}

fn reply(content_type: &'static str, body: Either<Full<Bytes>, StreamBody<Frames>>) -> Reply {
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.extend(HEADERS);
    reply
}
