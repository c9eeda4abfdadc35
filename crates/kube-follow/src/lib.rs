//! Lists and watches of Kubernetes objects that outlive their server, and when to try a call again.
#![allow(missing_docs)]

mod retry;
mod version;
mod watch;

pub use retry::{CallError, CallTimeout, backoff, millis};
pub use version::Version;
pub use watch::*;
