use super::*;
use serde_json::json;

fn read(text: &str) -> Vec<Value> {
    parse(text).unwrap().iter().map(Node::to_json).collect()
}

#[test]
fn documents_anchors_and_merges_are_read() {
    let text = "\u{feff}# head\n---\na: &a {x: 1, z: [2, 0644]}\nb: {<<: *a, x: 3}\n---\n---\n{\n\t\"on\": on,\n\t5: '5'\n}\n...\n";
    let a = json!({"x": 1, "z": [2, 420]});
    assert_eq!(
        read(text),
        [
            json!({"a": a, "b": {"x": 3, "z": [2, 420]}}),
            json!({"on": true, "5": "5"})
        ]
    );
    let text = "a: &a {x: 1}\nb: &b {x: 2, w: 2}\nc: {<<: [*a, *b], z: 3}\n";
    assert_eq!(read(text)[0]["c"], json!({"x": 1, "w": 2, "z": 3}));
    assert_eq!(
        read("a: !!str 5\nb: !!int '5'\nc: !mine yes\n"),
        [json!({"a": "5", "b": 5, "c": "yes"})]
    );
}

#[test]
fn every_field_knows_its_place() {
    let (documents, _) = parse_until_error("# x\n\na:\n  b.c: 1\n  d:\n  - e: 2\n");
    let positions = documents[0].positions();
    let at = |path: &str| positions.get(path).map(|p| (p.line, p.column));
    assert_eq!(at("a"), Some((3, 1)));
    assert_eq!(at("a[b.c]"), Some((4, 3)));
    assert_eq!(at("a.d[0].e"), Some((6, 5)));
}

#[test]
fn documents_before_an_error_are_kept() {
    let (documents, error) = parse_until_error("a: 1\n---\nb: 1\nb: 2\n");
    assert_eq!(documents.len(), 1);
    assert_eq!(error.unwrap().at, Position { line: 4, column: 1 });
}

#[test]
fn aliases_do_not_explode() {
    let mut text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
    for n in 1..20 {
        let alias = format!("*a{}", n - 1);
        text.push_str(&format!("a{n}: &a{n} [{}]\n", vec![alias; 10].join(", ")));
    }
    let error = parse(&text).unwrap_err();
    assert!((2..20).contains(&error.at.line), "{error:?}");
}

/// Returns the line in which a text is rejected because it takes too much memory.
fn refused_line(text: &str) -> usize {
    let error = parse(text).unwrap_err();
    assert!(error.problem.contains("MiB"), "{error:?}");
    error.at.line
}

#[test]
fn long_texts_are_not_repeated_without_end() {
    let long = "x".repeat(100_000);
    let repeated = format!("a: &a {long}\nb:\n{}", "- *a\n".repeat(100_000));
    let line = refused_line(&repeated);
    assert!((3..1_000).contains(&line), "{line}");
    let keys: String = (0..100)
        .map(|n| format!("  {n}{}: 1\n", "k".repeat(1_000)))
        .collect();
    for merge in ["- {<<: *a}\n", "- <<: [*a, *a]\n"] {
        let text = format!("a: &a\n{keys}b:\n{}", merge.repeat(30_000));
        let line = refused_line(&text);
        assert!((102..1_000).contains(&line), "{line}");
    }
}

#[test]
fn anchors_within_anchors_are_not_copied_without_end() {
    let open: String = (0..200).map(|n| format!("&a{n} [")).collect();
    let text = format!("a: {open}{}{}", "1,".repeat(100_000), "]".repeat(200));
    assert_eq!(refused_line(&text), 1);
}

#[test]
fn long_paths_are_not_repeated_without_end() {
    let mut text = String::new();
    for depth in 0..100 {
        text += &format!("{}{}:\n", " ".repeat(depth), "k".repeat(1_000));
    }
    text += &format!("{}- 1\n", " ".repeat(100)).repeat(10_000);
    let line = refused_line(&text);
    assert!((100..1_000).contains(&line), "{line}");
    // The same with aliases, each small by itself.
    let mut text = format!("a0: &a0 [{}]\n", "1,".repeat(1_000));
    for n in 1..100 {
        text += &format!("a{n}: &a{n} {{{}: *a{}}}\n", "k".repeat(1_000), n - 1);
    }
    let line = refused_line(&text);
    assert!((2..100).contains(&line), "{line}");
}

#[test]
fn the_message_mentions_aliases_only_if_there_are_some() {
    let error = parse(&"---\n".repeat(1_000_000)).unwrap_err();
    assert_eq!(error.problem, "the file must take at most 85 MiB of memory");
    assert!(!error.remedy.contains("alias"), "{error:?}");
}

#[test]
fn thousands_of_jobs_are_within_the_budget() {
    let container =
        "        - {name: pytorch, image: 'x:1', command: [python, -m, train], env: [{name: A, value: b}]}\n";
    let job = format!(
        "---\napiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {{name: a}}\nspec:\n  pytorchReplicaSpecs:\n    Worker:\n      template: {{spec: {{nodeSelector: &s {{a: b}}, tolerations: [{{key: a}}]}}}}\n      spec:\n        containers:\n{}",
        container.repeat(5)
    );
    assert_eq!(read(&job.repeat(5_000)).len(), 5_000);
}

#[test]
fn aliases_do_not_nest_without_end() {
    let mut text = "a0: &a0 [1]\n".to_owned();
    for n in 1..1000 {
        text.push_str(&format!("a{n}: &a{n} [*a{}]\n", n - 1));
    }
    let error = parse(&text).unwrap_err();
    assert!(error.problem.contains("deep"), "{error:?}");
    assert_eq!(error.at.line, MAX_DEPTH);
}

proptest::proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(text in "[a-c:?,*&<!|>{}\\[\\]'\"#%@~ \t\n-]{0,40}") {
        let (documents, _) = parse_until_error(&text);
        documents.iter().for_each(|d| drop(d.positions()));
    }
}
