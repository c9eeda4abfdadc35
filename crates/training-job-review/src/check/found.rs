//! Files of a directory, which may belong to other programs (pure).

use kube_manifest::{Content, Node, SyntaxError, parse_until_error};

use crate::kinds::Kinds;

/// The beginning and the end of an action in a template.
const ACTIONS: [[&str; 2]; 3] = [["{{", "}}"], ["{%", "%}"], ["<%", "%>"]];

/// True if a text has the beginning of an action of a template and its end.
pub(super) fn has_actions(text: &str) -> bool {
    ACTIONS
        .iter()
        .any(|[begin, end]| text.contains(begin) && text.contains(end))
}

/// True if a text has a word without which it neither is nor contains a job.
pub(super) fn may_have_job(kinds: &Kinds, text: &str) -> bool {
    kinds.iter().any(|kind| {
        let words = [kind.name(), &kind.resource.group, kind.framework.roles_field];
        words.iter().any(|word| text.contains(word))
    })
}

/// True if a text that is not valid YAML names one of the kinds as its kind, or has the field of their roles.
pub(super) fn names_job(kinds: &Kinds, text: &str) -> bool {
    let is_within_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let stands = |word: &str, is_in_place: fn(&str, &str) -> bool| {
        text.match_indices(word).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            let line = before.rsplit('\n').next().unwrap_or_default();
            let is_whole = !line.ends_with(is_within_word) && !after.starts_with(is_within_word);
            is_whole && !line.trim_start().starts_with('#') && is_in_place(line, after)
        })
    };
    kinds.iter().any(|kind| {
        stands(kind.name(), |line, _| {
            let key = line.trim_end_matches([' ', '"', '\'']).strip_suffix(':');
            key.is_some_and(|key| key.trim_end_matches([' ', '"', '\'']).ends_with("kind"))
        }) || is_name_of_roles(kind.framework.roles_field)
            && stands(kind.framework.roles_field, |_, after| {
                after.trim_start_matches([' ', '"', '\'']).starts_with(':')
            })
    })
}

/// True for `pytorchReplicaSpecs` and the like. The `replicaSpecs` of older kinds may be a field of anything.
fn is_name_of_roles(field: &str) -> bool {
    field.ends_with("ReplicaSpecs")
}

/// True if a document of a directory is an object, or lacks only a part of what makes it a job: it names one of the kinds
/// or has their roles.
pub(super) fn is_object(kinds: &Kinds, node: &Node) -> bool {
    let is_set = |field: &str| node.text(field).is_some_and(|text| !text.is_empty());
    let has_roles = |node: &Node| match &node.content {
        Content::Map(entries) => entries.iter().any(|entry| {
            is_name_of_roles(&entry.key) && kinds.iter().any(|kind| kind.framework.roles_field == entry.key)
        }),
        _ => false,
    };
    is_set("apiVersion") && is_set("kind")
        || node
            .text("kind")
            .is_some_and(|name| kinds.iter().any(|kind| kind.name() == name))
        || has_roles(node)
        || node.get("spec").is_some_and(has_roles)
}

/// True if a syntax error is one of a template: without the template's actions the text does not have it.
pub(super) fn is_of_template(text: &str, error: &SyntaxError) -> bool {
    has_actions(text) && {
        let (_, other) = parse_until_error(&without_actions(text));
        other.is_none_or(|other| (other.at.line, &other.problem) != (error.at.line, &error.problem))
    }
}

/// Replaces the actions of a template by words, or by comments if they have their own lines. The lines stay the same.
fn without_actions(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let next = ACTIONS
            .iter()
            .filter_map(|[begin, end]| Some((rest.find(begin)?, end)));
        let Some((at, end)) = next.min() else { break };
        let (before, action) = rest.split_at(at);
        let length = action.find(end).map_or(action.len(), |n| n + end.len());
        let (action, after) = action.split_at(length);
        plain.push_str(before);
        let is_alone = plain
            .rsplit('\n')
            .next()
            .is_some_and(|line| line.trim().is_empty())
            && after
                .split('\n')
                .next()
                .is_some_and(|line| line.trim().is_empty());
        plain.push(if is_alone { '#' } else { 'x' });
        plain.extend(action.chars().filter(|c| *c == '\n'));
        rest = after;
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_template(text: &str) -> bool {
        let error = kube_manifest::parse(text).unwrap_err();
        is_of_template(text, &error)
    }

    #[test]
    fn a_file_is_a_template_if_its_actions_break_the_yaml() {
        for template in [
            "a: {{ .Values.a }}\n",
            "{{- if .Values.a }}\na: 1\n{{- end }}\n",
            "a:\n  {{- toYaml .Values.a | nindent 2 }}\nb: 1\n",
            "{{/* two\nlines */}}\na: 1\n",
            "{% for n in list %}\n- {{ n }}\n{% endfor %}\n",
            "<% if a %>\nb: 1\n<% end %>\n",
        ] {
            assert!(is_template(template), "{template}");
        }
        for broken in [
            "# {{ a }}\nb: 'c\n",
            "a: \"{{ b }}\"\nc: [\n",
            "a: |\n  {{ b }}\nc: d: e\n",
            "a: b\n  c: d # {{ e }}\n",
            "a: 1\na: 2 # {{ }}\n",
            "a: {{\nb: [\n",
            "a: b{{ c }}: d\n",
        ] {
            assert!(!is_template(broken), "{broken}");
        }
    }
}
