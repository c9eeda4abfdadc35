//! The in-memory API responds like a real server. Scripts of requests are sent to both, and every response must be
//! the same. See "Is the simulated API server a true one?" in docs/maintainers/reliability.md.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod difference;
mod masks;
mod memory;
mod play;
mod real;
mod script;
mod watches;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use script::Script;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/scripts")
}

/// A test for each script.
macro_rules! scripts {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[tokio::test]
            async fn $name() {
                play::script(Script::read(&folder(), stringify!($name))).await;
            }
        )*
    };
}

scripts! {
    apply
    bookmarks
    collections
    conflicts
    creation
    definitions
    dependents
    discovery
    events
    expiry
    finalizers
    grace
    jobs
    json_patch
    leases
    merge_patch
    names
    negotiation
    openapi
    paging
    pods
    preconditions
    protobuf
    quantities
    quota
    requests
    rules
    scale
    schema
    selectors
    services
    status
    stored_kinds
    strategic_patch
    tables
    terminating
    watching
}

#[test]
fn every_script_is_played() {
    let files = fs::read_dir(folder()).unwrap();
    let found: BTreeSet<String> = files
        .map(|file| file.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let played: BTreeSet<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(found, played);
}
