//! The code blocks of the documentation are copies of files that are built and tested, and its links lead to files
//! and headings.

use std::fs;
use std::path::{Path, PathBuf};

use training_job_controller::process::{self, Program};
use training_operator_testing::program::root;

/// Returns the text that a mark `FILE` or `FILE#REGION` refers to, without the lines that mark regions and without the
/// common indentation.
fn source(mark: &str) -> String {
    let (file, region) = mark.split_once('#').unwrap_or((mark, ""));
    let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let ends_with = |line: &str, end: &str| line.trim_start_matches(['/', '#', ' ']) == end;
    let (begin, end) = (format!("region: {region}"), format!("endregion: {region}"));
    let mut within = region.is_empty();
    let mut found = Vec::new();
    for line in text.lines() {
        if ends_with(line, &begin) || ends_with(line, &end) {
            within = ends_with(line, &begin);
        } else if within && !line.contains("region: ") {
            found.push(line);
        }
    }
    assert!(!found.is_empty(), "{mark} is empty");
    let full = found.iter().filter(|line| !line.is_empty());
    let indent = full
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    let lines = found
        .iter()
        .map(|line| format!("{}\n", line.get(indent..).unwrap_or_default()));
    lines.collect()
}

/// Returns the page with each marked block replaced by the text of its file. Panics at code without a mark.
fn renewed(page: &str) -> String {
    let mut out = String::new();
    let mut mark = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if let Some(language) = line.strip_prefix("```") {
            let body: String = lines
                .by_ref()
                .take_while(|line| *line != "```")
                .map(|line| format!("{line}\n"))
                .collect();
            match mark.take() {
                Some(mark) => out.push_str(&source(mark)),
                // Other tests cover commands and their output.
                None if language == "sh" || language == "text" => out.push_str(&body),
                None => panic!("a block of {language} has no mark with its file:\n{body}"),
            }
            out.push_str("```\n");
        } else {
            mark = line
                .strip_prefix("<!-- ")
                .and_then(|rest| rest.strip_suffix(" -->"));
        }
    }
    out
}

#[test]
fn code_blocks_match_their_files() {
    for file in pages(&root().join("docs/authors")) {
        let page = fs::read_to_string(&file).unwrap();
        let renewed = renewed(&page);
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&file, &renewed).unwrap();
        } else {
            assert!(page == renewed, "{} is stale; run: make docs", file.display());
        }
    }
}

/// Returns the table of all metrics of the operator.
fn metrics_table() -> String {
    let program = Program::new("training-operator");
    let rows = process::metric_descriptions(&program).into_iter().map(|metric| {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, labels) = (metric.name, labels.join(", "));
        format!("| `{name}` | {} | {labels} | {} |\n", metric.kind, metric.help)
    });
    let head = "| metric | type | labels | help |\n|---|---|---|---|\n".to_owned();
    [head].into_iter().chain(rows).collect()
}

#[test]
fn the_table_of_metrics_is_that_of_the_code() {
    let file = root().join("docs/users/metrics.md");
    let page = fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once("<!-- metrics -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of metrics -->\n").unwrap();
    let table = metrics_table();
    let renewed = format!("{before}<!-- metrics -->\n{table}<!-- end of metrics -->\n{after}");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&file, &renewed).unwrap();
    } else {
        assert!(page == renewed, "{} is stale; run: make docs", file.display());
    }
}

#[test]
fn every_metric_in_the_table_has_its_labels() {
    let all = process::metric_descriptions(&Program::new("training-operator"));
    let labels = |name: &str| {
        let metric = all.iter().find(|metric| metric.name.ends_with(name));
        metric.map(|metric| metric.labels.join(","))
    };
    for (name, expected) in [
        ("_jobs_created_total", "job_namespace,framework"),
        ("_jobs", "job_namespace,framework,state"),
        ("_reconcile_seconds", "framework,result"),
        ("_job_startup_seconds", "framework"),
        ("_api_requests_total", "verb,resource,code"),
        ("_crd_missing", "resource"),
        ("_watch_last_event_timestamp_seconds", "resource"),
        ("_leader", ""),
        ("process_open_fds", ""),
    ] {
        assert_eq!(labels(name).as_deref(), Some(expected), "{name}");
    }
}

#[test]
fn the_reference_for_authors_names_every_hook_and_builder() {
    let page = fs::read_to_string(root().join("docs/authors/reference.md")).unwrap();
    let declared = |file: &str, start: &str| -> Vec<String> {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let names = text.lines().filter_map(|line| {
            let name = line.trim_start().strip_prefix(start)?;
            Some(name.split(['(', '<']).next()?.to_owned())
        });
        names.filter(|name| name != "new" && name != "of").collect()
    };
    let hooks = declared("src/job/mod.rs", "fn ");
    let builders = ["framework", "role_definition", "objects"]
        .map(|file| declared(&format!("src/job/{file}.rs"), "pub const fn "));
    assert!(hooks.len() > 20 && builders.concat().len() > 30);
    for name in hooks.iter().chain(builders.iter().flatten()) {
        let is_named = page.contains(&format!("`{name}`")) || page.contains(&format!(".{name}("));
        assert!(is_named, "docs/authors/reference.md does not name {name}");
    }
}

/// Returns the pages below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => pages(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect()
}

/// Returns all pages for readers of the project.
pub(crate) fn all_pages() -> Vec<PathBuf> {
    let top = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
    let top = top.map(|name| root().join(name));
    top.into_iter().chain(pages(&root().join("docs"))).collect()
}

/// Returns the anchors of a page's headings, as GitHub makes them.
fn anchors(page: &str) -> Vec<String> {
    let outside_of_code = page.split("```").step_by(2);
    let lines = outside_of_code.flat_map(str::lines);
    let headings = lines.filter(|line| line.starts_with('#'));
    let anchors = headings.map(|line| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    });
    anchors.collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    for page in all_pages() {
        let text = fs::read_to_string(&page).unwrap();
        let links = text
            .split("](")
            .skip(1)
            .map(|rest| rest.split(')').next().unwrap());
        for link in links.filter(|link| !link.contains(':')) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                _ => page.with_file_name(file),
            };
            assert!(target.exists(), "{page:?}: there is no file {link}");
            if !anchor.is_empty() && (file.is_empty() || file.ends_with(".md")) {
                let anchors = anchors(&fs::read_to_string(target).unwrap());
                assert!(
                    anchors.iter().any(|heading| heading == anchor),
                    "{page:?}: there is no heading {link}"
                );
            }
        }
    }
}
