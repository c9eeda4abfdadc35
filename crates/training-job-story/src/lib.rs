//! The story of a training job, as JSON and as one HTML page.
//!
//! | file | content |
//! |---|---|
//! | `story.rs` | [`Story`]: the JSON value |
//! | `recorder.rs` | [`Recorder`]: observed objects → story |
//! | `pod.rs` | the facts of one pod |
//! | `earlier.rs` | replaced pods, from failures and events |
//! | `deleted.rs` | other deleted pods, from events |
//! | `settings.rs` | values of the spec, and which of them are defaults |
//! | `curve.rs` | metrics in lines of logs |
//! | `size.rs` | the bounds |
//! | `html/` | the page |

mod curve;
mod deleted;
mod earlier;
mod html;
mod pod;
mod recorder;
mod rendered;
mod settings;
mod size;
mod story;
mod text;

pub use curve::{CURVES, Curve};
pub use html::{STYLE, Site, html, site_html};
pub use recorder::{Job, Recorder};
pub use rendered::RenderedRole;
pub use settings::{Setting, settings};
pub use size::MAX_BYTES;
pub use story::{
    Condition, ContainerRun, Event, Failure, LogLine, Omitted, PodHistory, Replica, Story, VERSION, Wait,
    Warning,
};
