//! An API server that answers from a script.
//!
//! An answer begins with a line such as `> pods 200 end 7`: what is asked for, the status code, how the body
//! ends (`end`, `hang`, `break`), and how many bytes come at once. Its body is all up to the next such line.
//! Each list or watch of a kind gets the next answer for that kind; when there is none, it hears nothing.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use tokio::sync::Notify;

use super::model::Model;

/// What is watched, as in paths.
pub(super) const KINDS: [&str; 3] = ["mxjobs", "pods", "services"];

/// More answers say nothing new, and take long.
const MOST_ANSWERS: usize = 64;

/// How the body of an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// As it should.
    End,
    /// Nothing more comes.
    Hang,
    /// The connection breaks.
    Break,
}

#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) ending: Ending,
    chunk: usize,
    pub(super) body: Vec<u8>,
}

/// What is asked for.
pub(super) struct Question {
    pub(super) kind: &'static str,
    pub(super) watch: bool,
    pub(super) next_page: bool,
    pub(super) version: String,
}

pub(super) struct Script {
    state: Mutex<State>,
    told: Notify,
}

#[derive(Default)]
struct State {
    answers: BTreeMap<&'static str, VecDeque<Answer>>,
    /// Questions by kind, but those for further pages of a list.
    asked: BTreeMap<&'static str, u32>,
    /// The kinds for which there is no answer any more.
    silent: Vec<&'static str>,
    model: Model,
}

impl Script {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut state = State::default();
        let starts = |at: usize| bytes[at..].starts_with(b"> ") && (at == 0 || bytes[at - 1] == b'\n');
        let starts: Vec<usize> = (0..bytes.len()).filter(|at| starts(*at)).collect();
        for (n, start) in starts.iter().take(MOST_ANSWERS).enumerate() {
            let end = starts.get(n + 1).copied().unwrap_or(bytes.len());
            let section = &bytes[*start..end];
            let line = section.iter().position(|b| *b == b'\n').unwrap_or(section.len());
            let head = String::from_utf8_lossy(&section[2..line.max(2)]).into_owned();
            let body = section.get(line + 1..).unwrap_or_default().to_vec();
            let words: Vec<&str> = head.split_whitespace().collect();
            let word = |n: usize| words.get(n).copied().unwrap_or_default();
            let kind = KINDS.iter().find(|kind| **kind == word(0)).unwrap_or(&"pods");
            state.answers.entry(kind).or_default().push_back(Answer {
                code: word(1)
                    .parse()
                    .ok()
                    .filter(|code| (400..600).contains(code))
                    .unwrap_or(200),
                ending: match word(2) {
                    "hang" => Ending::Hang,
                    "break" => Ending::Break,
                    _ => Ending::End,
                },
                chunk: word(3).parse().unwrap_or(usize::MAX).max(1),
                body,
            });
        }
        Self {
            state: Mutex::new(state),
            told: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while it is held")
    }

    /// Waits until all answers have been given, and nothing is left of them.
    pub(super) async fn told(&self) {
        self.told.notified().await;
    }

    /// How many answers nobody has asked for.
    pub(super) fn left(&self) -> BTreeMap<&'static str, usize> {
        let state = self.state();
        state
            .answers
            .iter()
            .map(|(kind, all)| (*kind, all.len()))
            .collect()
    }

    pub(super) fn model(&self) -> Model {
        std::mem::take(&mut self.state().model)
    }

    /// Asserts that no kind was asked for more often than waits of half a second allow. Behind a wait there may
    /// be a list and its watch.
    pub(super) fn was_asked_patiently(&self, within: Duration) {
        for (kind, times) in &self.state().asked {
            let most = 6.0 + 2.0 * within.as_secs_f64() / 0.5;
            assert!(
                f64::from(*times) <= most,
                "{times} questions for {kind} within {within:?}"
            );
        }
    }

    pub(super) async fn answer(&self, question: &Question) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
        let Some(answer) = self.next(question) else {
            return std::future::pending().await;
        };
        let chunk = answer.chunk.min(answer.body.len().max(1));
        let chunks: Vec<_> = answer.body.chunks(chunk).map(Bytes::copy_from_slice).collect();
        let frames = stream::iter(chunks).map(|chunk| Ok(Frame::data(chunk)));
        let body = match answer.ending {
            Ending::End => StreamBody::new(frames).boxed_unsync(),
            Ending::Hang => StreamBody::new(frames.chain(stream::pending())).boxed_unsync(),
            Ending::Break => {
                let broken = stream::iter([Err(io::Error::other("reset"))]);
                StreamBody::new(frames.chain(broken)).boxed_unsync()
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = answer.code.try_into().expect("it is a status code");
        response
    }

    fn next(&self, question: &Question) -> Option<Answer> {
        let mut state = self.state();
        let State {
            answers,
            asked,
            silent,
            model,
        } = &mut *state;
        if !question.next_page {
            *asked.entry(question.kind).or_default() += 1;
        }
        let answer = answers.get_mut(question.kind).and_then(VecDeque::pop_front);
        model.take(question, answer.as_ref());
        if answer.is_none() && !silent.contains(&question.kind) {
            silent.push(question.kind);
            if silent.len() == KINDS.len() {
                self.told.notify_one();
            }
        }
        answer
    }
}

impl Question {
    pub(super) fn of(request: &Request<Body>) -> Self {
        let path = request.uri().path();
        let asked = path.rsplit('/').next().unwrap_or_default();
        let kind = KINDS.iter().find(|kind| **kind == asked);
        let query = request.uri().query().unwrap_or_default();
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(key, _)| *key == name)
                .map(|(_, value)| decoded(value))
        };
        Self {
            kind: kind.unwrap_or_else(|| panic!("nobody should ask for {path}")),
            watch: value("watch").as_deref() == Some("true"),
            next_page: value("continue").is_some(),
            version: value("resourceVersion").unwrap_or_default(),
        }
    }
}

/// A value of a query.
fn decoded(value: &str) -> String {
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
