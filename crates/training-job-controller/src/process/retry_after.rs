//! Copies the `Retry-After` header of a response into its body, where the operator can read it.
//!
//! The client builds an error from the body of a response and drops the headers. An overloaded server, or a proxy in
//! front of it, sends the delay in a header, often with a plain text body.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::BoxError;

type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Writes the `Retry-After` header of an error response into its body.
pub(super) async fn copied<B>(answer: Response<B>) -> Result<Response<Body>, BoxError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let Some(seconds) = asked(&answer) else {
        return Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()));
    };
    let (mut head, body) = answer.into_parts();
    let text = body.collect().await.map_err(Into::into)?.to_bytes();
    let body = with_seconds(&text, head.status, seconds).to_string();
    head.headers.remove(CONTENT_LENGTH);
    let json = HeaderValue::from_static("application/json");
    head.headers.insert(CONTENT_TYPE, json);
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
    Ok(Response::from_parts(head, body.boxed_unsync()))
}

/// Returns the seconds in the `Retry-After` header of an error response. A date or any other value is ignored, and
/// the operator's own backoff applies.
fn asked<B>(answer: &Response<B>) -> Option<u32> {
    let refused = answer.status().is_client_error() || answer.status().is_server_error();
    let header = answer.headers().get(RETRY_AFTER).filter(|_| refused)?;
    header.to_str().ok()?.trim().parse().ok()
}

/// Returns the body of an error response as a `Status` with the seconds; the original message is kept.
fn with_seconds(body: &[u8], code: StatusCode, seconds: u32) -> Value {
    let said = serde_json::from_slice::<Value>(body).ok();
    let mut status = said.filter(|s| s["kind"] == "Status").unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        let message = match text.trim() {
            "" => code.to_string(),
            words => words.to_owned(),
        };
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Failure", "message": message, "reason": "", "code": code.as_u16(),
        })
    });
    if !status["details"].is_object() {
        status["details"] = json!({});
    }
    status["details"]["retryAfterSeconds"] = json!(seconds);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, header: &str) -> Response<()> {
        let answer = Response::builder().status(code).header(RETRY_AFTER, header);
        answer.body(()).unwrap()
    }

    #[test]
    fn only_a_number_of_seconds_is_accepted() {
        assert_eq!(asked(&answer(429, "7")), Some(7));
        assert_eq!(asked(&answer(503, " 7 ")), Some(7));
        for garbage in [
            "soon",
            "-1",
            "1.5",
            "",
            "99999999999",
            "Fri, 31 Dec 1999 23:59:59 GMT",
        ] {
            assert_eq!(asked(&answer(429, garbage)), None, "{garbage}");
        }
        assert_eq!(asked(&answer(200, "7")), None, "no refusal");
    }

    #[test]
    fn the_servers_message_is_kept() {
        let status = br#"{"kind":"Status","message":"m","reason":"r","code":429,"details":{"name":"n"}}"#;
        let answer = with_seconds(status, StatusCode::TOO_MANY_REQUESTS, 2);
        let details = json!({"name": "n", "retryAfterSeconds": 2});
        assert_eq!((&answer["message"], &answer["details"]), (&json!("m"), &details));
        let answer = with_seconds(b"Too busy.\n", StatusCode::TOO_MANY_REQUESTS, 2);
        assert_eq!(answer["message"], json!("Too busy."));
        assert_eq!(answer["code"], json!(429));
        assert_eq!(answer["details"], json!({"retryAfterSeconds": 2}));
        let answer = with_seconds(b"", StatusCode::SERVICE_UNAVAILABLE, 2);
        assert_eq!(answer["message"], "503 Service Unavailable");
    }
}
