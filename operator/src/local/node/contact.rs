//! The first contact with the API server.

use std::time::Duration;

use anyhow::bail;
use kube::Client;
use local_node::{NodeNameError, check_node_name};
use tokio::time::sleep;

use super::output::note;
use crate::local::signals::Signals;

/// How long to wait before a server that cannot be reached is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How the first contact ended.
pub(super) enum Contact {
    /// The server answers, and the name is free.
    Made,
    /// A signal came before that.
    Interrupted,
}

/// Waits for a server that does not answer yet; then checks that no other has the node's name.
///
/// # Errors
/// The server refuses the user, or the name is taken.
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
            // A user who may run pods may lack the permission to see nodes.
            Err(NodeNameError::Api(kube::Error::Api(status))) if status.code == 403 => {
                return Ok(Contact::Made);
            }
            // A server that starts or stops answers with 5xx: try again.
            Err(NodeNameError::Api(kube::Error::Api(status))) if status.code < 500 => {
                bail!("{server} refuses: {}", status.message)
            }
            Err(NodeNameError::Api(error)) => {
                if !noted {
                    note(&format!("waiting for {server}: {:#}", anyhow::Error::from(error)));
                    noted = true;
                }
            }
            Err(taken) => bail!("{taken} with --name"),
        }
        tokio::select! {
            _ = signals.next() => return Ok(Contact::Interrupted),
            () = sleep(RETRY) => {}
        }
    }
}
