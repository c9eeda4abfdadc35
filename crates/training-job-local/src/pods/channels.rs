//! The channels of a remote command over a WebSocket: the protocols `v4.channel.k8s.io` and `v5.channel.k8s.io`.
//!
//! The first byte of each message is the number of its channel. Version 5 adds a message that closes a channel.

use http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    UPGRADE,
};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// The protocols, the preferred one first.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

const STDIN: u8 = 0;
pub(super) const STDOUT: u8 = 1;
pub(super) const STDERR: u8 = 2;
pub(super) const STATUS: u8 = 3;
const CLOSE: u8 = 255;

/// Returns the headers that accept a WebSocket.
///
/// # Errors
/// The request is for another protocol.
pub(super) fn accept(request: &HeaderMap) -> Result<HeaderMap, String> {
    let words = |name| {
        let values = request
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok());
        values
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .collect::<Vec<_>>()
    };
    if !words(UPGRADE)
        .iter()
        .any(|word| word.eq_ignore_ascii_case("websocket"))
    {
        return Err("only WebSockets are served; use kubectl 1.31 or later".to_owned());
    }
    let requested = words(SEC_WEBSOCKET_PROTOCOL);
    let protocol = PROTOCOLS
        .into_iter()
        .find(|protocol| requested.contains(protocol));
    let protocol =
        protocol.ok_or_else(|| format!("request one of the protocols {}", PROTOCOLS.join(", ")))?;
    let key = request
        .get(SEC_WEBSOCKET_KEY)
        .ok_or("the header Sec-WebSocket-Key is missing")?;
    let key = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
    let key = key.map_err(|_| "the header Sec-WebSocket-Key is invalid")?;
    let mut headers = HeaderMap::new();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, key);
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    Ok(headers)
}

/// A message from the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClientMessage<'a> {
    Stdin(&'a [u8]),
    StdinClosed,
    /// A message without effect, such as the size of a terminal.
    Ignored,
}

impl<'a> ClientMessage<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Self {
        match message {
            [STDIN, data @ ..] => Self::Stdin(data),
            [CLOSE, STDIN, ..] => Self::StdinClosed,
            _ => Self::Ignored,
        }
    }
}

/// Returns a message with data of a channel.
pub(super) fn message(channel: u8, data: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(data.len() + 1);
    message.push(channel);
    message.extend_from_slice(data);
    message
}

/// Returns the status of a command that has ended with this exit code.
pub(super) fn exit_status(code: i32) -> Value {
    if code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!("command terminated with non-zero exit code: exit status {code}"),
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(protocols: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        // The key and its answer are the example of RFC 6455.
        headers.insert(
            SEC_WEBSOCKET_KEY,
            HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="),
        );
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_str(protocols).unwrap());
        headers
    }

    #[test]
    fn the_newest_protocol_of_both_sides_is_accepted() {
        for (requested, accepted) in [
            ("v5.channel.k8s.io", Ok("v5.channel.k8s.io")),
            ("v4.channel.k8s.io", Ok("v4.channel.k8s.io")),
            ("v4.channel.k8s.io,v5.channel.k8s.io", Ok("v5.channel.k8s.io")),
            ("channel.k8s.io", Err(())),
        ] {
            let headers = accept(&headers(requested)).map_err(drop);
            let protocol = headers
                .as_ref()
                .map(|headers| headers[SEC_WEBSOCKET_PROTOCOL].to_str().unwrap());
            assert_eq!(protocol.map_err(|()| &()), accepted.as_ref().map(|name| *name));
            if let Ok(headers) = headers {
                assert_eq!(headers[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
            }
        }
        let mut spdy = headers("v4.channel.k8s.io");
        spdy.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
        assert!(accept(&spdy).unwrap_err().contains("WebSockets"));
    }

    #[test]
    fn messages_begin_with_their_channel() {
        assert_eq!(ClientMessage::parse(b"\0ab"), ClientMessage::Stdin(b"ab"));
        assert_eq!(ClientMessage::parse(b"\xff\0"), ClientMessage::StdinClosed);
        assert_eq!(ClientMessage::parse(b"\x04{}"), ClientMessage::Ignored);
        assert_eq!(ClientMessage::parse(b""), ClientMessage::Ignored);
        assert_eq!(message(STDERR, b"x"), b"\x02x");
        assert_eq!(exit_status(7)["details"]["causes"][0]["message"], "7");
        assert_eq!(exit_status(0)["status"], "Success");
    }
}
