//! The HTTP endpoints: health, readiness and metrics.
//!
//! Each connection serves one request in a bounded time, and the number of connections is bounded. A client that
//! sends or reads slowly holds a file descriptor for that time at most, and does not block other clients.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::ProcessError;
use super::exposition::{OPEN_METRICS, TEXT, accepts_open_metrics, to_text_format};

/// Maximum time from the connection to the end of the request headers.
const MAX_HEADER_TIME: Duration = Duration::from_secs(10);

/// Maximum time from the connection to the end of the response.
const MAX_REQUEST_TIME: Duration = Duration::from_secs(30);

/// Maximum number of connections to one endpoint. A further connection closes the oldest, so that probes are served
/// under any load.
const MAX_CONNECTIONS: usize = 128;

/// Pause after a failed accept, which is mostly due to a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Binds an address such as `:8080` or `127.0.0.1:0`. Returns `None` for `0` and an empty address.
pub(super) async fn listen(flag: &'static str, address: &str) -> Result<Option<TcpListener>, ProcessError> {
    if matches!(address, "0" | "") {
        return Ok(None);
    }
    let wrong = |error: io::Error| ProcessError::Listen {
        flag,
        address: address.to_owned(),
        error,
    };
    let listener = match address.strip_prefix(':') {
        // All addresses of both families, or of IPv4 alone if there is no IPv6.
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
        },
        None => TcpListener::bind(address).await,
    };
    listener.map(Some).map_err(wrong)
}

/// Returns the response to a GET of an address, or `None` if the endpoint has no such page.
pub(super) type Pages = Arc<dyn Fn(&Uri, &HeaderMap) -> Option<Response<String>> + Send + Sync>;

/// Serves pages until the process ends.
pub(super) async fn serve(what: &'static str, listener: Option<TcpListener>, pages: Pages) {
    let Some(listener) = listener else {
        return;
    };
    let address = listener.local_addr().ok().map(|a: SocketAddr| a.to_string());
    tracing::info!(address, "serving {what}");
    let mut connections = Connections::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => connections.spawn(serve_one(stream, pages.clone())),
            Err(error) => {
                tracing::debug!(%error, "failed to accept a connection to {what}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one request on a connection. The connection is closed if the client sends or reads too slowly.
async fn serve_one<S>(stream: S, pages: Pages)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service =
        service_fn(move |request: Request<Incoming>| ready(Ok::<_, Infallible>(respond(&pages, &request))));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(MAX_HEADER_TIME)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(MAX_REQUEST_TIME, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "failed to serve a request"),
        Err(_) => tracing::debug!("closed a connection that took too long"),
    }
}

/// Returns the page that a request is for. The server leaves out the body for HEAD.
fn respond<B>(pages: &Pages, request: &Request<B>) -> Response<String> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "");
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET,HEAD"));
        return response;
    }
    let page = pages(request.uri(), request.headers());
    page.unwrap_or_else(|| text(StatusCode::NOT_FOUND, ""))
}

fn text(code: StatusCode, text: impl Into<String>) -> Response<String> {
    typed(code, "text/plain; charset=utf-8", text.into())
}

fn typed(code: StatusCode, content_type: &'static str, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The open connections, oldest first. They end with the server.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    open: VecDeque<AbortHandle>,
}

impl Connections {
    /// Serves another connection. Closes the oldest if the maximum is reached.
    fn spawn(&mut self, connection: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|task| !task.is_finished());
        if self.open.len() >= MAX_CONNECTIONS
            && let Some(oldest) = self.open.pop_front()
        {
            oldest.abort();
        }
        self.open.push_back(self.tasks.spawn(connection));
    }
}

/// The readiness of the process.
#[derive(Clone, Debug, Default)]
pub(super) struct Readiness {
    /// The role of the process: `leader`, `standby` or `starting`.
    pub(super) role: &'static str,
    /// The reason why the process is not ready, if it is not.
    pub(super) unready: Option<&'static str>,
    /// The resources whose CRDs are not installed. Other kinds run without them, so the process may be ready.
    pub(super) missing_crds: Vec<String>,
}

impl Readiness {
    fn verbose(&self) -> String {
        let missing = match &self.missing_crds[..] {
            [] => "none".to_owned(),
            missing => missing.join(", "),
        };
        let state = self.unready.unwrap_or("ok");
        format!("role: {}\nmissing CRDs: {missing}\nreadyz: {state}\n", self.role)
    }
}

/// Returns the health endpoints. `/healthz` always responds 200. `/readyz` responds 503 with the reason if the process is
/// not ready, and with `?verbose` it responds with the details.
pub(super) fn health(readiness: impl Fn() -> Readiness + Send + Sync + 'static) -> Pages {
    let ready = move |query: Option<&str>| {
        let readiness = readiness();
        let code = match readiness.unready {
            None => StatusCode::OK,
            Some(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        let is_verbose = query.is_some_and(|query| query.split('&').any(|part| part.starts_with("verbose")));
        match is_verbose {
            true => text(code, readiness.verbose()),
            false => text(code, readiness.unready.unwrap_or("ok")),
        }
    };
    Arc::new(move |address, _| match address.path() {
        "/" => Some(text(StatusCode::OK, "/healthz\n/readyz\n/readyz?verbose\n")),
        "/healthz" => Some(text(StatusCode::OK, "ok")),
        "/readyz" => Some(ready(address.query())),
        _ => None,
    })
}

/// Returns the endpoint `/metrics`, which shows the registry in the text format that the client accepts.
pub(super) fn metrics(registry: Registry) -> Pages {
    let page = move |headers: &HeaderMap| {
        let mut metrics = String::new();
        let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
        match encode(&mut metrics, &registry) {
            Ok(()) if accept.is_some_and(accepts_open_metrics) => {
                typed(StatusCode::OK, OPEN_METRICS, metrics)
            }
            Ok(()) => typed(StatusCode::OK, TEXT, to_text_format(&metrics)),
            Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, ""),
        }
    };
    Arc::new(move |address, headers| match address.path() {
        "/" => Some(text(StatusCode::OK, "/metrics\n")),
        "/metrics" => Some(page(headers)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    use super::*;

    /// Opens a connection with a buffer of this many bytes. The task returns the time until the server ends the
    /// connection.
    fn connect(buffer: usize, pages: Pages) -> (DuplexStream, tokio::task::JoinHandle<Duration>) {
        let (client, server) = duplex(buffer);
        let begin = Instant::now();
        let served = async move {
            serve_one(server, pages).await;
            begin.elapsed()
        };
        (client, tokio::spawn(served))
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_answered_and_its_connection_closed() {
        let (mut client, served) = connect(4_096, health(Readiness::default));
        client
            .write_all(b"GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n")
            .await
            .unwrap();
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        assert!(
            response.starts_with("HTTP/1.1 200") && response.ends_with("ok"),
            "{response}"
        );
        assert_eq!(served.await.unwrap(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_end_its_headers_is_cut_off() {
        for begun in ["", "GET /healthz HTTP/1.1\r\nHost: "] {
            let (mut client, served) = connect(4_096, health(Readiness::default));
            client.write_all(begun.as_bytes()).await.unwrap();
            let took = served.await.unwrap();
            assert!(
                (MAX_HEADER_TIME..MAX_HEADER_TIME + Duration::from_secs(1)).contains(&took),
                "{begun}: {took:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_a_byte_now_and_then_is_cut_off() {
        let (mut client, served) = connect(4_096, health(Readiness::default));
        let begin = Instant::now();
        for byte in b"GET /healthz HTTP/1.1\r\nHost: a-name-that-takes-its-time"
            .iter()
            .cycle()
        {
            if client.write_all(&[*byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_secs(1)).await;
            assert!(begin.elapsed() <= MAX_REQUEST_TIME, "it is still open");
        }
        assert!(served.await.unwrap() <= MAX_REQUEST_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_cut_off() {
        let page: Pages = Arc::new(|_, _| Some(text(StatusCode::OK, "x".repeat(100_000))));
        let (mut client, served) = connect(64, page);
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            .await
            .unwrap();
        let took = served.await.unwrap();
        assert!(
            (MAX_REQUEST_TIME..MAX_REQUEST_TIME + Duration::from_secs(1)).contains(&took),
            "{took:?}"
        );
    }

    #[tokio::test]
    async fn a_connection_above_the_maximum_closes_the_oldest() {
        let mut connections = Connections::default();
        let mut open = VecDeque::new();
        for _ in 0..=MAX_CONNECTIONS {
            let (held, closed) = oneshot::channel::<()>();
            connections.spawn(async move {
                let _held = held;
                std::future::pending::<()>().await;
            });
            open.push_back(closed);
        }
        // The end of a connection drops its sender.
        assert!(open.pop_front().unwrap().await.is_err());
        for mut other in open {
            assert!(
                other
                    .try_recv()
                    .is_err_and(|e| e == oneshot::error::TryRecvError::Empty)
            );
        }
    }

    #[test]
    fn other_paths_and_methods_are_rejected() {
        let code = |method: Method, path: &str| {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            respond(&health(Readiness::default), &request).status()
        };
        assert_eq!(code(Method::HEAD, "/healthz"), StatusCode::OK);
        assert_eq!(code(Method::GET, "/healthz/"), StatusCode::NOT_FOUND);
        assert_eq!(code(Method::POST, "/healthz"), StatusCode::METHOD_NOT_ALLOWED);
    }

    #[test]
    fn metrics_are_open_metrics_for_clients_that_accept_it_only() {
        let types = [
            (None, "text/plain; version=0.0.4; charset=utf-8"),
            (Some("*/*"), "text/plain; version=0.0.4; charset=utf-8"),
            (
                Some("application/openmetrics-text;version=1.0.0,*/*;q=0.1"),
                OPEN_METRICS,
            ),
        ];
        for (accept, expected) in types {
            let mut request = Request::builder().uri("/metrics");
            if let Some(accept) = accept {
                request = request.header(ACCEPT, accept);
            }
            let request = request.body(()).unwrap();
            let answer = respond(&metrics(Registry::default()), &request);
            assert_eq!(answer.headers()[CONTENT_TYPE], expected, "{accept:?}");
        }
    }
}
