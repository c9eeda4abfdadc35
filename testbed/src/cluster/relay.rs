//! A relay between a program and the API server that counts connections and bytes, and plays accidents of the
//! connection. The traffic passes through it encrypted, so that HTTP/2 and compression work as without it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use super::control_plane::ControlPlane;
use super::users::read;

/// The state of the connection to the API server. A change breaks all connections, or silences them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Data passes.
    Up,
    /// Connections are refused.
    Refused,
    /// Connections are accepted, and closed at once.
    Closed,
    /// Connections are accepted, and reset at once.
    Reset,
    /// Connections stay open, and nothing passes, even when the link is up again.
    Silent,
    /// Connections are accepted, and get an answer that is not TLS.
    Garbled,
    /// Every request is answered with 503 and a page, as by a load balancer without a server.
    Unavailable,
}

impl Link {
    /// The states in which the server is away.
    pub const AWAY: [Self; 6] = [
        Self::Refused,
        Self::Closed,
        Self::Reset,
        Self::Silent,
        Self::Garbled,
        Self::Unavailable,
    ];
}

/// A relay that runs until it is dropped.
pub struct Relay {
    kubeconfig: PathBuf,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    server: String,
    link: watch::Sender<Link>,
    tls: TlsAcceptor,
    connections: AtomicUsize,
    received: AtomicUsize,
    sent: AtomicUsize,
}

/// The traffic so far.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// The number of connections that were accepted.
    pub connections: usize,
    /// Bytes from the API server.
    pub received: usize,
    /// Bytes to the API server.
    pub sent: usize,
}

impl ControlPlane {
    /// Starts a relay for the cluster of this kubeconfig.
    pub async fn relay(&self, kubeconfig: &Path) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let here = listener.local_addr().expect("it is bound");
        let mut config = read(kubeconfig);
        let cluster = &mut config["clusters"][0]["cluster"];
        let server = cluster["server"].as_str().expect("a server");
        let server = server.trim_start_matches("https://").to_owned();
        // The certificate of the answers with 503 is not the server's.
        *cluster = json!({"server": format!("https://{here}"), "insecure-skip-tls-verify": true});
        let shared = Arc::new(Shared {
            server,
            link: watch::Sender::new(Link::Up),
            tls: acceptor(),
            connections: AtomicUsize::new(0),
            received: AtomicUsize::new(0),
            sent: AtomicUsize::new(0),
        });
        Relay {
            kubeconfig: self.write_kubeconfig(&config),
            task: tokio::spawn(serve(listener, here, shared.clone())),
            shared,
        }
    }
}

impl Relay {
    /// Returns the path of the kubeconfig for programs that use the relay.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the traffic so far.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            connections: self.shared.connections.load(Ordering::Relaxed),
            received: self.shared.received.load(Ordering::Relaxed),
            sent: self.shared.sent.load(Ordering::Relaxed),
        }
    }

    /// Changes the state of the connection.
    pub fn set(&self, link: Link) {
        self.shared.link.send_replace(link);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn acceptor() -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into());
    TlsAcceptor::from(Arc::new(config.expect("a key that fits")))
}

async fn serve(mut listener: TcpListener, here: SocketAddr, shared: Arc<Shared>) {
    let mut link = shared.link.subscribe();
    loop {
        tokio::select! {
            Ok((near, _)) = listener.accept() => {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(attend(near, shared.clone()));
            }
            _ = link.changed() => {
                if *link.borrow_and_update() == Link::Refused {
                    drop(listener);
                    let _ = link.wait_for(|link| *link != Link::Refused).await;
                    listener = TcpListener::bind(here).await.expect("the port is still free");
                }
            }
        }
    }
}

/// Serves a connection until it ends or the link changes.
async fn attend(mut near: TcpStream, shared: Arc<Shared>) {
    let mut changes = shared.link.subscribe();
    let link = *changes.borrow_and_update();
    // A fault of a connection is an end like any other.
    let _ = match link {
        Link::Up => {
            let Ok(far) = TcpStream::connect(&shared.server).await else {
                return;
            };
            let _ = (near.set_nodelay(true), far.set_nodelay(true));
            let (from_near, to_near) = near.split();
            let (from_far, to_far) = far.into_split();
            let next = tokio::select! {
                () = async {
                    tokio::join!(
                        pass(from_near, to_far, &shared.sent),
                        pass(from_far, to_near, &shared.received),
                    );
                } => return,
                _ = changes.changed() => *changes.borrow_and_update(),
            };
            match next {
                Link::Silent => std::future::pending().await,
                Link::Reset => near.set_zero_linger(),
                _ => Ok(()),
            }
        }
        Link::Refused | Link::Closed => Ok(()),
        Link::Reset => near.set_zero_linger(),
        Link::Silent => std::future::pending().await,
        Link::Garbled => near.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await,
        Link::Unavailable => unavailable(near, &shared.tls, changes).await,
    };
}

async fn unavailable(
    near: TcpStream,
    tls: &TlsAcceptor,
    mut changes: watch::Receiver<Link>,
) -> io::Result<()> {
    let stream = tls.accept(near).await?;
    let answer = async |_| {
        let mut answer = Response::new(Full::new(Bytes::from("<h1>No server is available</h1>")));
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        Ok::<_, io::Error>(answer)
    };
    tokio::select! {
        // So each request is a connection that is counted.
        _ = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service_fn(answer)) => {}
        _ = changes.changed() => {}
    }
    Ok(())
}

/// Copies data until one side ends.
async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, count: &AtomicUsize) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        count.fetch_add(n, Ordering::Relaxed);
        if to.write_all(&buffer[..n]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}
