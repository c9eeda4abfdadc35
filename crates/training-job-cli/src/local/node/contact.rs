//! The first contact with the API server.

use std::time::Duration;

use anyhow::bail;
use kube::Client;
use local_node::{NodeNameError, check_node_name};
use tokio::time::sleep;
use training_job_client::Signals;
use training_job_client::call_error::text_of;

use crate::local::pod_output::note;

/// The delay between attempts to reach a server.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The result of the first contact.
pub(super) enum Contact {
    /// The server responds, and no other node has the name.
    Made,
    /// A signal arrived first.
    Interrupted,
}

/// Waits until the server responds, then checks that no other node has the name.
///
/// # Errors
/// The server rejects the request, or the name is taken.
pub(super) async fn first_contact(
    client: &Client,
    server: &str,
    name: &str,
    signals: &mut Signals,
) -> anyhow::Result<Contact> {
    let mut noted = false;
    loop {
        let claimed = tokio::select! {
            _ = signals.next() => return Ok(Contact::Interrupted),
            claimed = check_node_name(client, name) => claimed,
        };
        match claimed {
            Ok(()) => return Ok(Contact::Made),
            // A user who may run pods may lack the permission to read nodes.
            Err(NodeNameError::Api(kube::Error::Api(status))) if status.code == 403 => {
                return Ok(Contact::Made);
            }
            // A server that starts or stops responds with 5xx. Such requests are retried.
            Err(NodeNameError::Api(kube::Error::Api(status))) if status.code < 500 => {
                bail!("{server} rejected the request: {}", status.message)
            }
            Err(NodeNameError::Api(error)) => {
                if !noted {
                    note(&format!("waiting: {}", text_of(&error)));
                    noted = true;
                }
            }
            Err(taken) => bail!("{taken} with --name"),
        }
        tokio::select! {
            _ = signals.next() => return Ok(Contact::Interrupted),
            () = sleep(RETRY_DELAY) => {}
        }
    }
}
