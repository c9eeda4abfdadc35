//! Remedies that follow from the value of a field: variables and placeholders that are not filled in, and characters that
//! look like others (pure).

use kube_manifest::{Content, Node, look_alike};
use kube_schema::{field, item};
use serde_json::Value;
use training_job::{FieldError, FieldErrors};

use super::found::has_actions;
use crate::help::help;

/// Returns the remedy for a template.
pub(super) fn render_template() -> String {
    help("render it first, for example: helm template . | {program} validate -")
}

/// Returns the error with the cause that its value or its field shows, and that cause's remedy.
pub(super) fn with_cause(mut error: FieldError) -> FieldError {
    let value = quoted(&error.problem).unwrap_or_default();
    let key = last_key(&error.path);
    if let Some(found) = look_alike(key).or_else(|| look_alike(value)) {
        error.problem = format!("{}: {}", error.problem, found.problem());
        error.remedy = found.remedy();
    } else if let Some(remedy) = placeholder(value).or_else(|| placeholder(key)) {
        error.remedy = remedy;
    }
    error
}

/// True if the error is that of a value or a key which a template fills in.
pub(super) fn is_of_action(error: &FieldError) -> bool {
    has_actions(&error.problem) || has_actions(&error.path)
}

/// True if the error is that of a value or a key which is filled in later.
pub(super) fn is_of_placeholder(error: &FieldError) -> bool {
    let value = quoted(&error.problem).unwrap_or_default();
    placeholder(value)
        .or_else(|| placeholder(last_key(&error.path)))
        .is_some()
}

/// Returns the text in quotes that a problem contains.
fn quoted(problem: &str) -> Option<&str> {
    let (_, rest) = problem.split_once('"')?;
    rest.rsplit_once('"').map(|(text, _)| text)
}

fn last_key(path: &str) -> &str {
    match path.strip_suffix(']').and_then(|path| path.rsplit_once('[')) {
        Some((_, key)) => key,
        None => path.rsplit('.').next().unwrap_or_default(),
    }
}

/// Returns the remedy for a value that was never filled in, or `None` if it looks like a value.
fn placeholder(value: &str) -> Option<String> {
    let between = |begin: &str, end: &str| {
        let at = value.find(begin)?;
        let inside = &value[at + begin.len()..];
        let length = inside.find(end).filter(|length| *length > 0)?;
        Some(&value[at..at + begin.len() + length + end.len()])
    };
    if has_actions(value) {
        return Some(render_template());
    }
    let is_name = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '{' | '(');
    if value.split('$').skip(1).any(|after| after.starts_with(is_name)) {
        return Some("replace the variable first, for example with envsubst".to_owned());
    }
    const PAIRS: [[&str; 2]; 8] = [
        ["<", ">"],
        ["[[", "]]"],
        ["((", "))"],
        ["#{", "}"],
        ["%{", "}"],
        ["__", "__"],
        ["@", "@"],
        ["%", "%"],
    ];
    let pair = PAIRS.iter().find_map(|[begin, end]| between(begin, end));
    let is_verb = ["%s", "%d", "%v", "%q"].contains(&value);
    match pair.or(is_verb.then_some(value)) {
        Some(text) => Some(format!("replace the placeholder {text}")),
        None => is_word(value).then(|| format!("replace the placeholder {value}")),
    }
}

/// True for words such as `REPLACE_ME` and `your-image`.
fn is_word(value: &str) -> bool {
    const WORDS: [&str; 9] = [
        "placeholder",
        "replace-me",
        "replaceme",
        "change-me",
        "changeme",
        "fill-me",
        "fixme",
        "todo",
        "xxx",
    ];
    let value = value.to_ascii_lowercase().replace('_', "-");
    let mut parts = value.split(['/', ':', '@']);
    WORDS.iter().any(|word| value == *word)
        || ["placeholder", "replace-me", "changeme", "change-me"]
            .iter()
            .any(|word| value.contains(word))
        || parts.any(|part| part.starts_with("your-"))
}

/// Returns the path, the problem and the remedy of each text that is valid but cannot be meant: images that no registry
/// has, and words with pasted characters.
pub(super) fn warnings(job: &Node) -> FieldErrors {
    let mut found = FieldErrors::default();
    texts(job, "", &mut found);
    found
}

fn texts(node: &Node, path: &str, found: &mut FieldErrors) {
    match &node.content {
        Content::Map(entries) => {
            let is_container = node.get("name").is_some();
            for entry in entries {
                // Annotations are prose.
                let is_prose = path == "metadata" && entry.key == "annotations";
                let path = field(path, &entry.key);
                match &entry.value.content {
                    Content::Scalar(Value::String(text)) => {
                        check_text(path, text, is_container && entry.key == "image", found);
                    }
                    _ if is_prose => {}
                    _ => texts(&entry.value, &path, found),
                }
            }
        }
        Content::List(items) => {
            for (n, node) in items.iter().enumerate() {
                match &node.content {
                    Content::Scalar(Value::String(text)) => {
                        check_text(item(path, n), text, false, found);
                    }
                    Content::Scalar(_) => {}
                    _ => texts(node, &item(path, n), found),
                }
            }
        }
        Content::Scalar(_) => {}
    }
}

fn check_text(path: String, text: &str, is_image: bool, found: &mut FieldErrors) {
    let pasted = look_alike(text).filter(|pasted| {
        let is_leading = pasted.at == 0 && matches!(pasted.plain, "\"" | "'" | "-");
        is_image || is_leading || matches!(pasted.character, '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
    });
    if let Some(pasted) = pasted {
        found.push(path, pasted.problem(), pasted.remedy());
    } else if is_escaped_path(text) {
        let problem = "YAML reads the backslash of a path in double quotes as the beginning of an escape";
        found.push(path, problem, "use single quotes");
    } else if is_image && !text.is_empty() && (!is_image_name(text) || is_word(text)) {
        let remedy = placeholder(text);
        let remedy =
            remedy.unwrap_or_else(|| "use a name such as registry.example.com/team/train:1.0".to_owned());
        found.push(path, format!("is not the name of an image (is {text:?})"), remedy);
    }
}

/// True for a text such as `C:\temp` in double quotes, in which YAML reads `\t` as a tab.
fn is_escaped_path(text: &str) -> bool {
    let mut chars = text.chars();
    let [drive, colon, escaped] = [chars.next(), chars.next(), chars.next()];
    drive.is_some_and(|drive| drive.is_ascii_uppercase())
        && colon == Some(':')
        && escaped.is_some_and(|escaped| escaped.is_control() && escaped != '\n')
}

/// True if a runtime of containers can read the name: an optional registry, lower-case parts, a tag or a digest.
fn is_image_name(name: &str) -> bool {
    let (name, digest) = name.split_once('@').unwrap_or((name, "sha256:0"));
    let (registry, path) = match name.split_once('/') {
        Some((first, path)) if first.contains(['.', ':']) || first == "localhost" => (first, path),
        _ => ("", name),
    };
    let (path, tag) = path.rsplit_once(':').unwrap_or((path, "latest"));
    let all = |text: &str, more: &[char], is_one: fn(&char) -> bool| {
        text.chars().all(|c| is_one(&c) || more.contains(&c))
    };
    let is_lower = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        let ends = [part.chars().next(), part.chars().next_back()];
        ends.iter().all(|end| end.as_ref().is_some_and(is_lower)) && all(part, &['.', '_', '-'], is_lower)
    };
    path.split('/').all(is_part)
        && all(registry, &['.', '-', ':', '[', ']'], char::is_ascii_alphanumeric)
        && !tag.is_empty()
        && all(tag, &['.', '_', '-'], char::is_ascii_alphanumeric)
        && all(digest, &[':', '+', '.', '_', '-'], char::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_were_never_filled_in_have_their_remedy() {
        let variable = "replace the variable first, for example with envsubst";
        for (value, remedy) in [
            ("$NUM_NODES", variable),
            ("${NUM_NODES}", variable),
            ("a-$name", variable),
            ("$(params.n)", variable),
            ("<job-name>", "replace the placeholder <job-name>"),
            ("a/<image>:1", "replace the placeholder <image>"),
            ("__NAME__", "replace the placeholder __NAME__"),
            ("%v", "replace the placeholder %v"),
            ("%NAME%", "replace the placeholder %NAME%"),
            ("@NAME@", "replace the placeholder @NAME@"),
            ("[[name]]", "replace the placeholder [[name]]"),
            ("((name))", "replace the placeholder ((name))"),
            ("#{Name}#", "replace the placeholder #{Name}"),
            ("REPLACE_ME", "replace the placeholder REPLACE_ME"),
            (
                "JOB_NAME_PLACEHOLDER",
                "replace the placeholder JOB_NAME_PLACEHOLDER",
            ),
            (
                "your-registry/train:1",
                "replace the placeholder your-registry/train:1",
            ),
            ("<%= n %>", &render_template()),
            ("{{ n }}", &render_template()),
            ("{% n %}", &render_template()),
            ("costs 5$", ""),
            ("a$", ""),
            ("My_Job", ""),
            ("a__b", ""),
            ("x@sha256:1", ""),
            ("<", ""),
            ("-1", ""),
        ] {
            assert_eq!(placeholder(value).unwrap_or_default(), remedy, "{value}");
        }
    }

    #[test]
    fn names_of_images_are_those_that_runtimes_read() {
        for name in [
            "x",
            "x:1",
            "docker.io/kubeflow/pytorch-dist-mnist:v1.8.1",
            "localhost:5000/a/b_c.d-e:Tag_1.0-x",
            "Registry.Example.com/a",
            "a/b@sha256:0123456789abcdef0123456789abcdef",
            "a__b/c",
            "[::1]:5000/a",
        ] {
            assert!(is_image_name(name), "{name}");
        }
        for name in [
            "<your-image>",
            "Train:1",
            "a b",
            "x:",
            "a//b",
            "\"x:1\"",
            "IMAGE",
            "https://a.b/c",
            "a/b:c:d",
            "-a",
        ] {
            assert!(!is_image_name(name), "{name}");
        }
    }
}
