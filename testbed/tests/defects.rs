//! The tests that `docs/maintainers/defects.md` names exist.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::Path;

use training_job_testbed::repository;

#[test]
fn every_test_that_the_page_names_exists() {
    let page = fs::read_to_string(repository().join("docs/maintainers/defects.md")).unwrap();
    let names: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with('|'))
        .flat_map(|line| line.rsplit('|').nth(1).unwrap_or_default().split("<br>"))
        .filter_map(|cell| cell.trim().strip_prefix('`')?.strip_suffix('`'))
        .collect();
    assert!(names.len() > 40, "the page names {} tests", names.len());
    let mut code = String::new();
    for folder in ["src", "crates", "tests", "frameworks", "simulation/tests"] {
        read_code(&repository().join(folder), &mut code);
    }
    let missing: Vec<&&str> = names
        .iter()
        .filter(|name| !code.contains(&format!("fn {name}()")))
        .collect();
    assert!(missing.is_empty(), "no such test: {missing:?}");
}

/// Appends all Rust files below the folder.
fn read_code(folder: &Path, code: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_code(&path, code);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            code.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}
