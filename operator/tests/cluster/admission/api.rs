//! Sends manifests to the API server through kubectl.

use serde_json::Value;
use training_job_testbed::cluster::ControlPlane;

/// Creates a manifest. Returns the errors in the form of `validate`, one sorted line for each mistake, or none if it
/// was stored.
pub(crate) async fn create(
    cluster: &ControlPlane,
    namespace: &str,
    text: &str,
    flags: &[&str],
) -> Vec<String> {
    let mut arguments = vec!["create", "--namespace", namespace, "-f", "-"];
    arguments.extend(flags);
    let output = cluster.kubectl_with_input(&arguments, text).await;
    if output.code == 0 {
        return Vec::new();
    }
    lines(&output.stderr)
}

/// Returns the lines of an error message.
pub(crate) fn lines(message: &str) -> Vec<String> {
    let mut lines: Vec<_> = message
        .lines()
        .flat_map(|line| match line.split_once(" is invalid: ") {
            Some((_, causes)) => vec![causes.trim()],
            None => match line.split_once("strict decoding error: ") {
                Some((_, fields)) => fields.split(", ").collect(),
                None => vec![line.trim_start_matches("* ").trim()],
            },
        })
        .filter(|line| !line.is_empty() && !line.contains("some validation rules were not checked"))
        .filter(|line| !(line.starts_with("Warning: ") && line.contains(" is deprecated; use ")))
        .map(line)
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Converts `spec.roles[Worker].replicas: Invalid value: -1: words` to `spec.roles.Worker.replicas: words`.
fn line(text: &str) -> String {
    let Some((path, said)) = text.split_once(": Invalid value: ") else {
        return text.to_owned();
    };
    // For a scalar the value precedes the message.
    let mut values = serde_json::Deserializer::from_str(said).into_iter::<Value>();
    let words = match values.next() {
        Some(Ok(_)) => said[values.byte_offset()..].strip_prefix(": ").unwrap_or(said),
        _ => said,
    };
    format!("{}: {words}", plain(path))
}

/// Returns a path with its keys behind dots. Indices of lists stay in brackets.
fn plain(path: &str) -> String {
    let mut plain = String::new();
    for part in path.replace(".[", "[").split_inclusive(['[', ']']) {
        match part.strip_suffix(']') {
            Some(key) if key.chars().all(|c| c.is_ascii_digit()) => plain += &format!("[{key}]"),
            Some(key) => plain += &format!(".{key}"),
            None => plain += part.trim_end_matches('['),
        }
    }
    plain
}

#[test]
fn refusals_read_as_those_of_validate() {
    let message = "The MXJob \"job\" is invalid: \n\
        * spec.r[Worker].template.spec.containers[0].name: Invalid value: \"A\": \"A\" is bad\n\
        * spec.r.[Scheduler].replicas: Invalid value: 2 is too big\n\
        * <nil>: Invalid value: null: some validation rules were not checked because of that";
    assert_eq!(
        lines(message),
        [
            "spec.r.Scheduler.replicas: 2 is too big",
            "spec.r.Worker.template.spec.containers[0].name: \"A\" is bad",
        ]
    );
}
