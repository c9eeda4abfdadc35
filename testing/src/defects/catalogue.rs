//! The catalogue of defects, their plants, and the tests that should detect them.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::repository;

/// All defects and plants.
#[derive(Debug)]
pub struct Catalogue {
    /// The defects, sorted by number.
    pub items: Vec<Item>,
    /// The plants, sorted by name. Each name begins with the number of a defect.
    pub plants: Vec<Plant>,
}

/// A defect of the Go operator, or, from [`Item::FIRST_OWN`] on, an earlier defect of this operator.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The number of the defect.
    pub item: u32,
    /// The behavior of the operator with the defect.
    pub defect: String,
    /// The tests that cover the defect without a plant.
    #[serde(default)]
    pub scenarios: Vec<TestName>,
    /// A reason why there is no plant, or another note.
    #[serde(default)]
    pub note: String,
}

/// A patch that plants a defect in this operator.
#[derive(Debug)]
pub struct Plant {
    /// The file name of the patch without its extension.
    pub name: String,
    /// The path of the patch.
    pub file: PathBuf,
    /// The wrong behavior that the patch causes.
    pub makes: String,
    /// The tests that must fail with the patch.
    pub caught_by: Vec<TestName>,
}

/// A test function, identified by its file and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct TestName {
    /// The path of the file, relative to the root of the repository.
    pub file: String,
    /// The name of the function.
    pub name: String,
}

impl TryFrom<String> for TestName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (file, name) = text.split_once(' ').ok_or("write the file, a space, the test")?;
        Ok(Self {
            file: file.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for TestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.file, self.name)
    }
}

impl TestName {
    /// Returns true if the file has a function of this name.
    fn exists(&self) -> bool {
        let text = fs::read_to_string(repository().join(&self.file)).unwrap_or_default();
        text.contains(&format!("fn {}()", self.name))
    }

    /// Returns the package and the target of the test. The target is the name of a file or folder in `tests`, or
    /// `None` for a test within `src`.
    pub fn target(&self) -> (String, Option<String>) {
        let parts: Vec<&str> = self.file.split('/').collect();
        let place = parts.iter().position(|part| matches!(*part, "src" | "tests"));
        let (folder, rest) = parts.split_at(place.expect("a test is below src or tests"));
        let package = match folder {
            [] => "training-job".to_owned(),
            ["operator"] => "training-operator".to_owned(),
            [.., name] => format!("training-job-{name}"),
        };
        let target = match rest {
            ["tests", name, ..] => Some(name.trim_end_matches(".rs").to_owned()),
            _ => None,
        };
        (package, target)
    }
}

impl Item {
    /// The number of the first defect that is not one of the Go operator's.
    pub const FIRST_OWN: u32 = 101;
}

impl Plant {
    /// Returns the number of the defect.
    pub fn item(&self) -> u32 {
        let number = self.name.split('-').next().unwrap_or_default();
        number.parse().expect("a patch's name begins with a number")
    }

    fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap();
        let head: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        let all = |key: &str| -> Vec<String> {
            let values = head.iter().filter_map(|line| line.strip_prefix(key));
            values.map(str::to_owned).collect()
        };
        let caught_by = all("Caught by: ").into_iter().map(TestName::try_from);
        Self {
            name: file.file_stem().unwrap().to_string_lossy().into_owned(),
            file: file.to_owned(),
            makes: all("Plants: ").join(" "),
            caught_by: caught_by.collect::<Result<_, _>>().expect("a file and a test"),
        }
    }

    /// Applies the patch in this folder with `git apply`. Returns the error output if it fails.
    pub(super) fn apply(&self, folder: &Path, options: &[&str]) -> Result<(), String> {
        let git = Command::new("git")
            .arg("apply")
            .args(options)
            .arg(&self.file)
            .current_dir(folder)
            // Keeps git from finding the repository above the copy, because it would then skip the patched files.
            .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder))
            .output()
            .expect("git can be run");
        let error = String::from_utf8_lossy(&git.stderr).into_owned();
        if git.status.success() { Ok(()) } else { Err(error) }
    }
}

impl Catalogue {
    /// Reads the catalogue from `tests/defects`.
    pub fn read() -> Self {
        let folder = repository().join("tests/defects");
        let text = fs::read_to_string(folder.join("items.yaml")).unwrap();
        let items = serde_saphyr::from_str(&text).expect("items.yaml is a list of items");
        let entries = fs::read_dir(&folder).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let is_patch = |file: &&PathBuf| file.extension().is_some_and(|e| e == "patch");
        let plants = files.iter().filter(is_patch).map(|file| Plant::read(file));
        Self {
            items,
            plants: plants.collect(),
        }
    }

    /// Returns the plants for a defect.
    pub fn plants_for(&self, item: u32) -> impl Iterator<Item = &Plant> {
        self.plants.iter().filter(move |plant| plant.item() == item)
    }

    /// Returns the problems of the catalogue: defects without a plant, a test or a note, patches that do not apply,
    /// and tests that do not exist.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let numbers: Vec<u32> = self.items.iter().map(|item| item.item).collect();
        if !numbers.is_sorted_by(|a, b| a < b) {
            problems.push("items.yaml is not in order".to_owned());
        }
        for item in &self.items {
            let planted = self.plants_for(item.item).next().is_some();
            if !planted && item.scenarios.is_empty() && item.note.is_empty() {
                problems.push(format!("{}: nothing is planted, and nothing is said", item.item));
            }
        }
        let known: BTreeSet<u32> = numbers.into_iter().collect();
        let mut tests: BTreeSet<&TestName> = self.items.iter().flat_map(|i| &i.scenarios).collect();
        for plant in &self.plants {
            if !known.contains(&plant.item()) {
                problems.push(format!("{}: items.yaml has no such number", plant.name));
            }
            if plant.makes.is_empty() || plant.caught_by.is_empty() {
                problems.push(format!("{}: say what it plants and what catches it", plant.name));
            }
            if let Err(error) = plant.apply(&repository(), &["--check"]) {
                problems.push(format!("{} does not apply any more: {error}", plant.name));
            }
            tests.extend(&plant.caught_by);
        }
        let gone = tests.into_iter().filter(|test| !test.exists());
        problems.extend(gone.map(|test| format!("there is no test {test}")));
        problems
    }
}
