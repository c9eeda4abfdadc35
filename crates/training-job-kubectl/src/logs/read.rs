//! Reads logs line by line.

use anyhow::anyhow;
use futures::io::AsyncReadExt;
use futures::{AsyncBufReadExt, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use training_job_client::call_error::explained;
use training_job_client::cluster::with_timeout;

use super::line::{Line, Lines};

/// The number of bytes after which a line is broken, so that a log without line ends fits into memory.
const MAX_LINE: u64 = 256 * 1024;

/// Opens a log with timestamps.
///
/// # Errors
/// The API server or the kubelet refuses it.
pub(super) async fn lines(
    api: &Api<Pod>,
    pod: &str,
    parameters: &LogParams,
    replica: usize,
) -> anyhow::Result<Lines> {
    let opened = with_timeout(api.log_stream(pod, parameters)).await?;
    let log = opened.map_err(|error| {
        let is_of_node = error.to_string().contains("/containerLogs/");
        let explained = explained(error, "get", "pods/log");
        match is_of_node {
            // The API server could not reach the kubelet.
            true => anyhow!("{explained}; if the node is a local node, its output has the logs"),
            false => explained,
        }
    })?;
    let state = (Box::pin(log), Timestamp::MIN);
    let lines = futures::stream::try_unfold(state, move |(mut log, before)| async move {
        let mut bytes = Vec::new();
        let read = (&mut log).take(MAX_LINE).read_until(b'\n', &mut bytes).await?;
        if read == 0 {
            return Ok(None);
        }
        let line = Line::parse(&String::from_utf8_lossy(&bytes), replica, before);
        let time = line.time;
        Ok(Some((line, (log, time))))
    });
    Ok(lines.boxed())
}
