//! Serves the in-memory API over HTTPS on a loopback address.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::net::Ipv4Addr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{Either, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use kube_memory::{Endpoint, Reply};
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, ServerConfig};
use tower::Service;

use super::credentials::Credentials;
use crate::error::ServerError;

/// The maximum number of connections. Further clients wait.
const MAX_CONNECTIONS: usize = 2_048;

/// The maximum number of connections without a request that has the token. A further one ends the oldest of them, so that
/// other users of the machine cannot keep clients away.
const MAX_UNAUTHORIZED_CONNECTIONS: usize = 256;

/// The maximum number of open watches. Further ones are rejected with 429.
const MAX_WATCHES: usize = 4_096;

/// The maximum size of a request's body, as of a Kubernetes API server.
const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// The time that a client has for the handshake, for the head of a request, and for the first request with the token.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause after a connection that could not be accepted, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Starts to listen on a port, or any free one if it is 0. Returns the kubeconfig of the server, and the future that serves until it is dropped.
pub(super) async fn start(
    endpoint: Endpoint,
    port: u16,
) -> Result<(String, impl Future<Output = ()>), ServerError> {
    let credentials = Credentials::generate()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let kubeconfig = credentials.kubeconfig(listener.local_addr()?);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![credentials.certificate], credentials.key)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let api = Authorized {
        header: format!("Bearer {}", credentials.token).into(),
        endpoint,
        watches: Arc::new(Semaphore::new(MAX_WATCHES)),
        was_authorized: Arc::default(),
    };
    Ok((kubeconfig, serve(listener, TlsAcceptor::from(Arc::new(tls)), api)))
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, api: Authorized) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Dropped with this future, which ends the connections.
    let mut connections = tokio::task::JoinSet::new();
    let mut unauthorized: VecDeque<(AbortHandle, Arc<AtomicBool>)> = VecDeque::new();
    loop {
        let Ok(permit) = free.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (tls, mut api) = (tls.clone(), api.clone());
                let was_authorized = Arc::<AtomicBool>::default();
                api.was_authorized = Arc::clone(&was_authorized);
                unauthorized.retain(|(task, authorized)| !task.is_finished() && !authorized.load(Relaxed));
                if unauthorized.len() >= MAX_UNAUTHORIZED_CONNECTIONS
                    && let Some((oldest, _)) = unauthorized.pop_front()
                {
                    oldest.abort();
                }
                let task = connections.spawn(async move {
                    connection(stream, tls, api).await;
                    drop(permit);
                });
                unauthorized.push_back((task, was_authorized));
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Serves a connection until it ends. Its errors are those of the client.
async fn connection(stream: TcpStream, tls: TlsAcceptor, api: Authorized) {
    let Ok(Ok(stream)) = timeout(CLIENT_TIMEOUT, tls.accept(stream)).await else {
        return;
    };
    let was_authorized = Arc::clone(&api.was_authorized);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(CLIENT_TIMEOUT)
        .http2()
        .timer(TokioTimer::new());
    let server = builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(api));
    let mut server = pin!(server);
    if timeout(CLIENT_TIMEOUT, &mut server).await.is_err() && was_authorized.load(Relaxed) {
        let _ = server.await;
    }
}

/// The API for clients that have the token.
#[derive(Clone)]
struct Authorized {
    /// The header of authorized requests.
    header: Arc<str>,
    endpoint: Endpoint,
    watches: Arc<Semaphore>,
    /// True if the connection had a request with the token.
    was_authorized: Arc<AtomicBool>,
}

impl Service<Request<Incoming>> for Authorized {
    type Response = Response<Either<HeldReply, Full<Bytes>>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let header = request.headers().get(AUTHORIZATION);
        if !header.is_some_and(|header| bool::from(header.as_bytes().ct_eq(self.header.as_bytes()))) {
            return Box::pin(async { Ok(failure(401, "Unauthorized", "Unauthorized")) });
        }
        self.was_authorized.store(true, Relaxed);
        let is_watch = is_watch(request.uri().query());
        let Ok(permit) = is_watch
            .then(|| Arc::clone(&self.watches).try_acquire_owned())
            .transpose()
        else {
            let message = "too many open watches; end some";
            return Box::pin(async move { Ok(failure(429, "TooManyRequests", message)) });
        };
        let request = request.map(|body| Limited::new(body, MAX_BODY_BYTES));
        let response = self.endpoint.call(request);
        Box::pin(async {
            Ok(response.await?.map(|reply| {
                Either::Left(HeldReply {
                    reply,
                    _permit: permit,
                })
            }))
        })
    }
}

/// Returns true for the query of a watch.
fn is_watch(query: Option<&str>) -> bool {
    let pairs = query.unwrap_or_default().split('&');
    pairs
        .into_iter()
        .any(|pair| matches!(pair, "watch=1" | "watch=true" | "watch=True" | "watch"))
}

/// A reply that holds the permit of its watch until it ends.
struct HeldReply {
    reply: Reply,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Body for HeldReply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.reply).poll_frame(context)
    }
}

fn failure(code: u16, reason: &str, message: &str) -> Response<Either<HeldReply, Full<Bytes>>> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    let mut response = Response::new(Either::Right(Full::from(status.to_string())));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
