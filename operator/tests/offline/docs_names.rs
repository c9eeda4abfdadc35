//! Every path, command, flag, metric, annotation and identifier that the documentation has in `backticks` exists.
//!
//! The test recognizes what a name is by its form. A form that it does not recognize, such as YAML with values or a
//! command of another program, is not checked.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use training_operator_testing::program::root;

use crate::docs::all_pages;

/// Names that are correct and that the repository does not have, with the reason.
const EXCEPTIONS: &str = "\
frameworks/NAME | NAME stands for a kind
vVERSION | VERSION stands for a version
reflector | of kube-runtime
tower_test::mock | of the crate tower-test
CUSTOM_CLUSTER_DOMAIN | a variable of the Go operator
FailedInvalidMXJobSpec | a reason of the stand-alone mxnet-operator
failureCondition | a field of Argo Workflows
trialResources | a field of Katib
TQDMProgressBar | a class of Lightning
integrations.externalFrameworks | a field of Kueue
--host-discovery-script | a flag of Horovod
--blacklist-cooldown-range | a flag of Horovod
--elastic-timeout | a flag of Horovod
--max-np | a flag of Horovod
--min-np | a flag of Horovod
--network-interfaces | a flag of Horovod
--ssh-port | a flag of Horovod
--custom-resource-state-config-file | a flag of kube-state-metrics
--endpoint-reconciler-type=none | a flag of kube-apiserver
--settings | a flag of the simulator, named without its command
op0 | the first operator in a history of the simulation
";

/// A page whose identifiers are those of the commit that it states.
const PAGE_OF_A_COMMIT: &str = "docs/maintainers/mutants.md";

/// Programs whose commands are not checked.
const OTHER_PROGRAMS: [&str; 7] = [
    "kubectl", "docker", "rustup", "git", "hostname", "torchrun", "python",
];

/// The name of the plugin in the documentation.
const PLUGIN: [&str; 2] = ["kubectl", "training"];

/// Endings of files with names of this project. Documentation does not count.
const SOURCES: [&str; 13] = [
    "rs", "go", "py", "yaml", "yml", "toml", "sh", "json", "snap", "txt", "dict", "lua", "",
];

/// Endings by which a word without a slash is a file.
const FILE_ENDINGS: [&str; 11] = [
    "rs", "md", "yaml", "toml", "sh", "json", "txt", "patch", "snap", "py", "svg",
];

/// The names that exist in the repository.
struct Project {
    /// All files with their text, which is empty for files that are no sources.
    files: BTreeMap<String, String>,
    folders: BTreeSet<String>,
    words: HashSet<String>,
    make_targets: HashSet<String>,
    /// The folder and the manifest of each Cargo package.
    packages: BTreeMap<String, (String, String)>,
    /// The flags of each command of the program.
    commands: BTreeMap<Vec<String>, HashSet<String>>,
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty())
}

fn ending(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap();
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// Returns the flag at the beginning of a word, without its value.
fn flag(word: &str) -> Option<&str> {
    let name = word.strip_prefix("--")?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    let name = &name[..end.unwrap_or(name.len())];
    (!name.is_empty()).then(|| &word[..name.len() + 2])
}

fn help(command: &[String]) -> String {
    let program = env!("CARGO_BIN_EXE_training-operator");
    let mut run = Command::new(program);
    // The program is a plugin of kubectl under this name.
    let arguments = match command.strip_prefix(&PLUGIN.map(str::to_owned)) {
        Some(verb) => run.arg0("kubectl-training").args(verb),
        None => run.args(command),
    };
    let output = arguments.arg("--help").output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Reads the commands below this one from their help texts.
fn add_commands(command: &[String], commands: &mut BTreeMap<Vec<String>, HashSet<String>>) {
    let help = help(command);
    let flags = help.split([' ', '\n', ',', '[', '`']).filter_map(flag);
    commands.insert(command.to_vec(), flags.map(str::to_owned).collect());
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in listed.take_while(|line| line.is_empty() || line.starts_with(' ')) {
        let name = line.split_whitespace().next().unwrap_or("help");
        let is_name = line.starts_with("  ") && !line.starts_with("   ");
        if is_name && name != "help" {
            let below: Vec<String> = command.iter().cloned().chain([name.to_owned()]).collect();
            add_commands(&below, commands);
        }
    }
}

impl Project {
    fn read() -> Self {
        let mut project = Self {
            files: BTreeMap::new(),
            folders: BTreeSet::new(),
            words: HashSet::new(),
            make_targets: HashSet::new(),
            packages: BTreeMap::new(),
            commands: BTreeMap::new(),
        };
        project.walk("");
        for (path, text) in &project.files {
            project.words.extend(words(text).map(str::to_owned));
            if path.ends_with("Cargo.toml") {
                let folder = path.trim_end_matches("Cargo.toml").trim_end_matches('/');
                let name = text.lines().find_map(|line| line.strip_prefix("name = \""));
                if let Some(name) = name {
                    let package = name.trim_end_matches('"').to_owned();
                    let value = (folder.to_owned(), text.clone());
                    project.packages.insert(package, value);
                }
            }
        }
        let rules = project.files["Makefile"].lines();
        for (targets, _) in rules.filter_map(|line| line.split_once(':')) {
            if !targets.starts_with(['\t', '#', '.']) {
                let targets = targets.split_whitespace().map(str::to_owned);
                project.make_targets.extend(targets);
            }
        }
        add_commands(&[], &mut project.commands);
        add_commands(&PLUGIN.map(str::to_owned), &mut project.commands);
        project
    }

    fn walk(&mut self, folder: &str) {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_built = name == "target" || name == ".git" || name.starts_with(".venv");
            if is_built || path.is_symlink() {
                continue;
            }
            let relative = format!("{folder}{name}");
            if path.is_dir() {
                self.walk(&format!("{relative}/"));
                self.folders.insert(relative);
            } else {
                // This file names what does not exist.
                let is_source = SOURCES.contains(&ending(&name))
                    && !folder.starts_with("docs/")
                    && !folder.starts_with("fuzz/corpus/")
                    && name != "docs_names.rs";
                let text = if is_source {
                    fs::read(&path).unwrap()
                } else {
                    Vec::new()
                };
                let text = String::from_utf8_lossy(&text).into_owned();
                self.files.insert(relative, text);
            }
        }
    }

    fn contains(&self, text: &str) -> bool {
        self.files.values().any(|file| file.contains(text))
    }

    /// Returns the problem of a code span or of a line of a code block.
    fn problem(&self, page: &str, span: &str) -> Option<String> {
        let all: Vec<&str> = span.split_whitespace().collect();
        let is_setting = |word: &&str| {
            let name = word.split_once('=').map_or("", |(name, _)| name);
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        };
        let settings = all.iter().take_while(|word| is_setting(word)).count();
        let (first, rest) = all.get(settings..)?.split_first()?;
        let is_command = |name: &str| self.commands.contains_key(&[name.to_owned()][..]);
        match *first {
            "make" => self.make(rest),
            "cargo" => self.cargo(rest),
            "training-operator" | "target/debug/training-operator" => self.program(rest),
            "kubectl" if rest.first() == Some(&PLUGIN[1]) => self.plugin(&all),
            "sim" | "target/sim/sim" => self.simulator(rest),
            name if !rest.is_empty() && is_command(name) => self.program(&all),
            name if !rest.is_empty() && OTHER_PROGRAMS.contains(&name) => None,
            name if name.starts_with("--") => {
                let mut flags = all.iter().filter_map(|word| flag(word));
                let is_missing = |flag: &&str| !self.commands.values().any(|flags| flags.contains(*flag));
                flags
                    .find(is_missing)
                    .map(|flag| format!("no command has {flag}"))
            }
            name if name.starts_with("training_operator_") || name.starts_with("training_job_") => {
                self.metric(name)
            }
            _ if span.contains("training.kubeflow.org/") => self.annotation(span),
            name if rest.is_empty() && is_path(name) => self.path(page, name),
            _ if page == PAGE_OF_A_COMMIT => None,
            _ => self.identifier(span),
        }
    }

    fn make(&self, words: &[&str]) -> Option<String> {
        for word in words {
            if let Some((variable, _)) = word.split_once('=') {
                let name = format!("$({variable}");
                // The tests read some variables themselves.
                let is_known = self.files["Makefile"].contains(&name) || self.words.contains(variable);
                if !is_known {
                    return Some(format!("the Makefile has no variable {variable}"));
                }
            } else if !word.starts_with(|c: char| c.is_ascii_lowercase()) {
                break;
            } else if !self.make_targets.contains(*word) {
                return Some(format!("the Makefile has no target {word}"));
            }
        }
        None
    }

    fn cargo(&self, words: &[&str]) -> Option<String> {
        let stands_for_a_name = |word: &str| word.chars().any(|c| c.is_ascii_uppercase());
        let mut package = None;
        let ours = words.iter().take_while(|word| **word != "--");
        let pairs = ours.clone().zip(ours.skip(1));
        for (option, value) in pairs.filter(|(_, value)| !stands_for_a_name(value)) {
            let folder = match *option {
                "-p" | "--package" => {
                    package = self.packages.get(*value);
                    match package {
                        Some(_) => continue,
                        None => return Some(format!("there is no package {value}")),
                    }
                }
                "--test" => "tests",
                "--bench" => "benches",
                "--bin" => "src/bin",
                _ => continue,
            };
            let (home, manifest) = package?;
            let file = format!("{home}/{folder}/{value}")
                .trim_start_matches('/')
                .to_owned();
            let files = [format!("{file}.rs"), format!("{file}/main.rs")];
            let is_declared = manifest.contains(&format!("name = \"{value}\""));
            if !is_declared && !files.iter().any(|file| self.files.contains_key(file)) {
                return Some(format!("the package has no {value} in {folder}"));
            }
        }
        None
    }

    fn program(&self, words: &[&str]) -> Option<String> {
        let mut command = Vec::new();
        for word in words {
            command.push((*word).to_owned());
            if !self.commands.contains_key(&command) {
                command.pop();
                break;
            }
        }
        let first = words.first()?;
        if command.is_empty() && !first.starts_with('-') {
            return Some(format!("the program has no command {first}"));
        }
        let flags = words
            .iter()
            .take_while(|word| **word != "|")
            .filter_map(|word| flag(word));
        let known = &self.commands[&command];
        let unknown = flags.into_iter().find(|flag| !known.contains(*flag));
        unknown.map(|flag| format!("{} has no {flag}", command.join(" ")))
    }

    fn plugin(&self, words: &[&str]) -> Option<String> {
        let stands_for_a_name = |word: &&str| word.chars().any(|c| c.is_ascii_uppercase());
        let verb = words.get(2).filter(|verb| !stands_for_a_name(verb))?;
        let command: Vec<String> = words.iter().take(3).map(|word| (*word).to_owned()).collect();
        let Some(known) = self.commands.get(&command) else {
            return Some(format!("kubectl training has no verb {verb}"));
        };
        let mut flags = words.iter().filter_map(|word| flag(word));
        let unknown = flags.find(|flag| !known.contains(*flag));
        unknown.map(|flag| format!("kubectl training {verb} has no {flag}"))
    }

    /// The simulator is not built for this test, so the fields of its commands are looked up.
    fn simulator(&self, words: &[&str]) -> Option<String> {
        let mut flags = words.iter().filter_map(|word| flag(word));
        let field = |flag: &str| flag.trim_start_matches('-').replace('-', "_");
        let unknown = flags.find(|flag| !self.words.contains(&field(flag)));
        unknown.map(|flag| format!("the simulator has no {flag}"))
    }

    fn metric(&self, span: &str) -> Option<String> {
        // The client adds `_total`, and kube-state-metrics a prefix.
        let name = words(span).next()?.trim_end_matches("_total");
        let short = name.trim_start_matches("training_job_");
        let exists = self.contains(name) || (short != name && self.words.contains(short));
        (!exists).then(|| format!("there is no metric {name}"))
    }

    fn annotation(&self, span: &str) -> Option<String> {
        let mut names = span.split("training.kubeflow.org/").skip(1).map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            &rest[..end.unwrap_or(rest.len())]
        });
        // Annotations that stand for a field have its name in kebab case.
        let field = |name: &str| {
            let mut parts = name.split('-');
            let first = parts.next().unwrap_or_default().to_owned();
            let later = parts.map(|part| part[..1].to_uppercase() + &part[1..]);
            first + &later.collect::<String>()
        };
        let exists = |name: &str| {
            let whole = format!("training.kubeflow.org/{name}");
            self.contains(&whole) || self.contains(&format!("\"{}\"", field(name)))
        };
        let missing = names.find(|name| !name.is_empty() && !exists(name));
        missing.map(|name| format!("there is no annotation or label {name}"))
    }

    /// Checks a path from the repository or from the page, the end of a path, and `FILE::TEST`.
    fn path(&self, page: &str, span: &str) -> Option<String> {
        if span.starts_with("target/") || span.starts_with('/') {
            return None;
        }
        let (path, test) = span.split_once("::").unwrap_or((span, ""));
        let path = path.trim_end_matches('/');
        if let Some((begin, end)) = path.split_once('*') {
            let exists = self
                .files
                .keys()
                .any(|file| file.contains(begin) && file.contains(end));
            return (!exists).then(|| format!("no file matches {path}"));
        }
        let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut beside = folder.to_owned();
        let mut below = path;
        while let Some(rest) = below.strip_prefix("../") {
            beside = beside.rsplit_once('/').map_or("", |(above, _)| above).to_owned();
            below = rest;
        }
        let beside = format!("{beside}/{below}").trim_start_matches('/').to_owned();
        let end = format!("/{path}");
        let is_it = |file: &&String| **file == path || **file == beside || file.ends_with(&end);
        let found: Vec<&String> = self.files.keys().chain(&self.folders).filter(is_it).collect();
        if found.is_empty() {
            let first = path.split('/').next()?;
            let looks_like_a_file = !span.ends_with('/') && FILE_ENDINGS.contains(&ending(path));
            let is_ours = self.folders.contains(first) || looks_like_a_file;
            return is_ours.then(|| "no such file".to_owned());
        }
        let has_test = |file: &&String| {
            let text = self.files.get(*file);
            text.is_some_and(|text| text.contains(&format!("fn {test}(")))
        };
        let is_missing = !test.is_empty() && !found.iter().any(has_test);
        is_missing.then(|| format!("the file has no function {test}"))
    }

    /// Checks `Name`, `Type::name`, `object.name`, also with arguments or with a value.
    fn identifier(&self, span: &str) -> Option<String> {
        let head = span.trim_start_matches(['.', '&']);
        let end = head.find(|c: char| !c.is_ascii_alphanumeric() && !['_', ':', '.'].contains(&c));
        let (name, arguments) = head.split_at(end.unwrap_or(head.len()));
        let name = match arguments.chars().next() {
            Some('(' | '=') | None => name,
            // `field: value`
            Some(' ') if name.ends_with(':') => name,
            Some(_) => return None,
        };
        let is_name = |c: char| c.is_ascii_alphabetic() || c == '_';
        let parts: Vec<&str> = name.split(['.', ':']).filter(|part| !part.is_empty()).collect();
        if !parts.iter().all(|part| part.starts_with(is_name)) {
            return None;
        }
        let mut unknown = parts
            .iter()
            .filter(|part| part.len() > 2 && !self.words.contains(**part));
        if let Some(part) = unknown.next() {
            return Some(format!("no source has {part}"));
        }
        let [.., owner, member] = &parts[..] else {
            return None;
        };
        // A member is declared or used in a file that names its type.
        let together = |text: &String| text.contains(*owner) && text.contains(*member);
        let is_apart = name.contains("::") && !self.files.values().any(together);
        is_apart.then(|| format!("no source has {owner} and {member}"))
    }

    fn problems(&self, page: &str, text: &str) -> Vec<(String, String)> {
        let (commands, spans) = code(text);
        let is_checked = |line: &&String| {
            let first = line.split_whitespace().next().unwrap_or_default();
            let checked = ["make", "cargo", "training-operator"];
            checked.contains(&first) || first.starts_with("target/")
        };
        let all = commands.iter().filter(is_checked).chain(&spans);
        all.filter_map(|span| Some((span.clone(), self.problem(page, span)?)))
            .collect()
    }
}

fn is_path(word: &str) -> bool {
    let path = word.split_once("::").map_or(word, |(path, _)| path);
    let is_path = |c: char| c.is_ascii_alphanumeric() || "._-*/@".contains(c);
    path.chars().all(is_path) && (path.contains('/') || FILE_ENDINGS.contains(&ending(path)))
}

/// Returns the lines of code blocks, and the code spans of the other text.
fn code(text: &str) -> (Vec<String>, Vec<String>) {
    let mut commands = Vec::new();
    let mut paragraphs = vec![String::new()];
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced || line.starts_with("    ") && !line.contains('`') {
            let command = [" #", " || ", " && ", " > "].iter().fold(line, |line, end| {
                line.split_once(end).map_or(line, |(command, _)| command)
            });
            commands.push(command.trim().to_owned());
        } else if line.is_empty() {
            paragraphs.push(String::new());
        } else if let Some(paragraph) = paragraphs.last_mut() {
            paragraph.push_str(line);
            paragraph.push('\n');
        }
    }
    let spans = paragraphs.iter().flat_map(|paragraph| {
        let spans = paragraph.split('`').skip(1).step_by(2);
        spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    (commands, spans.collect())
}

#[test]
fn every_name_in_the_documentation_exists() {
    let project = Project::read();
    let exceptions = EXCEPTIONS.lines().map(|row| row.split_once(" | ").unwrap().0);
    let exceptions: Vec<&str> = exceptions.collect();
    let mut excepted = HashSet::new();
    let mut problems = Vec::new();
    for file in all_pages() {
        let text = fs::read_to_string(&file).unwrap();
        let page = file.strip_prefix(root()).unwrap().display().to_string();
        for (span, problem) in project.problems(&page, &text) {
            match exceptions.iter().find(|name| **name == span) {
                Some(name) => _ = excepted.insert(*name),
                None => problems.push(format!("{page}: `{span}`: {problem}")),
            }
        }
    }
    assert!(
        problems.is_empty(),
        "correct these names, or add them to EXCEPTIONS:\n{}",
        problems.join("\n")
    );
    let surplus = exceptions.iter().find(|name| !excepted.contains(**name));
    assert!(surplus.is_none(), "remove the exception {surplus:?}");
}

#[test]
fn a_page_with_wrong_names_has_a_problem_for_each() {
    let page = "
Run `make nothing`, `make sim SEADS=3`, `cargo test -p training-jop`, `cargo test -p training-job --test nowhere`,
`training-operator explode`, `training-operator render --replicas x`, `diff --clutser job.yaml`, `--no-such-flag`,
`sim seed --wholly`. The file `src/plan/nowhere.rs`, `nowhere.rs`, `frameworks/no*where.rs` or `src/nowhere`; the test
`operator/tests/docs_names.rs::is_not_there`. The metric `training_operator_nowhere_total`, the annotation
`training.kubeflow.org/no-where`, the reason `NoSuchReasonHere`, and `no_such_function()`,
`NoSuchType::new` or `spec.noSuchField: 1`.

    make nowhere    # in a block
";
    let right = "
`make sim SEED=3`, `cargo test -p training-job --test plan`, `training-operator render --replica x`, `--help`,
`src/plan/mod.rs`, `training_operator_leader`, `training.kubeflow.org/operator-name`, `PodsStuckTerminating`,
`kubectl get pods --all-namespaces`, `runPolicy.layout: Compact`, `a phrase of no form`.
";
    let project = Project::read();
    let none = project.problems("README.md", right);
    assert!(none.is_empty(), "{none:?}");
    let problems = project.problems("README.md", page);
    let found: Vec<&str> = problems.iter().map(|(span, _)| &**span).collect();
    let wrong = code(page);
    let wrong: Vec<&str> = wrong.0.iter().chain(&wrong.1).map(|span| &**span).collect();
    assert_eq!(found, wrong);
}
