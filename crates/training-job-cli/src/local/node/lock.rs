//! A lock on a node's name. Two agents with the same name on a machine would run each pod twice.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Held while the node runs. The kernel releases the lock when the process ends, however it ends.
pub(super) struct Lock {
    _socket: UnixListener,
}

/// Locks the name of a node. Returns `None` if another process holds the lock.
///
/// # Errors
/// The machine does not support abstract socket addresses.
pub(super) fn acquire(server: &str, name: &str) -> io::Result<Option<Lock>> {
    let mut hasher = DefaultHasher::new();
    (server, name).hash(&mut hasher);
    let address = SocketAddr::from_abstract_name(format!("training-job-node-{:016x}", hasher.finish()))?;
    match UnixListener::bind_addr(&address) {
        Ok(socket) => Ok(Some(Lock { _socket: socket })),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::acquire;

    #[test]
    fn a_name_is_taken_once_for_each_server() {
        let held = acquire("https://here", "a-test").unwrap();
        assert!(held.is_some());
        assert!(acquire("https://here", "a-test").unwrap().is_none());
        assert!(acquire("https://here", "another-test").unwrap().is_some());
        assert!(acquire("https://there", "a-test").unwrap().is_some());
        drop(held);
        assert!(acquire("https://here", "a-test").unwrap().is_some());
    }
}
