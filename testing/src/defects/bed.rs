//! A copy of the repository in which defects are planted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Plant, TestName, repository};

/// A copy of the repository, and its build output.
#[derive(Debug)]
pub struct Bed {
    tree: PathBuf,
    target: PathBuf,
}

/// The result of a run of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// These tests failed, and the others passed.
    Failed(BTreeSet<TestName>),
    /// A test was not run, because the copy does not build, or its tests have other names. Contains the end of the
    /// output.
    NotRun(String),
}

impl Bed {
    /// Creates a bed below a folder, which keeps the build output for the next time.
    pub fn new(folder: &Path) -> Self {
        Self {
            tree: folder.join("tree"),
            target: folder.join("target"),
        }
    }

    /// Makes the copy equal to the repository, including uncommitted changes. Unchanged files are not written, to
    /// avoid unnecessary builds.
    pub fn clear(&self) {
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(repository())
            .output()
            .expect("git can be run");
        let listed = String::from_utf8(listed.stdout).unwrap();
        let files: BTreeSet<&str> = listed.split('\0').filter(|name| !name.is_empty()).collect();
        for name in &files {
            let (from, to) = (repository().join(name), self.tree.join(name));
            // The list includes files that were deleted without a commit.
            let Ok(content) = fs::read(&from) else { continue };
            if fs::read(&to).ok().as_ref() != Some(&content) {
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::write(&to, content).unwrap();
            }
        }
        for file in self.all_files() {
            let name = file
                .strip_prefix(&self.tree)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            if !files.contains(name.as_str()) || !repository().join(&name).exists() {
                fs::remove_file(&file).unwrap();
            }
        }
    }

    fn all_files(&self) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![self.tree.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else {
                    found.push(path);
                }
            }
        }
        found
    }

    /// Plants a defect in the copy.
    ///
    /// # Errors
    /// Returns the output of `git` if the patch does not apply.
    pub fn plant(&self, plant: &Plant) -> Result<(), String> {
        plant.apply(&self.tree, &[])
    }

    /// Reverts a planted defect. The copy is then as before, even if the repository has changed since.
    ///
    /// # Panics
    /// Panics if the defect is not planted.
    pub fn weed(&self, plant: &Plant) {
        plant.apply(&self.tree, &["--reverse"]).expect("it is planted");
    }

    /// Runs tests in the copy.
    pub fn run<'t>(&self, tests: impl IntoIterator<Item = &'t TestName>) -> Verdict {
        let mut targets = BTreeMap::<_, Vec<&TestName>>::new();
        for test in tests {
            targets.entry(test.target()).or_default().push(test);
        }
        let mut failed = BTreeSet::new();
        for ((package, target), tests) in targets {
            let mut cargo = Command::new("cargo");
            cargo.args(["test", "--profile", "mutants", "--package", &package]);
            match &target {
                Some(target) => cargo.args(["--test", target]),
                None => cargo.arg("--lib"),
            };
            cargo.arg("--").args(tests.iter().map(|test| &test.name));
            cargo.current_dir(&self.tree);
            cargo.env("CARGO_TARGET_DIR", &self.target);
            let output = cargo.output().expect("cargo can be run");
            let stdout = String::from_utf8_lossy(&output.stdout);
            for test in tests {
                match result(&stdout, &test.name) {
                    Some("ok") => {}
                    Some("FAILED") => {
                        failed.insert(test.clone());
                    }
                    _ => {
                        let all = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
                        let from = all.len().saturating_sub(3_000);
                        let from = (from..all.len()).find(|n| all.is_char_boundary(*n)).unwrap_or(0);
                        return Verdict::NotRun(format!("{test} was not run\n{}", &all[from..]));
                    }
                }
            }
        }
        Verdict::Failed(failed)
    }
}

/// Returns libtest's result of a test of this name, in any module.
fn result<'o>(output: &'o str, name: &str) -> Option<&'o str> {
    output.lines().find_map(|line| {
        let (test, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
        (test.rsplit("::").next() == Some(name)).then_some(result.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_by_the_last_part_of_the_name() {
        let output = "running 2 tests\ntest a::one ... ok\ntest a::one_more ... FAILED\n";
        assert_eq!(result(output, "one"), Some("ok"));
        assert_eq!(result(output, "one_more"), Some("FAILED"));
        assert_eq!(result(output, "more"), None);
    }
}
