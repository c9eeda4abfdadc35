//! Checks the direction of imports within the library and within the in-memory API.

use std::fs;
use std::path::{Path, PathBuf};

use training_job_testbed::cluster::repository;

/// The library's modules. Each may import those before it.
const ORDER: [&str; 6] = ["api", "job", "validate", "render", "admission", "plan"];

/// The modules of the in-memory API, in the same order.
const MEMORY: [&str; 12] = [
    "object",
    "kinds",
    "table",
    "request",
    "store",
    "storage",
    "subresource",
    "server",
    "verbs",
    "controllers",
    "shared",
    "endpoint",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the modules that a line of code names with `crate::`. Comments are ignored.
fn imported(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    let paths = code.split("crate::").skip(1);
    let word = |path: &str| -> String {
        path.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    paths.map(word).collect()
}

#[test]
fn each_module_of_the_library_imports_only_those_before_it() {
    check("src", &ORDER);
}

#[test]
fn each_module_of_the_in_memory_api_imports_only_those_before_it() {
    check("crates/kube-memory/src", &MEMORY);
}

fn check(folder: &str, order: &[&str]) {
    let src = repository().join(folder);
    let place = |module: &str| order.iter().position(|m| *m == module);
    let mut wrong = Vec::new();
    let mut read = 0;
    for file in sources(&src) {
        let relative = file.strip_prefix(&src).unwrap();
        let first = relative.iter().next().unwrap().to_str().unwrap();
        let module = first.trim_end_matches(".rs");
        // The root and the tests of the whole crate may import all modules. `backup` is a part of the root's
        // `Cluster`.
        if ["lib", "tests", "backup"].contains(&module) {
            continue;
        }
        let own = place(module).unwrap_or_else(|| panic!("{module} has no place in the order; give it one"));
        for (n, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            for name in imported(line) {
                read += 1;
                match place(&name) {
                    Some(other) if other <= own => {}
                    _ => wrong.push(format!("{folder}/{}:{}: {line}", relative.display(), n + 1)),
                }
            }
        }
    }
    assert!(read > 50, "only {read} imports were found in {folder}");
    assert!(
        wrong.is_empty(),
        "these import a module that comes later, or the crate's root:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn imports_are_told_from_comments() {
    assert_eq!(imported("use crate::plan::Plan; // crate::api"), ["plan"]);
    assert_eq!(
        imported("fn f(a: crate::api::A, b: crate::job::B)"),
        ["api", "job"]
    );
    assert!(imported("/// [`crate::plan`]").is_empty());
    assert_eq!(
        imported("use crate::{api, job};"),
        [""],
        "a group has to be written out"
    );
}
