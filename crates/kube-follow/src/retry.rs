//! When to try again.

use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use kube::core::Status;
use tokio::time::timeout;

/// The first wait after an error, doubled with each further one.
const FIRST: Duration = Duration::from_millis(500);

/// The longest wait.
const LONGEST: Duration = Duration::from_secs(300);

/// The wait after so many errors in a row, spread by up to a quarter so that many that failed
/// together do not come back together. The spread follows from `what`: the same run is the same
/// again.
pub fn backoff(errors: u32, what: impl Hash) -> Duration {
    let wait = FIRST
        .saturating_mul(1 << errors.saturating_sub(1).min(16))
        .min(LONGEST);
    let mut hasher = DefaultHasher::new();
    (what, errors).hash(&mut hasher);
    let quarters = u32::try_from(hasher.finish() % 256).unwrap_or(0);
    wait + wait / 4 * quarters / 256
}

/// A wait for the logs: of a larger type it would be text in JSON.
pub fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

/// Why a call gave no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The server refused, or could not be reached.
    #[error("{0}")]
    Api(#[from] kube::Error),
    /// No answer in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
}

impl CallError {
    /// The server's status code, if it answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }

    /// Whether an object could not be created since one has its name. Other conflicts (of a quota that
    /// many count against) have the same code.
    pub fn is_already_there(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.reason == "AlreadyExists")
    }

    /// How long the server asks to be left alone, if it does; not beyond the longest wait of all.
    pub fn retry_after(&self) -> Option<Duration> {
        let Self::Api(kube::Error::Api(status)) = self else {
            return None;
        };
        let seconds = status.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()).min(LONGEST))
    }

    /// Whether there is no object of this name. A 404 that names no object speaks of the path: its kind is
    /// not served just now, or something between here and the server does not know the way.
    pub fn says_gone(&self, name: &str) -> bool {
        let names = |status: &Status| status.details.as_ref().is_some_and(|d| d.name == name);
        matches!(self, Self::Api(kube::Error::Api(status)) if status.code == 404 && names(status))
    }

    /// What the server said, without the client's wrapping.
    pub fn message(&self) -> String {
        match self {
            Self::Api(kube::Error::Api(status)) if !status.message.is_empty() => status.message.clone(),
            other => other.to_string(),
        }
    }
}

/// How long one API call may take. What became of one that takes longer is not known.
#[derive(Clone, Copy, Debug)]
pub struct CallTimeout(pub Duration);

impl Default for CallTimeout {
    fn default() -> Self {
        Self(Duration::from_secs(30))
    }
}

impl CallTimeout {
    /// Awaits an API call, but not for ever.
    pub async fn call<T>(self, request: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
        match timeout(self.0, request).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(CallError::Timeout(self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let base = |errors| backoff(errors, "job").as_secs_f64();
        for errors in 1..9 {
            let exact = 0.5 * f64::from(1 << (errors - 1));
            assert!(
                (exact..=exact * 1.25).contains(&base(errors)),
                "{errors}: {}",
                base(errors)
            );
        }
        assert!((300.0..=375.0).contains(&base(u32::MAX)));
    }

    #[test]
    fn jobs_that_fail_together_do_not_come_back_together() {
        let waits: std::collections::BTreeSet<_> = (0..100).map(|job| backoff(1, job)).collect();
        assert!(waits.len() > 50, "{waits:?}");
        assert!(waits.last() > Some(&Duration::from_millis(600)), "{waits:?}");
        assert_eq!(millis(Duration::from_millis(1_234)), 1_234);
    }

    #[test]
    fn a_refusal_without_words_is_told_in_the_clients() {
        let said = |message: &str| {
            let status = Status {
                message: message.to_owned(),
                reason: "Gone".to_owned(),
                ..Status::default()
            };
            CallError::from(kube::Error::Api(Box::new(status))).message()
        };
        assert_eq!(said("no"), "no");
        assert!(said("").contains("Gone"), "{}", said(""));
    }

    #[test]
    fn a_server_is_left_alone_as_long_as_it_asks_for_but_not_for_ever() {
        let error = |details: serde_json::Value| {
            let status = serde_json::json!({
                "status": "Failure", "message": "", "reason": "", "code": 429, "details": details,
            });
            CallError::Api(kube::Error::Api(serde_json::from_value(status).unwrap()))
        };
        let after = |seconds| error(serde_json::json!({"retryAfterSeconds": seconds})).retry_after();
        assert_eq!(after(3), Some(Duration::from_secs(3)));
        assert_eq!(after(0), None);
        assert_eq!(after(1_000_000), Some(LONGEST));
        assert_eq!(error(serde_json::Value::Null).retry_after(), None);
    }
}
