//! Watches that go through the proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::sync::{mpsc, watch};

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The premature end of a watch.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    Not,
    InOrder,
    Lost,
}

/// A watch that the proxy forwards.
pub(super) struct Stream {
    pub(super) resource: String,
    cut: watch::Sender<Cut>,
    frozen: watch::Sender<bool>,
    open: AtomicBool,
}

/// A part of the body of a response.
pub(super) type Part = Result<Bytes, BoxError>;

impl Stream {
    pub(super) fn new(resource: &str) -> Self {
        Self {
            resource: resource.to_owned(),
            cut: watch::Sender::new(Cut::Not),
            frozen: watch::Sender::new(false),
            open: AtomicBool::new(true),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    /// Ends the watch. Returns true if it was open.
    pub(super) fn cut(&self, in_order: bool) -> bool {
        self.cut
            .send_replace(if in_order { Cut::InOrder } else { Cut::Lost });
        self.is_open()
    }

    /// Passes the events of the API server to the program.
    pub(super) async fn carry(self: Arc<Self>, body: Body, to: mpsc::Sender<Part>) {
        let mut cut = self.cut.subscribe();
        tokio::select! {
            biased;
            // A cut ends the watch while the program still reads it.
            Ok(how) = cut.wait_for(|cut| *cut != Cut::Not) => {
                if *how == Cut::Lost {
                    let _ = to.try_send(Err("the watch is cut".into()));
                }
            }
            () = to.closed() => {}
            () = self.events(body, &to) => {}
        }
        self.open.store(false, Ordering::SeqCst);
    }

    async fn events(&self, mut body: Body, to: &mpsc::Sender<Part>) {
        let mut frozen = self.frozen.subscribe();
        let mut rest = BytesMut::new();
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else { continue };
            rest.extend_from_slice(&data);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest.split_to(end + 1).freeze();
                let _ = frozen.wait_for(|frozen| !*frozen).await;
                if to.send(Ok(line)).await.is_err() {
                    return;
                }
            }
        }
        // The end is held back as well.
        let _ = frozen.wait_for(|frozen| !*frozen).await;
    }
}

/// Watches that send nothing until they are thawed.
pub struct Frozen(Vec<Arc<Stream>>);

impl Frozen {
    pub(super) fn new(streams: Vec<Arc<Stream>>) -> Self {
        for stream in &streams {
            stream.frozen.send_replace(true);
        }
        Self(streams)
    }

    /// Returns the number of watches.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Sends all events that were held back, and continues.
    pub fn thaw(self) {
        for stream in &self.0 {
            stream.frozen.send_replace(false);
        }
    }
}
