//! The HTTP pages: health, readiness, metrics.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use super::ProcessError;

/// The type of what `encode` writes.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Takes an address such as `:8080`, `127.0.0.1:0`, or `0` for none.
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
        // All addresses of both families; of one where there is no IPv6.
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
        },
        None => TcpListener::bind(address).await,
    };
    listener.map(Some).map_err(wrong)
}

/// Serves a router, until the process ends.
pub(super) async fn serve(what: &'static str, listener: Option<TcpListener>, router: Router) {
    let Some(listener) = listener else {
        return;
    };
    let address = listener.local_addr().ok().map(|a: SocketAddr| a.to_string());
    tracing::info!(address, "serving {what}");
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "failed to serve {what}");
    }
}

/// `/healthz` says that the process is there; `/readyz` asks `unready` why it cannot do its work.
pub(super) fn health(unready: impl Fn() -> Option<&'static str> + Clone + Send + Sync + 'static) -> Router {
    let ready = move || {
        let answer = match unready() {
            None => (StatusCode::OK, "ok"),
            Some(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
        };
        async move { answer }
    };
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
}

/// `/metrics` shows the registry.
pub(super) fn metrics(registry: Arc<Registry>) -> Router {
    let page = move || {
        let mut text = String::new();
        let answer = match encode(&mut text, &registry) {
            Ok(()) => Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text)),
            Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
        };
        async move { answer }
    };
    Router::new().route("/metrics", get(page))
}
