//! The figures of docs/maintainers/performance.md and of the table of docs/users/sizing.md are those of
//! docs/maintainers/performance.json, which a whole run of `make bench` writes.

use std::fs;

use serde_json::Value;
use training_operator_testing::program::root;

/// Returns the median of the rounds of a figure such as `burst ours cpu`: the work, the program, and the figure.
fn figure(results: &Value, name: &str) -> f64 {
    let [work, by, figure] = name.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{name} names no figure");
    };
    let runs = work_of(results, work)["runs"].as_array().unwrap();
    let runs = runs.iter().filter(|run| run["by"] == by);
    let mut values: Vec<f64> = runs.filter_map(|run| run["figures"][figure].as_f64()).collect();
    values.sort_by(f64::total_cmp);
    assert!(!values.is_empty(), "{name} was not measured");
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

fn work_of<'r>(results: &'r Value, name: &str) -> &'r Value {
    let works = results["works"].as_array().unwrap();
    let work = works.iter().find(|work| work["name"] == name);
    work.unwrap_or_else(|| panic!("there is no work {name}"))
}

/// Returns the text of a placeholder: a setting, the title of a work, a figure, or the ratio of two figures.
fn text(results: &Value, placeholder: &str) -> String {
    if let Some((one, other)) = placeholder.split_once(" / ") {
        let ratio = figure(results, one) / figure(results, other);
        return if ratio >= 0.005 {
            format!("{ratio:.2}")
        } else {
            "< 0.01".to_owned()
        };
    }
    match results.get(placeholder) {
        Some(setting) => setting.to_string(),
        None if placeholder.contains(' ') => number(figure(results, placeholder)),
        None => work_of(results, placeholder)["title"]
            .as_str()
            .unwrap()
            .to_owned(),
    }
}

/// Returns a number with three significant digits, or two decimals if it is small.
fn number(value: f64) -> String {
    match value {
        value if value.fract() == 0.0 || value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Replaces the placeholders of a template, which are in braces.
fn filled(results: &Value, template: &str) -> String {
    let template = fs::read_to_string(root().join(template)).unwrap();
    let parts = template
        .split('{')
        .enumerate()
        .map(|(n, part)| match part.split_once('}') {
            Some((placeholder, rest)) if n > 0 => text(results, placeholder) + rest,
            _ => part.to_owned(),
        });
    parts.collect()
}

#[test]
fn the_pages_have_the_measured_figures() {
    let json = fs::read(root().join("docs/maintainers/performance.json")).unwrap();
    let results: Value = serde_json::from_slice(&json).unwrap();
    let sizes = filled(&results, "bench/sizing.md");
    let stored = fs::read_to_string(root().join("docs/users/sizing.md")).unwrap();
    let (before, _) = stored.split_once("<!-- sizes -->\n").unwrap();
    let (_, after) = stored.split_once("<!-- end of sizes -->\n").unwrap();
    for (page, content) in [
        (
            "docs/maintainers/performance.md",
            filled(&results, "bench/performance.md"),
        ),
        ("docs/users/sizing.md", format!("{before}{sizes}{after}")),
    ] {
        let file = root().join(page);
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&file, content).unwrap();
        } else {
            let stored = fs::read_to_string(&file).unwrap();
            assert!(stored == content, "{page} is stale; run: make docs");
        }
    }
}
