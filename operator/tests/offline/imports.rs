//! Checks the direction of imports: in the library it is fixed, and in no package do modules import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use training_job_testbed::cluster::repository;

/// The library's modules. Each may import those before it.
const ORDER: [&str; 7] = ["api", "job", "validate", "render", "admission", "offline", "plan"];

/// The modules that a module of a package imports, by their names.
type Imports = BTreeMap<String, BTreeSet<String>>;

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

/// Returns the folders with the sources of all packages of the workspace.
fn packages() -> Vec<PathBuf> {
    let below = |folder: &str| {
        let entries = fs::read_dir(repository().join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let alone = [
        ".",
        "bench",
        "operator",
        "operator/review",
        "operator/testing",
        "simulation",
        "testbed",
    ];
    let alone = alone.map(|folder| repository().join(folder));
    let all = alone
        .into_iter()
        .chain(below("crates"))
        .chain(below("frameworks"));
    all.map(|package| package.join("src")).collect()
}

/// Returns the modules of the package that a text names. `depth` is the number of modules that it is in: each `super::` leads
/// out of one. Comments are ignored.
fn imported(text: &str, depth: usize) -> BTreeSet<String> {
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join("\n");
    let from_root = ["crate::".to_owned(), "super::".repeat(depth)];
    let paths = from_root
        .iter()
        .flat_map(|root| code.match_indices(root.as_str()));
    // `super::super::` contains `super::` twice.
    let whole = paths.filter(|(at, root)| {
        let is_longer = code[at + root.len()..].starts_with("super::") || code[..*at].ends_with("super::");
        !is_longer
    });
    let word = |path: &str| {
        let letters = path.trim_start().chars();
        letters
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect::<String>()
    };
    let mut names = BTreeSet::new();
    for (at, root) in whole {
        let path = &code[at + root.len()..];
        let Some(group) = path.strip_prefix('{') else {
            names.insert(word(path));
            continue;
        };
        let (mut level, mut start) = (0, 0);
        for (n, c) in group.char_indices() {
            match c {
                '{' => level += 1,
                '}' if level > 0 => level -= 1,
                ',' | '}' if level == 0 => {
                    names.insert(word(&group[start..n]));
                    start = n + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    names.remove("");
    names
}

/// Returns the imports between the modules of a package. The root and tests may import all modules.
fn imports(src: &Path) -> Imports {
    let mut all = Imports::new();
    for file in sources(src) {
        let relative = file.strip_prefix(src).unwrap().with_extension("");
        let path: Vec<&str> = relative.iter().map(|part| part.to_str().unwrap()).collect();
        if ["lib", "main"].contains(&path[0]) || path.contains(&"tests") {
            continue;
        }
        let depth = path.iter().filter(|part| **part != "mod").count();
        let text = fs::read_to_string(&file).unwrap();
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let of_module = all.entry(path[0].to_owned()).or_default();
        of_module.extend(imported(product, depth));
        of_module.remove(path[0]);
    }
    let modules: BTreeSet<String> = all.keys().cloned().collect();
    all.values_mut()
        .for_each(|of_module| of_module.retain(|name| modules.contains(name)));
    all
}

/// Returns modules that import each other, each with those that it imports.
fn circle(mut imports: Imports) -> Imports {
    loop {
        let left: BTreeSet<String> = imports.keys().cloned().collect();
        imports
            .values_mut()
            .for_each(|of_module| of_module.retain(|name| left.contains(name)));
        let before = imports.len();
        // A module that imports nothing, or that nothing imports, is in no circle.
        let used: BTreeSet<String> = imports.values().flatten().cloned().collect();
        imports.retain(|module, of_module| !of_module.is_empty() && used.contains(module));
        if imports.len() == before {
            return imports;
        }
    }
}

#[test]
fn modules_of_a_package_do_not_import_each_other_in_a_circle() {
    let mut read = 0;
    for src in packages() {
        let imports = imports(&src);
        read += imports.values().map(BTreeSet::len).sum::<usize>();
        let circle = circle(imports);
        assert!(circle.is_empty(), "{}: {circle:?}", src.display());
    }
    assert!(read > 400, "only {read} imports were found");
}

#[test]
fn each_module_of_the_library_imports_only_those_before_it() {
    let imports = imports(&repository().join("src"));
    let place = |module: &str| {
        let place = ORDER.iter().position(|other| *other == module);
        place.unwrap_or_else(|| panic!("{module} has no place in the order; give it one"))
    };
    for (module, of_module) in imports {
        for other in of_module {
            assert!(place(&other) < place(&module), "{module} imports {other}");
        }
    }
}

#[test]
fn imports_in_comments_are_ignored() {
    let names = |text: &str, depth| imported(text, depth).into_iter().collect::<Vec<_>>();
    assert_eq!(names("use crate::plan::Plan; // crate::api", 1), ["plan"]);
    assert_eq!(
        names("fn f(a: crate::api::A, b: crate::job::B)", 1),
        ["api", "job"]
    );
    assert!(names("/// [`crate::plan`]", 1).is_empty());
    assert_eq!(
        names("use crate::{\n    api::{A, B},\n    job,\n};", 1),
        ["api", "job"]
    );
    assert_eq!(names("use super::plan::Plan;", 1), ["plan"]);
    assert!(names("use super::plan::Plan;", 2).is_empty());
    assert_eq!(names("use super::super::plan::Plan;", 2), ["plan"]);
    let of = |modules: &[(&str, &str)]| -> Imports {
        let each = modules.iter();
        each.map(|(one, other)| ((*one).to_owned(), BTreeSet::from([(*other).to_owned()])))
            .collect()
    };
    assert!(circle(of(&[("a", "b"), ("b", "c")])).is_empty());
    assert_eq!(
        circle(of(&[("a", "b"), ("b", "c"), ("c", "b")])),
        of(&[("b", "c"), ("c", "b")])
    );
}
