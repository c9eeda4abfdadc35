//! Lists and watches of Kubernetes objects that survive server failures, and wait times for retries.
//!
//! [`Watch`] lists objects, then watches them without end, and passes each [`Event`] to a function. It is for
//! controllers that keep a cache. Events carry the versions of lists and bookmarks. The cache can therefore compute
//! how current it is, and which response to its own writes is newer than the watch.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, PostParams};
//! use kube::ResourceExt;
//! use kube_follow::{Event, Watch};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! // Any client will do. This one talks to an API server in memory.
//! let client = kube_memory::Cluster::new().client("default");
//! let maps: Api<ConfigMap> = Api::default_namespaced(client);
//! let (seen, mut events) = tokio::sync::mpsc::unbounded_channel();
//! let watch = Watch::new(maps.clone());
//! let task = tokio::spawn(async move {
//!     watch.run(|event| drop(seen.send(event))).await;
//! });
//!
//! while !matches!(events.recv().await, Some(Event::ListDone)) {}
//! let mut map = ConfigMap::default();
//! map.metadata.name = Some("settings".to_owned());
//! maps.create(&PostParams::default(), &map).await.unwrap();
//! let Some(Event::Applied(map)) = events.recv().await else { panic!("no event") };
//! assert_eq!(map.name_any(), "settings");
//! task.abort();
//! # });
//! ```
//!
//! # Failures
//!
//! | failure | reaction of [`Watch::run`] |
//! |---|---|
//! | The watch's version is too old (410, in any form) | Lists at once. If it happens again within 300 s, it waits first. |
//! | An event cannot be decoded, or lines are lost | Lists at once, with the same bound. |
//! | The server is silent, and the connection does not break | Gives up after [`Watch::silence_timeout`] and watches from the last version. |
//! | A list, or the start of a watch, gets no response | Gives up after [`Watch::call_timeout`]. |
//! | The server was restored from a backup | Lists after an event with a lower version, or after watches without any event for [`DEFAULT_SILENCE_TIMEOUT`]. |
//! | Watches end as soon as they begin | Waits before the next one. |
//! | The server requests a pause (`Retry-After`) | Waits that long, at most 300 s. |
//! | The connection of a watch is lost | Watches at once from the last version, and waits only if that fails too. |
//! | The server is away, and the client has a [`Gate`] | Waits at the gate, without a line in the log. |
//!
//! Waits grow with each failure in a row, from 0.5 s up to 40 s. They start from 0.5 s again once nothing has failed
//! for 30 s.
//!
//! The same tools serve your own calls: [`CallTimeout`] bounds a call, [`CallError`] is the error of a call without a
//! usable response, [`backoff`] returns the wait before a retry, and [`Version`] compares the age of two states.

mod backoff;
mod call;
mod gate;
mod version;
mod watch;

pub use backoff::{backoff, millis};
pub use call::{CallError, CallTimeout};
pub use gate::{Gate, Gated, Waiting};
pub use version::Version;
pub use watch::{DEFAULT_SILENCE_TIMEOUT, Event, Watch};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
