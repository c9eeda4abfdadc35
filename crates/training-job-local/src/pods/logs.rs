//! `pods/log`: the output of a container.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody};
use jiff::Timestamp;
use kube_memory::{SubresourceRequest, SubresourceResponse, failure_response};
use local_node::{ContainerError, LogFormatter, LogOptions};

use super::container::{choose, no_output};
use super::query::Options;
use super::{Pods, bad_request, name_of, permit};

pub(super) async fn log(pods: Pods, request: SubresourceRequest) -> SubresourceResponse {
    match respond(&pods, &request).await {
        Ok(response) | Err(response) => response,
    }
}

async fn respond(
    pods: &Pods,
    request: &SubresourceRequest,
) -> Result<SubresourceResponse, SubresourceResponse> {
    let (namespace, name) = name_of(request);
    if request.parts.method != Method::GET {
        let message = "the server does not allow this method on the requested resource";
        return Err(failure_response(405, "MethodNotAllowed", message));
    }
    let query = Options::parse(request.parts.uri.query());
    let options = options(&query, Timestamp::now()).map_err(|problem| {
        let message = format!("PodLogOptions {name:?} is invalid: {problem}");
        failure_response(422, "Invalid", &message)
    })?;
    let pod = request.object.value();
    let container = choose(pod, query.get("container")).map_err(|problem| bad_request(&problem))?;
    if pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty() {
        return Ok(text(Empty::new().boxed_unsync()));
    }
    let permit = permit(&pods.readers).map_err(|response| *response)?;
    let previous = query.flag("previous");
    let output = pods
        .containers
        .output(&namespace, &name, &container, previous, &options)
        .await;
    let reader = match output {
        Ok(reader) => reader,
        Err(ContainerError::NoRun) => {
            return Ok(match no_output(pod, &container, previous) {
                Some(problem) => bad_request(&problem),
                None => text(Empty::new().boxed_unsync()),
            });
        }
        Err(error) => return Err(failure_response(500, "InternalError", &error.to_string())),
    };
    let formatter = LogFormatter::new(&options);
    let chunks = stream::unfold(
        (reader, formatter, permit),
        |(mut reader, mut formatter, permit)| async {
            while !formatter.is_full() {
                // The response has begun, so an error can only end it.
                let entries = reader.next().await.ok().flatten()?;
                let text = formatter.format(&entries);
                if !text.is_empty() {
                    let frame: Result<_, Infallible> = Ok(Frame::data(Bytes::from(text)));
                    return Some((frame, (reader, formatter, permit)));
                }
            }
            None
        },
    );
    Ok(text(StreamBody::new(chunks).boxed_unsync()))
}

fn text<B>(body: B) -> Response<B> {
    let mut response = Response::new(body);
    let plain = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// Reads the options of `kubectl logs`.
fn options(query: &Options<'_>, now: Timestamp) -> Result<LogOptions, String> {
    let seconds = query.number("sinceSeconds", 1)?;
    let time = query.get("sinceTime");
    let since = match (seconds, time) {
        (Some(_), Some(_)) => {
            return Err("at most one of `sinceTime` or `sinceSeconds` may be specified".to_owned());
        }
        (Some(seconds), None) => now.checked_sub(Duration::from_secs(seconds)).ok(),
        (None, Some(time)) => {
            let time = time.parse();
            Some(time.map_err(|_| "sinceTime: must be a time such as 2026-01-31T12:00:00Z".to_owned())?)
        }
        (None, None) => None,
    };
    Ok(LogOptions {
        follow: query.flag("follow"),
        timestamps: query.flag("timestamps"),
        tail_lines: query.number("tailLines", 0)?,
        since,
        limit_bytes: query.number("limitBytes", 1)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_given_once() {
        let now = Timestamp::from_second(100).unwrap();
        let since = |query| options(&Options::parse(Some(query)), now).map(|options| options.since);
        assert_eq!(since("sinceSeconds=40"), Ok(Timestamp::from_second(60).ok()));
        assert_eq!(
            since("sinceTime=1970-01-01T00:00:07Z"),
            Ok(Timestamp::from_second(7).ok())
        );
        assert!(since("sinceTime=yesterday").is_err());
        assert!(since("sinceTime=1970-01-01T00:00:07Z&sinceSeconds=1").is_err());
        // Before the first year that can be represented.
        assert_eq!(since("sinceSeconds=9223372036854775807"), Ok(None));
    }
}
