//! The HTTP client of a process: one connection for all calls and watches, with compressed lists.
//!
//! kube's own stack only supports HTTP/1.1, which needs one connection per call in flight: 82 in a burst of a hundred
//! jobs.

use std::time::Duration;

use http::Request;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ClientBuilder, ConfigExt};
use tower::util::BoxCloneService;
use tower::{BoxError, ServiceBuilder};
use tower_http::decompression::{DecompressionBody, DecompressionLayer};

/// The idle time after which the server is pinged, and the timeout of the ping. A dead connection is detected and
/// dropped within twice this time.
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// The service that carries out calls, below the layers of [`ClientBuilder`].
type Transport =
    BoxCloneService<Request<Body>, http::Response<DecompressionBody<hyper::body::Incoming>>, BoxError>;

/// Returns a client builder for `config` to which layers can be added. The client has a connection of its own.
///
/// # Errors
/// The configuration has a proxy, or credentials that cannot be read.
pub(super) fn builder(config: &Config) -> kube::Result<ClientBuilder<Transport>> {
    if config.proxy_url.is_some() {
        // Returns kube's error, which lists the kinds of proxy that this build supports.
        ClientBuilder::try_from(config.clone())?;
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let mut https = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into();
        let name = name.map_err(|error| kube::Error::Service(BoxError::from(error)))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let mut connector = TimeoutConnector::new(https.enable_all_versions().wrap_connector(tcp));
    connector.set_connect_timeout(config.connect_timeout);
    let http = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_INTERVAL)
        .http2_keep_alive_while_idle(true)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    let service = BoxCloneService::new(service);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()))
}
