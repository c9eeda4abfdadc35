//! The first contact with the API server.

use std::time::Duration;

use anyhow::bail;
use kube::Client;
use local_node::{NodeNameError, check_node_name};
use tokio::time::sleep;

use crate::signals::Signals;

use super::note;

/// How long to wait before a server that cannot be reached is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How the first contact ended.
pub(super) enum Contact {
    /// The server answers, and the name is free.
    Made,
    /// A signal came before.
    GivenUp,
}

/// Waits for a server that does not answer yet; then checks that no other has the node's name.
///
/// # Errors
/// The server knows the user not, or the name is taken.
pub(super) async fn first_contact(
    client: &Client,
    server: &str,
    name: &str,
    signals: &mut Signals,
) -> anyhow::Result<Contact> {
    let mut told = false;
    loop {
        let claimed = tokio::select! {
            _ = signals.next() => return Ok(Contact::GivenUp),
            checked = check_node_name(client, name) => checked,
        };
        match claimed {
            Ok(()) => return Ok(Contact::Made),
            // One who may run pods need not see nodes.
            Err(NodeNameError::Api(kube::Error::Api(status))) if status.code == 403 => {
                return Ok(Contact::Made);
            }
            // A server that begins or ends is not a refusal.
            Err(NodeNameError::Api(kube::Error::Api(status))) if status.code < 500 => {
                bail!("{server} refuses: {}", status.message)
            }
            Err(NodeNameError::Api(error)) => {
                if !told {
                    note(&format!("waiting for {server}: {:#}", anyhow::Error::from(error)));
                    told = true;
                }
            }
            Err(taken) => bail!("{taken} with --name"),
        }
        tokio::select! {
            _ = signals.next() => return Ok(Contact::GivenUp),
            () = sleep(RETRY) => {}
        }
    }
}
