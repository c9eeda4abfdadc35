//! The catalogue of defects is complete: `tests/defects`, `docs/maintainers/defects.md`.

// A test fails by a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use training_job_testing::defects::{Catalogue, repository};

/// The numbers of the Go operator's defects that affect behavior, and of this operator's own defects.
fn numbers() -> Vec<u32> {
    [1..=12, 15..=18, 21..=25, 28..=37, 50..=53, 101..=102]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn every_patch_applies_and_every_test_is_there() {
    let problems = Catalogue::read().problems();
    assert!(problems.is_empty(), "tests/defects:\n{}", problems.join("\n"));
}

#[test]
fn every_defect_of_behaviour_is_in_it() {
    let items: Vec<u32> = Catalogue::read().items.iter().map(|item| item.item).collect();
    assert_eq!(items, numbers());
}

#[test]
fn the_page_is_current() {
    let file = repository().join("docs/maintainers/defects.md");
    let page = Catalogue::read().page();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let there = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        there == page,
        "docs/maintainers/defects.md is stale; run: make docs"
    );
}
