//! A relay between an operator and the API server that counts connections and bytes. The traffic passes through it
//! encrypted, so that HTTP/2 and compression work as without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use training_job_testbed::cluster::ControlPlane;

/// A relay that runs until it is dropped.
pub(crate) struct Relay {
    /// The kubeconfig with which an operator uses it.
    kubeconfig: PathBuf,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    received: AtomicUsize,
    sent: AtomicUsize,
}

/// The traffic so far.
#[derive(Clone, Copy)]
pub(crate) struct Traffic {
    /// The number of connections that were opened.
    pub(crate) connections: usize,
    /// Bytes from the API server.
    pub(crate) received: usize,
    /// Bytes to the API server.
    pub(crate) sent: usize,
}

impl Relay {
    pub(crate) async fn start(plane: &ControlPlane) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config: Value = serde_json::from_slice(&fs::read(plane.kubeconfig()).unwrap()).unwrap();
        let server = config["clusters"][0]["cluster"]["server"].take();
        let server = server.as_str().unwrap().trim_start_matches("https://").to_owned();
        // The server's certificate is valid for this address and any port.
        let here = format!("https://{}", listener.local_addr().unwrap());
        config["clusters"][0]["cluster"]["server"] = json!(here);
        let kubeconfig = plane.directory().join("relay.kubeconfig");
        fs::write(&kubeconfig, config.to_string()).unwrap();
        let counts = Arc::<Counts>::default();
        let task = tokio::spawn(serve(listener, server, counts.clone()));
        Self {
            kubeconfig,
            counts,
            task,
        }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            connections: self.counts.connections.load(Ordering::Relaxed),
            received: self.counts.received.load(Ordering::Relaxed),
            sent: self.counts.sent.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, server: String, counts: Arc<Counts>) {
    while let Ok((near, _)) = listener.accept().await {
        let Ok(far) = TcpStream::connect(&server).await else {
            continue;
        };
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        counts.connections.fetch_add(1, Ordering::Relaxed);
        let (from_near, to_near) = near.into_split();
        let (from_far, to_far) = far.into_split();
        let (up, down) = (counts.clone(), counts.clone());
        tokio::spawn(async move { pass(from_near, to_far, &up.sent).await });
        tokio::spawn(async move { pass(from_far, to_near, &down.received).await });
    }
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
