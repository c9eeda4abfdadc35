//! Which test is about which row, as the sources tell it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Test {
    /// Its file, from the root of the project.
    pub(crate) file: String,
    pub(crate) name: String,
}

impl Test {
    /// Whether it runs against a real API server.
    pub(crate) fn is_real(&self) -> bool {
        self.file.starts_with("operator/tests/")
    }
}

/// Where names of tests begin with rows.
const NAMED: [&str; 2] = ["simulation/tests/matrix/", "operator/tests/faults/"];

/// Where comments may say which rows a test is about.
const MARKED: [&str; 3] = ["simulation/tests", "operator/tests", "frameworks"];

/// The project's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All tests that are about rows, by the row.
pub(crate) fn tests() -> BTreeMap<String, Vec<Test>> {
    let mut found: BTreeMap<String, Vec<Test>> = BTreeMap::new();
    let mut folders: Vec<PathBuf> = MARKED.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let file = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                for (row, name) in of_file(&file, &fs::read_to_string(&path).unwrap()) {
                    let file = file.clone();
                    found.entry(row).or_default().push(Test { file, name });
                }
            }
        }
    }
    found.values_mut().for_each(|tests| tests.sort());
    found
}

/// The rows, and the tests about them, of a file.
fn of_file(file: &str, text: &str) -> Vec<(String, String)> {
    let named = NAMED.iter().any(|folder| file.starts_with(folder));
    let mut found = Vec::new();
    let (mut is_test, mut rows) = (false, Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(marked) = line.strip_prefix("// Matrix: ") {
            rows.extend(marked.split(", ").map(normal));
        } else if line.starts_with("#[") {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        } else if !line.starts_with("//") {
            let function = line
                .trim_start_matches("pub(crate) ")
                .trim_start_matches("async ");
            let name = function
                .strip_prefix("fn ")
                .and_then(|rest| rest.split(['(', '<']).next());
            if let Some(name) = name.filter(|_| is_test) {
                rows.extend(
                    name.split('_')
                        .next()
                        .filter(|word| named && is_row(word))
                        .map(normal),
                );
                found.extend(rows.drain(..).map(|row| (row, name.to_owned())));
            }
            (is_test, rows) = (false, Vec::new());
        }
    }
    found
}

/// Whether a word is a row's: a letter and a number.
fn is_row(word: &str) -> bool {
    let mut characters = word.chars();
    characters.next().is_some_and(|c| ('a'..='k').contains(&c))
        && word.len() > 1
        && characters.all(|c| c.is_ascii_digit())
}

/// One spelling for `a05`, `A5` and `A-5`.
pub(crate) fn normal(row: &str) -> String {
    let (letter, number) = row.split_at(1);
    let number: u32 = number
        .trim_start_matches('-')
        .parse()
        .unwrap_or_else(|_| panic!("{row}"));
    format!("{}{number}", letter.to_uppercase())
}

#[test]
fn rows_are_read_off_names_and_marks() {
    let text = "#[test]\nfn a05_x() {\n}\n\n// Matrix: I-3, K2\n#[tokio::test(start_paused = true)]\nasync fn other() {\n}\n\
        fn b1_helper() {\n}\n#[test]\nfn a_b() {\n}\n";
    let pairs = |file| -> Vec<String> {
        let found = of_file(file, text);
        found
            .into_iter()
            .map(|(row, name)| format!("{row} {name}"))
            .collect()
    };
    assert_eq!(
        pairs("operator/tests/faults/a.rs"),
        ["A5 a05_x", "I3 other", "K2 other"]
    );
    assert_eq!(pairs("frameworks/a.rs"), ["I3 other", "K2 other"]);
}
