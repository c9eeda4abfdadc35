//! Faults of single calls on the network between operators and the API server.

use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::call::{ApiResponse, Call, CallError, ResponseBody};
use crate::random::Random;

/// A fault of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// The call is denied with this code and reason.
    Refused(u16, &'static str),
    /// The call takes effect, and the response is an error with this code and reason.
    Garbled(u16, &'static str),
    /// The call is denied with 429 and this `Retry-After` header.
    Throttled(&'static str),
    /// The call is denied with 429, and the status in the response contains a wait of this many seconds.
    Busy(u32),
    /// The connection breaks before the call arrives.
    Reset,
    /// The call takes effect, and the connection breaks before the response.
    ResetAfter,
    /// The call never arrives, and gets no response.
    Lost,
    /// The call takes effect, and gets no response.
    Unanswered,
    /// The call takes effect this many milliseconds later, even if the operator no longer waits, and gets no
    /// response.
    Late(u64),
    /// The call takes effect, and only the first half of the response arrives.
    Truncated,
    /// The call takes effect, and the response is an HTML page.
    Nonsense,
    /// The call takes effect, and the response is 200 with a Status as its body.
    Status,
    /// The request takes the first number of milliseconds to arrive, and the response the second.
    Slow(u64, u64),
    /// For a watch: its first event is 410.
    Gone,
    /// For a list: it returns the state of this many resource versions ago.
    Stale(u64),
    /// The operator dies before the call arrives.
    DiesBefore,
    /// The call takes effect, and the operator dies before the response.
    DiesAfter,
}

/// The faults that seeds draw from. `Stale`, `Slow` and deaths are drawn separately. The order is part of the seed
/// version.
static DRAWN: [CallFault; 24] = [
    CallFault::Refused(401, "Unauthorized"),
    CallFault::Refused(403, "Forbidden"),
    CallFault::Refused(404, "NotFound"),
    CallFault::Refused(409, "Conflict"),
    CallFault::Refused(413, "RequestEntityTooLarge"),
    CallFault::Refused(422, "Invalid"),
    CallFault::Refused(500, "InternalError"),
    CallFault::Refused(502, "BadGateway"),
    CallFault::Refused(503, "ServiceUnavailable"),
    CallFault::Refused(504, "Timeout"),
    CallFault::Throttled("2"),
    CallFault::Throttled("soon"),
    CallFault::Garbled(409, "Conflict"),
    CallFault::Garbled(500, "InternalError"),
    CallFault::Garbled(504, "Timeout"),
    CallFault::Reset,
    CallFault::ResetAfter,
    CallFault::Lost,
    CallFault::Unanswered,
    CallFault::Late(35_000),
    CallFault::Truncated,
    CallFault::Nonsense,
    CallFault::Status,
    CallFault::Gone,
];

impl CallFault {
    /// Returns the faults that seeds draw from, and that the exhaustive mode tries.
    pub fn all() -> &'static [Self] {
        &DRAWN
    }

    /// Returns the label under which reports count the fault.
    pub fn label(&self) -> String {
        match self {
            Self::Refused(code, _) => format!("refused {code}"),
            Self::Garbled(code, _) => format!("applied, then {code}"),
            other => {
                let text = format!("{other:?}");
                text.split('(').next().unwrap_or_default().to_lowercase()
            }
        }
    }

    /// Returns true if a write takes effect, and the operator does not learn of it in time.
    pub fn takes_effect_unnoticed(&self) -> bool {
        use CallFault::{
            DiesAfter, Garbled, Late, Nonsense, ResetAfter, Slow, Status, Truncated, Unanswered,
        };
        matches!(
            self,
            Garbled(..)
                | ResetAfter
                | Unanswered
                | Late(_)
                | Truncated
                | Nonsense
                | Status
                | Slow(..)
                | DiesAfter
        )
    }

    /// Returns true if the fault can be injected into a call such as `create pods`.
    pub fn applies_to(&self, calls: &str) -> bool {
        let verb = calls.split(' ').next().unwrap_or_default();
        match self {
            Self::Gone => verb == "watch",
            Self::Stale(_) => verb == "list",
            Self::Late(_) => !matches!(verb, "list" | "watch" | "get" | "probe"),
            // The status of a job that was refused as invalid is correctly not written again until an edit of the
            // job.
            Self::Refused(422, _) => !calls.ends_with("/status"),
            _ => true,
        }
    }

    /// Injects the fault into a call. Returns the response that the operator receives, if any. `deliver` sends the
    /// call; its argument is the number of resource versions by which a list is outdated. `kill` ends the operator.
    pub(crate) async fn inject<D, F>(
        self,
        is_watch: bool,
        deliver: D,
        kill: impl FnOnce(),
    ) -> Result<ApiResponse, CallError>
    where
        D: FnOnce(u64) -> F + Send + 'static,
        F: Future<Output = Result<ApiResponse, CallError>> + Send + 'static,
    {
        match self {
            Self::Refused(code, reason) => refusal(code, reason),
            Self::Garbled(code, reason) => {
                deliver(0).await?;
                refusal(code, reason)
            }
            Self::Throttled(after) => {
                let mut answer = refusal(429, "TooManyRequests")?;
                let value = http::HeaderValue::from_static(after);
                answer.headers_mut().insert(http::header::RETRY_AFTER, value);
                Ok(answer)
            }
            Self::Busy(seconds) => {
                let mut status = status("Failure", 429, "TooManyRequests");
                status["details"] = json!({"retryAfterSeconds": seconds});
                answer(429, status.to_string())
            }
            Self::Reset => Err(reset()),
            Self::ResetAfter => {
                deliver(0).await?;
                Err(reset())
            }
            Self::Lost => pending().await,
            Self::Unanswered => {
                deliver(0).await?;
                pending().await
            }
            Self::Late(millis) => {
                tokio::spawn(async move {
                    sleep(Duration::from_millis(millis)).await;
                    let _ = deliver(0).await;
                });
                pending().await
            }
            Self::Truncated => truncated(is_watch, deliver(0).await?).await,
            Self::Nonsense => {
                deliver(0).await?;
                answer(200, "<html><body>It works!</body></html>".to_owned())
            }
            Self::Status => {
                deliver(0).await?;
                answer(200, status("Success", 200, "OK").to_string())
            }
            Self::Slow(before, after) => {
                sleep(Duration::from_millis(before)).await;
                let answer = deliver(0).await;
                sleep(Duration::from_millis(after)).await;
                answer
            }
            Self::Gone => {
                let event = json!({"type": "ERROR", "object": status("Failure", 410, "Expired")});
                answer(200, format!("{event}\n"))
            }
            Self::Stale(versions) => deliver(versions).await,
            Self::DiesBefore => {
                kill();
                pending().await
            }
            Self::DiesAfter => {
                let _ = deliver(0).await;
                kill();
                pending().await
            }
        }
    }
}

/// Returns the first half of a response.
async fn truncated(is_watch: bool, whole: ApiResponse) -> Result<ApiResponse, CallError> {
    if is_watch {
        // A watch that ends within a line is handled like any other end of a watch.
        return answer(200, "{\"type\":\"MODIFIED\",\"obj".to_owned());
    }
    let (parts, body) = whole.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let half = bytes.slice(..bytes.len() / 2);
    Ok(Response::from_parts(parts, body_from(half)))
}

fn reset() -> CallError {
    Box::new(io::Error::new(
        io::ErrorKind::ConnectionReset,
        "injected: connection reset",
    ))
}

fn status(status: &str, code: u16, reason: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": status,
        "code": code, "reason": reason, "message": format!("injected: {reason}"),
    })
}

fn refusal(code: u16, reason: &str) -> Result<ApiResponse, CallError> {
    answer(code, status("Failure", code, reason).to_string())
}

fn answer(code: u16, body: String) -> Result<ApiResponse, CallError> {
    let mut answer = Response::new(body_from(body.into()));
    *answer.status_mut() = http::StatusCode::from_u16(code)?;
    Ok(answer)
}

fn body_from(bytes: Bytes) -> ResponseBody {
    Full::new(bytes).map_err(CallError::from).boxed_unsync()
}

/// The place where a fault is injected: the `number`-th call (from 0) with this verb and resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallSite {
    /// The verb and resource, such as `create pods`.
    pub calls: String,
    /// The index of the call among them, from 0.
    pub number: u64,
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.calls, self.number)
    }
}

/// Numbers the calls of a run.
#[derive(Clone, Debug, Default)]
pub struct CallCounter(BTreeMap<String, u64>);

impl CallCounter {
    /// Returns the site of the next call.
    pub fn next_site(&mut self, call: &Call) -> CallSite {
        let calls = call.verb_and_resource();
        let count = self.0.entry(calls.clone()).or_default();
        *count += 1;
        CallSite {
            number: *count - 1,
            calls,
        }
    }
}

/// The rates at which faults are injected into calls.
#[derive(Clone, Debug, Default)]
pub struct CallFaultRates {
    /// The number of calls that get one of `faults`, per thousand.
    pub fault_rate: u64,
    /// The faults to choose from.
    pub faults: Vec<CallFault>,
    /// The number of slow calls, per thousand.
    pub slow_rate: u64,
    /// The number of calls at which the operator dies, per thousand.
    pub death_rate: u64,
}

impl CallFaultRates {
    /// Returns the fault of a call, if it has one. The fault depends only on the seed and the call site, so removing
    /// one fault from a run leaves the others in place.
    pub fn draw(&self, seed: u64, site: &CallSite) -> Option<CallFault> {
        let mut random = Random::about(seed, &site.calls, site.number);
        let fault = if random.chance(self.death_rate) {
            let death = [CallFault::DiesBefore, CallFault::DiesAfter];
            Some(random.pick(&death).clone())
        } else if !self.faults.is_empty() && random.chance(self.fault_rate) {
            Some(random.pick(&self.faults).clone())
        } else if random.chance(self.slow_rate) {
            let longest = *random.pick(&[2, 50, 1_000, 10_000]);
            Some(CallFault::Slow(
                random.between(0, longest),
                random.between(0, longest),
            ))
        } else {
            None
        };
        fault.filter(|fault| fault.applies_to(&site.calls))
    }

    /// Returns true if every call gets a prompt and correct response. Operators may still die at calls.
    pub fn keep_answers(&self) -> bool {
        (self.fault_rate == 0 || self.faults.is_empty()) && self.slow_rate == 0
    }
}
