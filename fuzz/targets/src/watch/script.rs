//! Parses the script of a fuzz input: the API server's response to each list and watch.
//!
//! A response starts with a line such as `> pods 200 end 7`: the resource, the status code, the end of the body
//! (`end`, `hang`, `break`), and the number of bytes to send at once. Its body extends to the next such line.

use std::collections::{BTreeMap, VecDeque};

use http::Request;
use kube::client::Body;

/// The resources that the operator lists and watches.
pub(super) const RESOURCES: [&str; 3] = ["mxjobs", "pods", "services"];

/// The maximum number of responses. More responses find nothing new, and take long.
const MAX_RESPONSES: usize = 64;

/// The end of the body of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The body is complete.
    End,
    /// The connection stays open, and nothing more is sent.
    Hang,
    /// The connection breaks.
    Break,
}

/// A response of the script.
#[derive(Clone, Debug)]
pub(super) struct ScriptedResponse {
    pub(super) code: u16,
    pub(super) ending: Ending,
    /// The number of bytes to send at once.
    pub(super) chunk: usize,
    pub(super) body: Vec<u8>,
}

/// A list or watch that the operator sends.
pub(super) struct ListOrWatch {
    pub(super) resource: &'static str,
    pub(super) watch: bool,
    pub(super) next_page: bool,
    pub(super) version: String,
}

/// The responses for each resource, in order.
pub(super) type Responses = BTreeMap<&'static str, VecDeque<ScriptedResponse>>;

/// Parses a script. Any bytes are a valid script.
pub(super) fn parse(bytes: &[u8]) -> Responses {
    let mut responses = Responses::new();
    let starts = |at: usize| bytes[at..].starts_with(b"> ") && (at == 0 || bytes[at - 1] == b'\n');
    let starts: Vec<usize> = (0..bytes.len()).filter(|at| starts(*at)).collect();
    for (n, start) in starts.iter().take(MAX_RESPONSES).enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(bytes.len());
        let section = &bytes[*start..end];
        let line = section.iter().position(|b| *b == b'\n').unwrap_or(section.len());
        let head = String::from_utf8_lossy(&section[2..line.max(2)]).into_owned();
        let body = section.get(line + 1..).unwrap_or_default().to_vec();
        let words: Vec<&str> = head.split_whitespace().collect();
        let word = |n: usize| words.get(n).copied().unwrap_or_default();
        let resource = RESOURCES.iter().find(|resource| **resource == word(0));
        let code = word(1).parse().ok();
        let response = ScriptedResponse {
            code: code.filter(|code| (400..600).contains(code)).unwrap_or(200),
            ending: match word(2) {
                "hang" => Ending::Hang,
                "break" => Ending::Break,
                _ => Ending::End,
            },
            chunk: word(3).parse().unwrap_or(usize::MAX).max(1),
            body,
        };
        let resource = resource.unwrap_or(&"pods");
        responses.entry(resource).or_default().push_back(response);
    }
    responses
}

impl ListOrWatch {
    pub(super) fn from_request(request: &Request<Body>) -> Self {
        let path = request.uri().path();
        let plural = path.rsplit('/').next().unwrap_or_default();
        let resource = RESOURCES.iter().find(|resource| **resource == plural);
        let query = request.uri().query().unwrap_or_default();
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(key, _)| *key == name)
                .map(|(_, value)| percent_decoded(value))
        };
        Self {
            resource: resource.unwrap_or_else(|| panic!("the operator asks for {path}")),
            watch: value("watch").as_deref() == Some("true"),
            next_page: value("continue").is_some(),
            version: value("resourceVersion").unwrap_or_default(),
        }
    }
}

/// Returns the decoded value of a query parameter.
fn percent_decoded(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                let digits = std::str::from_utf8(&digits).unwrap_or("0");
                u8::from_str_radix(digits, 16).unwrap_or(0)
            }
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
