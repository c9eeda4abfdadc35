//! Defects of the Go operator, and some earlier defects of this operator. They are planted to check that tests fail.
//!
//! `tests/defects/items.yaml` lists the defects, and `tests/defects/*.patch` are the plants. [`Catalogue`] reads both
//! and writes `docs/maintainers/defects.md` from them. [`Bed`] applies a plant to a copy of the repository, and runs
//! the tests that should fail.

mod bed;
mod catalogue;
mod page;

pub use bed::{Bed, Verdict};
pub use catalogue::{Catalogue, Item, Plant, TestName};

use std::path::{Path, PathBuf};

/// Returns the root of the repository.
pub fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap().to_owned()
}
