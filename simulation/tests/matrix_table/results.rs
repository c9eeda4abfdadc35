//! What the tests came to when they were last run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sources::{Test, root};

/// How a test ended, and on which day.
pub(crate) type Results = BTreeMap<Test, (String, String)>;

fn file() -> PathBuf {
    root().join("simulation/tests/matrix_table/results.txt")
}

/// The results that are kept.
pub(crate) fn kept() -> Results {
    let text = fs::read_to_string(file()).unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.split(' ');
        let (file, name) = words.next()?.rsplit_once("::")?;
        let test = Test {
            file: file.to_owned(),
            name: name.to_owned(),
        };
        Some((test, (words.next()?.to_owned(), words.next()?.to_owned())))
    };
    text.lines().filter_map(line).collect()
}

/// Keeps these results.
pub(crate) fn keep(results: &Results) {
    let line = |(test, (result, day)): (&Test, &(String, String))| {
        format!("{}::{} {result} {day}\n", test.file, test.name)
    };
    let text: String = results.iter().map(line).collect();
    fs::write(file(), text).unwrap();
}

/// The results of the runs whose output is in this folder, for the tests that are asked for. The first line of each
/// output is `# day folder`: of which sources it is, and when.
pub(crate) fn read(folder: &Path, tests: &[Test]) -> Results {
    let mut results = Results::new();
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        results.extend(of_output(&text, tests));
    }
    results
}

fn of_output(text: &str, tests: &[Test]) -> Results {
    let mut words = text.lines().next().unwrap_or_default().split(' ').skip(1);
    let (day, folder) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let ended = text.lines().filter_map(|line| {
        let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let name = name.rsplit("::").next()?;
        let is_it = |test: &&Test| test.name == name && test.file.starts_with(folder);
        let test = tests.iter().find(is_it)?.clone();
        Some((test, (result.split(' ').next()?.to_owned(), day.to_owned())))
    });
    ended.collect()
}

#[test]
fn results_are_read_off_the_output_of_tests() {
    let test = |file: &str, name: &str| Test {
        file: file.to_owned(),
        name: name.to_owned(),
    };
    let tests = [
        test("a/b.rs", "a1_x"),
        test("a/c.rs", "a2_y"),
        test("d/b.rs", "a1_x"),
    ];
    let text = "# 2030-01-01 a\nrunning 3 tests\ntest b::a1_x ... ok\ntest c::a2_y ... FAILED\ntest c::other ... ok\n";
    let results = of_output(text, &tests);
    let day = "2030-01-01".to_owned();
    assert_eq!(results.len(), 2);
    assert_eq!(results[&tests[0]], ("ok".to_owned(), day.clone()));
    assert_eq!(results[&tests[1]], ("FAILED".to_owned(), day));
}
