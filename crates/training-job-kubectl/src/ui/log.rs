//! The log of a pod as text.

use std::convert::Infallible;

use bytes::Bytes;
use futures::stream::{self, LocalBoxStream};
use futures::{AsyncBufRead, AsyncReadExt, StreamExt};
use http_body::Frame;
use tokio::sync::OwnedSemaphorePermit;

/// The number of last lines before those that follow.
pub(super) const LINES: i64 = 1_000;

/// The number of bytes after which a log ends, for the memory of the browser.
const MAX_BYTES: u64 = 16 << 20;

const BUFFER_BYTES: usize = 16 << 10;

/// Returns a log as the frames of a response, as it comes. The permit is held until its end.
pub(super) fn frames(
    log: impl AsyncBufRead + 'static,
    permit: OwnedSemaphorePermit,
) -> LocalBoxStream<'static, Result<Frame<Bytes>, Infallible>> {
    let state = (Box::pin(log.take(MAX_BYTES)), permit);
    let read = stream::unfold(state, |(mut log, permit)| async move {
        let mut buffer = vec![0; BUFFER_BYTES];
        let length = log.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
        buffer.truncate(length);
        Some((Ok(Frame::data(Bytes::from(buffer))), (log, permit)))
    });
    let end = "\n(the log has ended, or is longer than this page shows)\n";
    let last = stream::once(async { Ok(Frame::data(Bytes::from_static(end.as_bytes()))) });
    read.chain(last).boxed_local()
}
