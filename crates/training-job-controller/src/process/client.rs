//! The HTTP client of a process: one connection for all calls and watches, with compressed lists.
//!
//! kube's own stack only supports HTTP/1.1, which needs one connection per call in flight: 82 in a burst of a hundred
//! jobs. It also refuses client certificates and proxies that kubectl takes.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, StatusCode, Uri};
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::Timestamp;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::config::AuthInfo;
use kube::core::Status;
use kube::{Client, Config};
use tokio_rustls::rustls::{self, CertificateError, ClientConfig};
use tower::timeout::TimeoutLayer;
use tower::util::{BoxCloneService, MapRequestLayer};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};
use tower_http::decompression::{DecompressionBody, DecompressionLayer};

use super::cluster::{ClusterConfig, ClusterConfigError};
use super::credentials::identity;

/// The idle time after which the server is pinged, and the timeout of the ping. A dead connection is detected and
/// dropped within twice this time.
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// The service that carries out calls, below the layers of [`ClientBuilder`].
type Transport =
    BoxCloneService<Request<Body>, http::Response<DecompressionBody<hyper::body::Incoming>>, BoxError>;

/// The versions of HTTP that a client offers to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    /// The only one with which commands run in containers.
    Http1,
    All,
}

/// A request without a response.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NoResponse(String);

/// Returns a client for commands of users. If the server does not accept the credentials, the error names their context.
///
/// # Errors
/// The configuration has a proxy, or credentials, that cannot be used.
pub fn client(cluster: &ClusterConfig) -> Result<Client, ClusterConfigError> {
    Ok(builder(cluster, Versions::Http1)?
        .with_layer(&refusal(cluster, unauthorized))
        .build())
}

/// Returns the error of kube for refused credentials.
fn unauthorized(text: String) -> BoxError {
    let status = Status::failure(&text, "Unauthorized").with_code(401);
    kube::Error::Api(Box::new(status)).into()
}

/// Returns the error for refused credentials that counts as a request without a response.
pub(super) fn no_answer(text: String) -> BoxError {
    NoResponse(text).into()
}

/// Returns a layer that turns the response to refused credentials into an error that names them.
pub(super) fn refusal<S>(
    cluster: &ClusterConfig,
    error: fn(String) -> BoxError,
) -> impl tower::Layer<S, Service = Transport> + use<S>
where
    S: Service<Request<Body>, Response = <Transport as Service<Request<Body>>>::Response>
        + Clone
        + Send
        + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    let ClusterConfig { config, origin } = cluster;
    let text = format!(
        "the API server {} does not accept the credentials of {origin}, which may have expired; log in again",
        address(&config.cluster_url)
    );
    tower::layer::layer_fn(move |inner: S| {
        let text = text.clone();
        let checked =
            inner
                .map_err(Into::into)
                .map_result(move |response: Result<_, BoxError>| match response {
                    Ok(response) if is_refused(&response) => Err(error(text.clone())),
                    response => response,
                });
        BoxCloneService::new(checked)
    })
}

fn is_refused<B>(response: &http::Response<B>) -> bool {
    response.status() == StatusCode::UNAUTHORIZED
}

/// Returns a client builder to which layers can be added. The client has a connection of its own.
///
/// # Errors
/// The configuration has a proxy, or credentials, that cannot be used.
pub(super) fn builder(
    cluster: &ClusterConfig,
    versions: Versions,
) -> Result<ClientBuilder<Transport>, ClusterConfigError> {
    let tls = tls(cluster)?;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let Some(proxy) = &cluster.config.proxy_url else {
        return finish(cluster, tls, tcp, versions);
    };
    // The matcher decodes the user and the password.
    let matched = Matcher::builder().all(proxy.to_string()).build();
    let matched = matched.intercept(&Uri::from_static("https://server"));
    let scheme = proxy.scheme_str().unwrap_or("http");
    match (scheme, matched) {
        ("socks5" | "socks5h", Some(matched)) => {
            let mut socks = SocksV5::new(with_port(matched.uri(), 1080), tcp);
            if let Some((user, password)) = matched.raw_auth() {
                socks = socks.with_auth(user.to_owned(), password.to_owned());
            }
            finish(cluster, tls, socks, versions)
        }
        ("http" | "https", Some(matched)) => {
            // As in Go, the proxy is checked by the settings for the server.
            let to_proxy = https(&cluster.config, tls.clone(), tcp, Versions::Http1)?;
            let mut tunnel = Tunnel::new(matched.uri().clone(), to_proxy);
            if let Some(credentials) = matched.basic_auth() {
                tunnel = tunnel.with_auth(credentials.clone());
            }
            finish(cluster, tls, tunnel, versions)
        }
        _ => Err(ClusterConfigError::new(format!(
            "the proxy {}: must begin with http://, https:// or socks5://",
            address(proxy)
        ))),
    }
}

fn with_port(uri: &Uri, default: u16) -> Uri {
    let port = uri.port_u16().unwrap_or(default);
    let text = format!("socks5://{}:{port}/", uri.host().unwrap_or_default());
    text.parse().unwrap_or_else(|_| uri.clone())
}

/// Returns an address without user, password and path.
fn address(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or("http");
    let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{}{port}", uri.host().unwrap_or_default())
}

/// Returns the settings of TLS, with the client certificate.
fn tls(cluster: &ClusterConfig) -> Result<ClientConfig, ClusterConfigError> {
    let ClusterConfig { config, origin } = cluster;
    let invalid = |why: String| ClusterConfigError::new(format!("{origin}: {why}"));
    let own = identity(&config.auth_info, Timestamp::now()).map_err(invalid)?;
    let mut without = config.clone();
    if own.is_some() {
        without.auth_info = AuthInfo {
            exec: config.auth_info.exec.clone(),
            ..AuthInfo::default()
        };
    }
    let mut tls = without
        .rustls_client_config()
        .map_err(|error| invalid(innermost(&error)))?;
    if let Some(own) = own {
        tls.client_auth_cert_resolver = own;
    }
    Ok(tls)
}

fn https<C>(
    config: &Config,
    tls: ClientConfig,
    connector: C,
    versions: Versions,
) -> Result<HttpsConnector<C>, ClusterConfigError> {
    let mut https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into();
        let name = name.map_err(|_| {
            ClusterConfigError::new("tls-server-name: must be the name or the address of a host".to_owned())
        })?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(match versions {
        Versions::Http1 => https.enable_http1().wrap_connector(connector),
        Versions::All => https.enable_all_versions().wrap_connector(connector),
    })
}

fn finish<C>(
    cluster: &ClusterConfig,
    tls: ClientConfig,
    connector: C,
    versions: Versions,
) -> Result<ClientBuilder<Transport>, ClusterConfigError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let ClusterConfig { config, origin } = cluster;
    let https = https(config, tls, connector, versions)?;
    let mut connector = TimeoutConnector::new(https);
    connector.set_connect_timeout(config.connect_timeout);
    let http = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_INTERVAL)
        .http2_keep_alive_while_idle(true)
        .build(connector);
    let invalid = |error: kube::Error| {
        ClusterConfigError::new(format!("{origin}: {}", credentials_error(config, &error)))
    };
    let token_file = config.auth_info.token_file.clone().map(PathBuf::from);
    let token_file = token_file.filter(has_blanks);
    let mut with_auth = config.clone();
    if token_file.is_some() {
        with_auth.auth_info.token_file = None;
    }
    let mut server = address(&config.cluster_url);
    if let Some(proxy) = &config.proxy_url {
        server += &format!(" through the proxy {}", address(proxy));
    }
    let origin = origin.clone();
    let service = ServiceBuilder::new()
        .option_layer(config.read_timeout.map(TimeoutLayer::new))
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new())
        .option_layer(with_auth.auth_layer().map_err(invalid)?)
        .option_layer(token_file.map(|file| MapRequestLayer::new(move |request| with_token(request, &file))))
        .layer(config.extra_headers_layer().map_err(invalid)?)
        .map_err(move |error: legacy::Error| {
            BoxError::from(NoResponse(no_response(&error, &server, &origin)))
        })
        .service(http);
    let service = BoxCloneService::new(service);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()))
}

/// Returns true if the text of a token file has blanks around it, such as a newline, which kube would send.
fn has_blanks(file: &PathBuf) -> bool {
    fs::read_to_string(file).is_ok_and(|token| token.trim() != token)
}

/// Adds the token of a file, which may be replaced at any time.
fn with_token(mut request: Request<Body>, file: &PathBuf) -> Request<Body> {
    let token = fs::read_to_string(file).unwrap_or_default();
    if let Ok(mut value) = HeaderValue::try_from(format!("Bearer {}", token.trim())) {
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    request
}

/// Returns the problem of credentials, with the hint of the kubeconfig if their program is missing.
fn credentials_error(config: &Config, error: &kube::Error) -> String {
    match &config.auth_info.exec {
        Some(exec) => {
            let command = exec.command.as_deref().unwrap_or_default();
            let hint = exec
                .install_hint
                .as_deref()
                .map(|hint| format!("; {}", hint.trim()));
            format!(
                "the command {command:?} for its credentials failed: {}{}",
                innermost(error),
                hint.unwrap_or_default()
            )
        }
        None => innermost(error),
    }
}

/// Returns one sentence for a request that got no response, with the remedy for a failed connection.
fn no_response(error: &legacy::Error, server: &str, origin: &str) -> String {
    if !error.is_connect() {
        return format!(
            "the connection to the API server {server} broke: {}",
            innermost(error)
        );
    }
    let mut cause: &(dyn Error + 'static) = error;
    loop {
        // An I/O error of TLS wraps its cause without being its source.
        let inner = cause
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        let inner = inner.map(|inner| inner as &(dyn Error + 'static));
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return format!("the API server {server} of {origin} {}", tls_problem(tls));
        }
        match inner.or_else(|| cause.source()) {
            Some(source) => cause = source,
            None => break,
        }
    }
    format!(
        "the API server {server} of {origin} cannot be reached: {cause}; check the address, and that it runs"
    )
}

fn tls_problem(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(invalid) = error else {
        return format!("cannot be reached by TLS: {error}; check its address");
    };
    let (problem, remedy) = match invalid {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => (
            "has a certificate of another authority than the kubeconfig's".to_owned(),
            "set certificate-authority to the file of its authority",
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
            "has a certificate that has expired".to_owned(),
            "renew it, or correct the clock of this machine",
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            "has a certificate for other names".to_owned(),
            "use one of its names as server, or set tls-server-name",
        ),
        other => (
            format!("has a certificate that is not valid: {other:?}"),
            "renew it",
        ),
    };
    format!("{problem}; {remedy}")
}

/// Returns the text of the innermost cause, because outer errors repeat it.
fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
