//! Completion of words by kubectl's own mechanism: kubectl calls `kubectl_complete-training` with the words of the line,
//! and expects a word on each line of the output, and a directive on the last one.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Command;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use kube::config::Kubeconfig;
use training_job_controller::process::ClusterFlags;
use training_job_review::Kinds;

use crate::connection::{Connection, ConnectionArgs, connect};
use crate::observe::list;
use crate::stored::StoredJob;

/// The last line of the output: the shell must not complete files (cobra's `ShellCompDirectiveNoFileComp`).
const NO_FILES: &str = ":4\n";

/// The words of a line before the one to complete.
#[derive(Debug, Default)]
struct Line<'a> {
    verb: Option<&'a str>,
    /// The flag whose value is to be completed, such as `--namespace`.
    open_flag: Option<&'a str>,
    namespace: Option<&'a str>,
    context: Option<&'a str>,
    kubeconfig: Option<&'a str>,
    positionals: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn parse(words: &'a [String], command: &Command) -> Self {
        let mut line = Self::default();
        for word in words {
            if let Some(flag) = line.open_flag.take() {
                line.set(flag, word);
            } else if let Some((flag, value)) = word.split_once('=').filter(|_| word.starts_with('-')) {
                line.set(flag, value);
            } else if word.starts_with('-') && line.takes_value(word, command) {
                line.open_flag = Some(word);
            } else if word.starts_with('-') {
            } else if line.verb.is_none() {
                line.verb = Some(word);
            } else {
                line.positionals.push(word);
            }
        }
        line
    }

    fn set(&mut self, flag: &str, value: &'a str) {
        match flag {
            "-n" | "--namespace" => self.namespace = Some(value),
            "--context" => self.context = Some(value),
            "--kubeconfig" => self.kubeconfig = Some(value),
            _ => {}
        }
    }

    fn takes_value(&self, flag: &str, command: &Command) -> bool {
        let verb = self.verb.and_then(|verb| command.find_subcommand(verb));
        let arg = argument(verb.unwrap_or(command), flag);
        arg.is_some_and(|arg| arg.get_action().takes_values())
    }
}

fn argument<'c>(command: &'c Command, flag: &str) -> Option<&'c clap::Arg> {
    command.get_arguments().find(|arg| match flag.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| flag == format!("-{short}")),
    })
}

/// Returns the output for kubectl. Errors are no completions, because an error message would break the line of a shell.
pub(crate) fn complete(words: &[String], command: &Command, kinds: &Kinds) -> String {
    let (last, before) = words
        .split_last()
        .map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut line = Line::parse(before, command);
    // Shells put the flag before the values of a word such as `--for=su`.
    let last = match last.split_once('=').filter(|_| last.starts_with('-')) {
        Some((flag, value)) => {
            line.open_flag = Some(flag);
            value
        }
        None => last,
    };
    let all = candidates(&line, last, command, kinds);
    let fitting = all.into_iter().filter(|(word, _)| word.starts_with(last));
    let mut text: String = fitting
        .map(|(word, help)| match help.is_empty() {
            true => format!("{word}\n"),
            false => format!("{word}\t{}\n", help.replace(['\n', '\t'], " ")),
        })
        .collect();
    text += NO_FILES;
    text
}

fn candidates(line: &Line<'_>, last: &str, command: &Command, kinds: &Kinds) -> Vec<(String, String)> {
    let verb = line.verb.and_then(|verb| command.find_subcommand(verb));
    let Some(verb) = verb else {
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let about = |verb: &Command| verb.get_about().map(ToString::to_string).unwrap_or_default();
        return verbs
            .map(|verb| (verb.get_name().to_owned(), about(verb)))
            .collect();
    };
    if let Some(flag) = line.open_flag {
        return values(line, flag, verb, kinds);
    }
    if last.starts_with('-') {
        let help = |arg: &clap::Arg| arg.get_help().map(ToString::to_string).unwrap_or_default();
        let flags = verb.get_arguments().filter(|arg| !arg.is_hide_set());
        return flags
            .filter_map(|arg| Some((format!("--{}", arg.get_long()?), help(arg))))
            .collect();
    }
    let names = verb
        .get_positionals()
        .filter_map(|arg| arg.get_value_names()?.first());
    let names: Vec<&str> = names.map(|name| name.as_str()).collect();
    match names.first() {
        Some(&"KIND") => kinds
            .iter()
            .map(|kind| (kind.name().to_lowercase(), String::new()))
            .collect(),
        Some(&"JOB") if line.positionals.is_empty() => jobs(line, last, kinds),
        _ => Vec::new(),
    }
}

/// Returns the values of a flag.
fn values(line: &Line<'_>, flag: &str, verb: &Command, kinds: &Kinds) -> Vec<(String, String)> {
    let plain = |words: Vec<String>| words.into_iter().map(|word| (word, String::new())).collect();
    match flag {
        "-n" | "--namespace" => plain(namespaces(line).unwrap_or_default()),
        "--context" => {
            let file = match line.kubeconfig {
                Some(file) => Kubeconfig::read_from(file),
                None => Kubeconfig::read(),
            };
            let contexts = file.map(|file| file.contexts).unwrap_or_default();
            plain(contexts.into_iter().map(|context| context.name).collect())
        }
        "--role" | "--replica" => plain(replicas(line, flag, kinds)),
        _ => {
            let values = argument(verb, flag)
                .map(clap::Arg::get_possible_values)
                .unwrap_or_default();
            let help = |value: &clap::builder::PossibleValue| value.get_help().map(ToString::to_string);
            values
                .iter()
                .map(|value| (value.get_name().to_owned(), help(value).unwrap_or_default()))
                .collect()
        }
    }
}

fn connection(line: &Line<'_>) -> ConnectionArgs {
    ConnectionArgs {
        namespace: line.namespace.map(str::to_owned),
        flags: ClusterFlags::new(line.kubeconfig.map(Path::new), line.context),
    }
}

fn stored(line: &Line<'_>, kinds: &Kinds) -> Vec<StoredJob> {
    let read = connect(&connection(line), async |Connection { client, namespace }| {
        Ok(list(&client, Some(&namespace), None, kinds).await?.0)
    });
    read.unwrap_or_default()
}

/// Returns the names of jobs, with the kind in front if the word has one or if several kinds have the name.
fn jobs(line: &Line<'_>, last: &str, kinds: &Kinds) -> Vec<(String, String)> {
    let jobs = stored(line, kinds);
    let about = |job: &StoredJob| format!("{}, {}", job.kind.name(), job.state());
    if let Some((kind, _)) = last.split_once('/') {
        let Some(known) = kinds.of_argument(kind) else {
            return Vec::new();
        };
        let of_kind = jobs.iter().filter(|job| job.kind.resource == known.resource);
        return of_kind
            .map(|job| (format!("{kind}/{}", job.name()), about(job)))
            .collect();
    }
    let count = |name: &str| jobs.iter().filter(|job| job.name() == name).count();
    jobs.iter()
        .map(|job| match count(job.name()) {
            1 => (job.name().to_owned(), about(job)),
            _ => (job.argument(), about(job)),
        })
        .collect()
}

/// Returns the roles or replicas of the job that the line names.
fn replicas(line: &Line<'_>, flag: &str, kinds: &Kinds) -> Vec<String> {
    let Some(name) = line.positionals.first() else {
        return Vec::new();
    };
    let name = name.rsplit('/').next().unwrap_or_default();
    let is_scaled = line.verb == Some("scale");
    let mut words = BTreeSet::new();
    for job in stored(line, kinds).iter().filter(|job| job.name() == name) {
        for role in job.outline.iter().flat_map(|outline| &outline.roles) {
            match flag {
                "--replica" => words.extend((0..role.replicas).map(|index| format!("{}-{index}", role.slug))),
                _ if is_scaled => drop(words.insert(format!("{}={}", role.slug, role.replicas))),
                _ => drop(words.insert(role.slug.clone())),
            }
        }
    }
    words.into_iter().collect()
}

fn namespaces(line: &Line<'_>) -> Option<Vec<String>> {
    let read = connect(&connection(line), async |Connection { client, .. }| {
        let list = Api::<Namespace>::all(client).list(&ListParams::default()).await?;
        Ok(list
            .items
            .into_iter()
            .filter_map(|namespace| namespace.metadata.name)
            .collect())
    });
    read.ok()
}
