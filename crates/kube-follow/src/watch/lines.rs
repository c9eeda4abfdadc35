//! The lines of a watch.
//!
//! Not kube's `Api::watch`: it takes every line for one value, so that an object which is none of its kind can be read
//! but by way of a tree of all of it. Here an object is a text, which a kind reads as it likes.

use std::error::Error;
use std::io;
use std::iter::successors;

use futures::future::ready;
use futures::{AsyncBufReadExt, Stream, StreamExt};
use kube::api::{Request, WatchParams};
use kube::core::Status;
use kube::core::watch::Bookmark;
use kube::{Api, Resource};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;

/// How the text of one object is read.
pub type Parse<K> = fn(&str) -> serde_json::Result<K>;

/// What a line says.
pub(super) enum Line<K> {
    /// An object is new or has changed.
    Applied(K),
    /// An object is gone.
    Deleted(K),
    /// Nothing more is to come up to this version.
    Bookmark(String),
    /// The watch cannot go on.
    Error(Box<Status>),
}

/// The lines of a watch from this version on, until it ends.
///
/// # Errors
/// What the server answers instead.
pub(super) async fn lines<K: Resource<DynamicType = ()> + Clone>(
    api: &Api<K>,
    parse: Parse<K>,
    params: &WatchParams,
    version: &str,
) -> kube::Result<impl Stream<Item = kube::Result<Line<K>>> + use<K>> {
    let request = Request::new(api.resource_url()).watch(params, version);
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    request.extensions_mut().insert("watch");
    // Servers from 1.37 on compress each event by itself, which the client cannot read.
    if let Ok(identity) = "identity".parse() {
        request.headers_mut().insert("accept-encoding", identity);
    }
    let text = api.clone().into_client().request_stream(request).await?;
    let lines = text
        .lines()
        .scan(false, move |cut, line| ready(Some(parse_line(parse, cut, line))));
    Ok(lines.filter_map(ready))
}

/// What is heard of a watch next. A line that was cut is as good as none if it was the last one: the next watch tells
/// it again. If it was not, what it said is lost.
fn parse_line<K>(parse: Parse<K>, cut: &mut bool, line: io::Result<String>) -> Option<kube::Result<Line<K>>> {
    match line {
        Ok(_) if *cut => {
            let error = serde_json::Error::custom("there are more lines after one that was cut");
            Some(Err(kube::Error::SerdeError(error)))
        }
        Ok(line) => {
            let said = read(parse, &line).transpose();
            *cut = said.is_none() && !line.is_empty();
            said
        }
        Err(error) if is_end(&error) => None,
        Err(error) => Some(Err(kube::Error::ReadEvents(error))),
    }
}

/// Whether the connection was closed where a server that stops closes it, as kube has it.
fn is_end(error: &io::Error) -> bool {
    let first = error.get_ref().map(|cause| cause as &(dyn Error + 'static));
    // An error may name itself as its cause.
    let mut causes = successors(first, |cause| (*cause).source()).take(16);
    causes.any(|cause| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        kind == Some(io::ErrorKind::UnexpectedEof)
            || cause.to_string().contains("unexpected EOF during chunk")
    })
}

/// What a line says; nothing if the watch was cut within it.
///
/// # Errors
/// It is no event, or its object none of the kind.
fn read<K>(parse: Parse<K>, line: &str) -> kube::Result<Option<Line<K>>> {
    if let Some((word, object)) = parts(line)
        && let Ok(Some(line)) = event(parse, word, object)
    {
        return Ok(Some(line));
    }
    // Members have no order, and there may be more of them.
    let raw: Raw<'_> = match serde_json::from_str(line) {
        Ok(raw) => raw,
        Err(error) if error.is_eof() => return Ok(None),
        Err(error) => return Err(refusal(line).unwrap_or(kube::Error::SerdeError(error))),
    };
    let line = event(parse, &raw.word, raw.object.get()).map_err(kube::Error::SerdeError)?;
    line.map(Some).ok_or_else(|| {
        let error = format!("a watch tells of no {:?}", raw.word);
        kube::Error::SerdeError(serde_json::Error::custom(error))
    })
}

/// An event of which the object is yet to be read.
#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(rename = "type")]
    word: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// What a server says that answers with a Status instead of events.
fn refusal(line: &str) -> Option<kube::Error> {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    let named: Kind = serde_json::from_str(line).ok()?;
    let status = (named.kind == "Status").then(|| serde_json::from_str(line).ok())??;
    Some(kube::Error::Api(status))
}

/// The type and the object of a line as servers write it.
fn parts(line: &str) -> Option<(&str, &str)> {
    let (word, object) = line.strip_prefix(r#"{"type":""#)?.split_once(r#"","object":"#)?;
    Some((word, object.strip_suffix('}')?))
}

/// What an event of this type about this object says; nothing if there are no such events.
fn event<K>(parse: Parse<K>, word: &str, object: &str) -> serde_json::Result<Option<Line<K>>> {
    Ok(Some(match word {
        "ADDED" | "MODIFIED" => Line::Applied(parse(object)?),
        "DELETED" => Line::Deleted(parse(object)?),
        "BOOKMARK" => Line::Bookmark(
            serde_json::from_str::<Bookmark>(object)?
                .metadata
                .resource_version,
        ),
        "ERROR" => Line::Error(serde_json::from_str(object)?),
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn said(line: &str) -> String {
        let heard = parse_line(parse, &mut false, Ok(line.to_owned()));
        heard.map_or_else(|| "nothing".to_owned(), in_words)
    }

    fn parse(text: &str) -> serde_json::Result<ConfigMap> {
        serde_json::from_str(text)
    }

    fn in_words(line: kube::Result<Line<ConfigMap>>) -> String {
        let name = |object: ConfigMap| object.metadata.name.unwrap_or_default();
        match line {
            Ok(Line::Applied(object)) => format!("applied {}", name(object)),
            Ok(Line::Deleted(object)) => format!("deleted {}", name(object)),
            Ok(Line::Bookmark(version)) => format!("up to {version}"),
            Ok(Line::Error(status)) => format!("error {}", status.code),
            Err(kube::Error::Api(status)) => format!("refused with {}", status.code),
            Err(error) => format!("{error}"),
        }
    }

    #[test]
    fn a_connection_that_was_closed_within_a_chunk_is_an_end_and_one_that_broke_an_error() {
        let ends = [
            io::Error::other(io::Error::from(io::ErrorKind::UnexpectedEof)),
            io::Error::other("unexpected EOF during chunk size line"),
        ];
        for error in ends {
            let told = error.to_string();
            assert!(parse_line(parse, &mut false, Err(error)).is_none(), "{told}");
        }
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        for error in [io::Error::other(reset), io::Error::other("reset")] {
            let heard = parse_line(parse, &mut false, Err(error));
            assert!(matches!(heard, Some(Err(kube::Error::ReadEvents(_)))));
        }
    }

    #[test]
    fn nothing_is_believed_after_a_line_that_was_cut() {
        let added = r#"{"type":"ADDED","object":{"metadata":{"name":"m"}}}"#;
        let cut = &added[..added.len() - 1];
        let heard = |lines: &[&str]| -> Vec<String> {
            let mut is_cut = false;
            let lines = lines
                .iter()
                .filter_map(|line| parse_line(parse, &mut is_cut, Ok((*line).to_owned())));
            lines.map(in_words).collect()
        };
        assert_eq!(heard(&[added, "", added, cut]), ["applied m", "applied m"]);
        let after = heard(&[added, cut, added, added]);
        assert_eq!(after[0], "applied m");
        assert!(after[1].contains("after one that was cut"), "{after:?}");
        assert!(!after[2..].contains(&"applied m".to_owned()), "{after:?}");
    }

    #[test]
    fn a_line_says_the_same_however_it_is_written() {
        let map = r#"{"metadata":{"name":"m","annotations":{"a":"\",\"object\":{}"}}}"#;
        for line in [
            format!(r#"{{"type":"ADDED","object":{map}}}"#),
            format!(r#"{{"type":"MODIFIED","object":{map}}}"#),
            format!(r#"{{ "type": "ADDED", "object": {map} }} "#),
            format!(r#"{{"object":{map},"type":"ADDED"}}"#),
            format!(r#"{{"type":"ADDED","object":{map},"more":{{}}}}"#),
            format!(r#"{{"type":"ADDE\u0044","object":{map}}}"#),
        ] {
            assert_eq!(said(&line), "applied m", "{line}");
        }
        assert_eq!(
            said(&format!(r#"{{"type":"DELETED","object":{map}}}"#)),
            "deleted m"
        );
    }

    #[test]
    fn what_is_no_event_is_an_error_and_what_was_cut_is_nothing() {
        let bookmark = r#"{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"7"}}}"#;
        let cases = [
            (bookmark, "up to 7"),
            (&bookmark[..60], "nothing"),
            ("", "nothing"),
            (
                r#"{"type":"ERROR","object":{"kind":"Status","code":410}}"#,
                "error 410",
            ),
            (r#"{"kind":"Status","code":500}"#, "refused with 500"),
            (
                r#"{"type":"ADDED","object":{},"object":{"metadata":{"name":"m"}}}"#,
                "duplicate field `object`",
            ),
            (r#"{"type":"NEWS","object":{}}"#, r#"a watch tells of no "NEWS""#),
            ("{}", "missing field `type`"),
            (r#"{"type":"ADDED"}"#, "missing field `object`"),
            (
                r#"{"type":"ADDED","object":{"metadata":3}}"#,
                "invalid type: integer `3`, expected ObjectMeta",
            ),
            (
                r#"{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}}"#,
                "missing field `resourceVersion`",
            ),
            (
                r#"{"object":{"kind":"Pod","metadata":{"resourceVersion":"7"}},"type":"BOOKMARK"}"#,
                "missing field `apiVersion`",
            ),
            ("gone", "expected value at line 1 column 1"),
        ];
        for (line, expected) in cases {
            let said = said(line);
            assert!(said.contains(expected), "{line}: {said}");
        }
    }
}
