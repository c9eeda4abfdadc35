//! Defects of the Go operator, and some that this one had, planted to see whether the tests notice.
//!
//! `tests/defects/items.yaml` lists the defects, `tests/defects/*.patch` are the plants. [`Catalogue`] reads
//! both and writes `docs/defects.md` from them; [`Bed`] plants one in a copy of the repository, and runs the
//! tests that are to fail.

mod bed;
mod catalogue;
mod page;

pub use bed::{Bed, Verdict};
pub use catalogue::{Catalogue, Item, Plant, TestName};

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap().to_owned()
}
