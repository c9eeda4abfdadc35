//! The events of one watch, read line by line.
//!
//! kube's `Api::watch` is not used, because it decodes each line as one value. If an object does not have the
//! expected shape, it builds a tree of the whole object first. Here an object stays text, and the caller decodes it.

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
use serde::de::{DeserializeOwned, Error as _};
use serde_json::value::RawValue;

/// One event as the server sends it.
pub(super) enum WatchEvent<K> {
    /// An object was created or has changed.
    Applied(K),
    /// An object was deleted.
    Deleted(K),
    /// All changes up to this version have been sent.
    Bookmark(String),
    /// The watch cannot go on.
    Error(Box<Status>),
}

/// Starts a watch from `version`. The stream ends with the watch.
///
/// # Errors
/// The server does not respond with events.
pub(super) async fn open<K: Resource + Clone + DeserializeOwned>(
    api: &Api<K>,
    params: &WatchParams,
    version: &str,
) -> kube::Result<impl Stream<Item = kube::Result<WatchEvent<K>>> + use<K>> {
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
        .scan(false, move |cut, line| ready(Some(parse_line(cut, line))));
    Ok(lines.filter_map(ready))
}

/// Returns the event of a line, if it has one. A truncated line is skipped if it is the last one, because the next
/// watch sends the event again. If more lines follow, the event is lost.
fn parse_line<K: DeserializeOwned>(
    cut: &mut bool,
    line: io::Result<String>,
) -> Option<kube::Result<WatchEvent<K>>> {
    match line {
        Ok(_) if *cut => {
            let error = serde_json::Error::custom("there are lines after a truncated line");
            Some(Err(kube::Error::SerdeError(error)))
        }
        Ok(line) => {
            let event = parse_event(&line).transpose();
            *cut = event.is_none() && !line.is_empty();
            event
        }
        Err(error) if is_end(&error) => None,
        Err(error) => Some(Err(kube::Error::ReadEvents(error))),
    }
}

/// Returns true if the connection was closed in the middle of a chunk, as by a server that shuts down. kube uses the
/// same test.
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

/// Parses a line. Returns `None` if the line was truncated.
///
/// # Errors
/// The line is not an event, or its object cannot be decoded.
fn parse_event<K: DeserializeOwned>(line: &str) -> kube::Result<Option<WatchEvent<K>>> {
    if let Some((type_, object)) = split(line)
        && let Ok(Some(event)) = decode(type_, object)
    {
        return Ok(Some(event));
    }
    // The members may be in another order, and there may be more of them.
    let raw: RawEvent<'_> = match serde_json::from_str(line) {
        Ok(raw) => raw,
        Err(error) if error.is_eof() => return Ok(None),
        Err(error) => return Err(parse_status(line).unwrap_or(kube::Error::SerdeError(error))),
    };
    let event = decode(&raw.type_, raw.object.get()).map_err(kube::Error::SerdeError)?;
    event.map(Some).ok_or_else(|| {
        let error = format!("unknown type of watch event: {:?}", raw.type_);
        kube::Error::SerdeError(serde_json::Error::custom(error))
    })
}

/// An event whose object is not decoded yet.
#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "type")]
    type_: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Returns the error of a server that sends a Status instead of events.
fn parse_status(line: &str) -> Option<kube::Error> {
    #[derive(Deserialize)]
    struct TypeMeta {
        kind: String,
    }
    let named: TypeMeta = serde_json::from_str(line).ok()?;
    let status = (named.kind == "Status").then(|| serde_json::from_str(line).ok())??;
    Some(kube::Error::Api(status))
}

/// Splits a line into type and object if it has the form that servers usually write. This avoids a pass over the
/// object.
fn split(line: &str) -> Option<(&str, &str)> {
    let (type_, object) = line.strip_prefix(r#"{"type":""#)?.split_once(r#"","object":"#)?;
    Some((type_, object.strip_suffix('}')?))
}

/// Decodes an event. Returns `None` if its type is unknown.
fn decode<K: DeserializeOwned>(type_: &str, object: &str) -> serde_json::Result<Option<WatchEvent<K>>> {
    Ok(Some(match type_ {
        "ADDED" | "MODIFIED" => WatchEvent::Applied(serde_json::from_str(object)?),
        "DELETED" => WatchEvent::Deleted(serde_json::from_str(object)?),
        "BOOKMARK" => WatchEvent::Bookmark(
            serde_json::from_str::<Bookmark>(object)?
                .metadata
                .resource_version,
        ),
        "ERROR" => WatchEvent::Error(serde_json::from_str(object)?),
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn parsed(line: &str) -> String {
        let event = parse_line(&mut false, Ok(line.to_owned()));
        event.map_or_else(|| "nothing".to_owned(), in_words)
    }

    fn in_words(line: kube::Result<WatchEvent<ConfigMap>>) -> String {
        let name = |object: ConfigMap| object.metadata.name.unwrap_or_default();
        match line {
            Ok(WatchEvent::Applied(object)) => format!("applied {}", name(object)),
            Ok(WatchEvent::Deleted(object)) => format!("deleted {}", name(object)),
            Ok(WatchEvent::Bookmark(version)) => format!("up to {version}"),
            Ok(WatchEvent::Error(status)) => format!("error {}", status.code),
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
            let text = error.to_string();
            assert!(
                parse_line::<ConfigMap>(&mut false, Err(error)).is_none(),
                "{text}"
            );
        }
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        for error in [io::Error::other(reset), io::Error::other("reset")] {
            let event = parse_line::<ConfigMap>(&mut false, Err(error));
            assert!(matches!(event, Some(Err(kube::Error::ReadEvents(_)))));
        }
    }

    #[test]
    fn events_after_a_line_that_was_cut_off_are_errors() {
        let added = r#"{"type":"ADDED","object":{"metadata":{"name":"m"}}}"#;
        let cut = &added[..added.len() - 1];
        let event = |lines: &[&str]| -> Vec<String> {
            let mut is_cut = false;
            let lines = lines
                .iter()
                .filter_map(|line| parse_line(&mut is_cut, Ok((*line).to_owned())));
            lines.map(in_words).collect()
        };
        assert_eq!(event(&[added, "", added, cut]), ["applied m", "applied m"]);
        let after = event(&[added, cut, added, added]);
        assert_eq!(after[0], "applied m");
        assert!(after[1].contains("after a truncated line"), "{after:?}");
        assert!(!after[2..].contains(&"applied m".to_owned()), "{after:?}");
    }

    #[test]
    fn the_order_and_spacing_of_a_line_do_not_matter() {
        let map = r#"{"metadata":{"name":"m","annotations":{"a":"\",\"object\":{}"}}}"#;
        for line in [
            format!(r#"{{"type":"ADDED","object":{map}}}"#),
            format!(r#"{{"type":"MODIFIED","object":{map}}}"#),
            format!(r#"{{ "type": "ADDED", "object": {map} }} "#),
            format!(r#"{{"object":{map},"type":"ADDED"}}"#),
            format!(r#"{{"type":"ADDED","object":{map},"more":{{}}}}"#),
            format!(r#"{{"type":"ADDE\u0044","object":{map}}}"#),
        ] {
            assert_eq!(parsed(&line), "applied m", "{line}");
        }
        assert_eq!(
            parsed(&format!(r#"{{"type":"DELETED","object":{map}}}"#)),
            "deleted m"
        );
    }

    #[test]
    fn a_line_that_is_not_an_event_is_an_error_and_a_truncated_one_is_skipped() {
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
            (
                r#"{"type":"NEWS","object":{}}"#,
                r#"unknown type of watch event: "NEWS""#,
            ),
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
            let parsed = parsed(line);
            assert!(parsed.contains(expected), "{line}: {parsed}");
        }
    }
}
