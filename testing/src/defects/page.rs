//! The catalogue for readers.

use super::{Catalogue, Item, TestName};

const INTRODUCTION: &str = "\
# The Go operator's defects

What the Kubeflow training operator v1.8.1 does wrong, and how the tests here would notice if this operator did
the same. Where it can be done in a few lines, the defect is planted: each file of
[tests/defects](../../tests/defects) is a patch that makes this operator behave so.

    make defects                    # plants each in a copy, and runs the tests that must fail
    make defects PLANTS='04 22-'    # those whose names begin so

`make defects` first runs the same tests without a plant, where they must pass. It ends with 1 if a patch does
not apply, does not build, or is not noticed by one of its tests. `make test` looks whether all patches apply and
all tests are there. The numbers are those of a list of all that was found in the Go operator's sources; those
that are left out are not about behaviour, or are told in [differences.md](../users/differences.md) alone.

Written by `make docs` from `tests/defects`.

";

const OWN: &str = "
## This operator's own

What was wrong here once, and only a load or a fault showed.

";

impl Catalogue {
    /// `docs/maintainers/defects.md`.
    pub fn page(&self) -> String {
        let own = self.items.partition_point(|item| item.item < Item::FIRST_OWN);
        let (theirs, own) = self.items.split_at(own);
        let theirs = self.table("the Go operator", theirs);
        let own = self.table("this operator", own);
        format!("{INTRODUCTION}{theirs}{OWN}{own}")
    }

    fn table(&self, whose: &str, items: &[Item]) -> String {
        let mut page = format!("| | {whose} | planted as | caught by |\n|---|---|---|---|\n");
        for item in items {
            let plants: Vec<_> = self.plants_for(item.item).collect();
            let names: Vec<_> = plants
                .iter()
                .map(|plant| link(&plant.name, &plant.makes))
                .collect();
            let mut tests: Vec<_> = plants.iter().flat_map(|plant| &plant.caught_by).collect();
            tests.extend(&item.scenarios);
            let mut seen = Vec::new();
            for test in tests.into_iter().map(words) {
                if !seen.contains(&test) {
                    seen.push(test);
                }
            }
            let planted = match (names.is_empty(), item.note.is_empty()) {
                (false, true) => names.join("; "),
                (false, false) => format!("{}. {}", names.join("; "), item.note),
                (true, _) => item.note.clone(),
            };
            page += &format!(
                "| {} | {} | {planted} | {} |\n",
                item.item,
                item.defect,
                seen.join("; ")
            );
        }
        page
    }
}

fn link(name: &str, makes: &str) -> String {
    format!("[{makes}](../../tests/defects/{name}.patch)")
}

/// A test's name as a sentence, with the file for who looks for it.
fn words(test: &TestName) -> String {
    let file = test.file.rsplit('/').next().unwrap_or_default();
    format!("`{file}` {}", test.name.replace('_', " "))
}
