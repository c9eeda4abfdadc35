//! Writes Kubernetes objects as JSON, or as YAML that kubectl reads back as the same objects.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use crate::exit::Failure;

pub use training_job::render::text::{Readable, documents, title, yaml};

/// Returns the objects as one JSON `List`.
pub fn list(objects: Vec<Value>) -> Result<String, String> {
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
    json(&list)
}

/// Returns a JSON document that ends with a newline.
pub fn json(value: &impl Serialize) -> Result<String, String> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| error.to_string())?;
    text.push('\n');
    Ok(text)
}

/// Writes a JSON document to standard output.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = json(value).map_err(|error| Failure::new("output", error))?;
    Ok(print(&text)?)
}

/// Writes to standard output. A closed pipe (a reader such as `head`) is not an error.
pub fn print(text: &str) -> io::Result<()> {
    print_to(&mut io::stdout().lock(), text).map(drop)
}

/// Writes to standard output with terminal styles. The styles are removed if the output is not a terminal.
pub fn print_styled(text: &str) -> io::Result<()> {
    print_lines(text).map(drop)
}

/// Writes lines of an output that goes on, with terminal styles. Returns false if the reader of the output is gone.
pub fn print_lines(text: &str) -> io::Result<bool> {
    print_to(&mut anstream::stdout().lock(), text)
}

fn print_to(out: &mut impl Write, text: &str) -> io::Result<bool> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reread(value: &Value) -> Vec<Value> {
        let text = documents(std::slice::from_ref(value)).unwrap();
        let documents = kube_manifest::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        documents.iter().map(kube_manifest::Node::to_json).collect()
    }

    #[test]
    fn strings_stay_strings() {
        for text in [
            "on",
            "y",
            "No",
            "null",
            "~",
            "",
            "0644",
            "1_000",
            "1:30",
            "0x1F",
            "1e3",
            ".5",
            "-",
            "?",
            "a: b",
            "a #b",
            "# a",
            " a ",
            "{}",
            "[1]",
            "{\"a\":\"it's\"}",
            "\"",
            "'",
            "a\nb",
            "a\n",
            "\n",
            "a\n\n",
            "\ta",
            "  a\nb",
            "%x",
            "@x",
            "`x",
            "!x",
            "&x",
            "*x",
            "<<",
            "=",
            "2026-01-01",
            ".inf",
            "\u{85}",
            "\u{feff}",
            "é",
            "\0",
            "---",
            "...",
            "--- a",
            "a\r\nb",
            "\u{1b}[31m",
            "|",
            ">",
            "- a",
        ] {
            let object = serde_json::json!({"kind": "K", "value": text, text: [text]});
            assert_eq!(reread(&object), [object]);
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~\n\t]{0,12}".prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
            "[0-9_.xobeE+-]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ -~]{0,6}", inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn written_objects_read_back(value in any_value()) {
            let object = serde_json::json!({"kind": "K", "value": value});
            prop_assert_eq!(reread(&object), [object]);
        }
    }
}
