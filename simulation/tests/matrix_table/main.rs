//! The table in docs/maintainers/reliability.md: each row of the matrix, its tests, and how they last ended.
//!
//! `make docs` writes it anew, `make matrix` runs the tests first.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod results;
mod rows;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::Path;

use results::Results;
use rows::{Row, SECTIONS};
use sources::{Test, normal, root, tests};

const BEGIN: &str = "<!-- matrix: written by `make matrix` -->\n";
const END: &str = "<!-- end of the matrix -->\n";

fn all_rows() -> impl Iterator<Item = &'static Row> {
    SECTIONS.iter().flat_map(|(_, rows)| rows.iter())
}

fn line(row: &Row, tests: &[Test], results: &Results) -> String {
    let names: Vec<_> = tests
        .iter()
        .map(|t| format!("`{}::{}`", t.file, t.name))
        .collect();
    let mut layers = BTreeMap::<&str, Vec<&Test>>::new();
    for test in tests {
        layers
            .entry(if test.is_real() { "R" } else { "S" })
            .or_default()
            .push(test);
    }
    let ended = |(layer, tests): (&&str, &Vec<&Test>)| {
        let of_each: BTreeSet<_> = tests
            .iter()
            .map(|t| results.get(t).map_or("not run", |(result, _)| result.as_str()))
            .collect();
        let days = tests
            .iter()
            .filter_map(|t| results.get(t).map(|(_, day)| day.as_str()));
        let day = days.min().unwrap_or_default();
        let ends: Vec<_> = of_each.into_iter().collect();
        format!("{layer}: {} {day}", ends.join(", "))
            .trim_end()
            .to_owned()
    };
    let ends: Vec<_> = layers.iter().map(ended).collect();
    let layers: Vec<_> = layers.keys().copied().collect();
    format!(
        "| {} | {} | {} | {} | {} |\n",
        row.id,
        row.fault,
        names.join("<br>"),
        layers.join(", "),
        ends.join("<br>")
    )
}

fn table(found: &BTreeMap<String, Vec<Test>>, results: &Results) -> String {
    let mut text = String::new();
    for (title, rows) in SECTIONS {
        text += &format!(
            "\n### {title}\n\n| row | fault | tests | layer | last result |\n|---|---|---|---|---|\n"
        );
        for row in *rows {
            let none = Vec::new();
            text += &line(row, found.get(&normal(row.id)).unwrap_or(&none), results);
        }
    }
    text + "\n"
}

#[test]
fn each_row_has_a_test_and_each_test_a_row() {
    let found = tests();
    for row in all_rows() {
        assert!(found.contains_key(&normal(row.id)), "{} has no test", row.id);
    }
    let known: BTreeSet<_> = all_rows().map(|row| normal(row.id)).collect();
    for (row, tests) in &found {
        assert!(known.contains(row), "there is no row {row}: {tests:?}");
    }
}

#[test]
fn the_table_is_that_of_the_tests() {
    let found = tests();
    let of_rows: Vec<Test> = found.values().flatten().cloned().collect();
    let mut results = results::kept();
    if let Some(folder) = env::var_os("MATRIX_RESULTS") {
        results.extend(results::read(Path::new(&folder), &of_rows));
        results.retain(|test, _| of_rows.contains(test));
        results::keep(&results);
    }
    let file = root().join("docs/maintainers/reliability.md");
    let page = fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let renewed = [before, BEGIN, &table(&found, &results), END, after].concat();
    if env::var_os("MATRIX_RESULTS").is_some() || env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&file, &renewed).unwrap();
    }
    let page = fs::read_to_string(&file).unwrap();
    assert!(
        page == renewed,
        "the matrix in docs/maintainers/reliability.md is stale; run: make docs, or make matrix"
    );
    let failed: Vec<_> = results.iter().filter(|(_, (result, _))| result != "ok").collect();
    assert!(failed.is_empty(), "{failed:?}");
}
