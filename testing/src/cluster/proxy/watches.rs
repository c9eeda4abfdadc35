//! Watches on their way through the proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::sync::{mpsc, watch};

use super::serve::BoxError;

/// How a watch ends before its time.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    Not,
    InOrder,
    Lost,
}

/// A watch.
pub(super) struct Stream {
    pub(super) resource: String,
    cut: watch::Sender<Cut>,
    frozen: watch::Sender<bool>,
    open: AtomicBool,
}

/// A part of an answer's body.
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

    /// Ends it. Whether it was open.
    pub(super) fn cut(&self, in_order: bool) -> bool {
        self.cut
            .send_replace(if in_order { Cut::InOrder } else { Cut::Lost });
        self.is_open()
    }

    /// Carries what the API server tells to the program, at most so many events.
    pub(super) async fn carry(self: Arc<Self>, body: Body, to: mpsc::Sender<Part>, events: usize) {
        let mut cut = self.cut.subscribe();
        tokio::select! {
            biased;
            // It ends while the program still listens.
            Ok(how) = cut.wait_for(|cut| *cut != Cut::Not) => {
                if *how == Cut::Lost {
                    let _ = to.try_send(Err("the watch is cut".into()));
                }
            }
            () = to.closed() => {}
            () = self.events(body, &to, events) => {}
        }
        self.open.store(false, Ordering::SeqCst);
    }

    async fn events(&self, mut body: Body, to: &mpsc::Sender<Part>, mut events: usize) {
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
                events -= 1;
                if events == 0 {
                    return;
                }
            }
        }
        // The end is held back as well.
        let _ = frozen.wait_for(|frozen| !*frozen).await;
    }
}

/// Watches that tell nothing until they are thawed.
pub struct Frozen(Vec<Arc<Stream>>);

impl Frozen {
    pub(super) fn new(streams: Vec<Arc<Stream>>) -> Self {
        for stream in &streams {
            stream.frozen.send_replace(true);
        }
        Self(streams)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How many of them the program has not given up.
    pub fn still_open(&self) -> usize {
        self.0.iter().filter(|stream| stream.is_open()).count()
    }

    /// They tell all that was held back, and go on.
    pub fn thaw(self) {
        for stream in &self.0 {
            stream.frozen.send_replace(false);
        }
    }
}
