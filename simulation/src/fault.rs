//! What may become of a call.

use std::fmt;

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is refused with this code and reason.
    Refused(u16, &'static str),
    /// It takes effect, and then the answer is this.
    Garbled(u16, &'static str),
    /// It is refused with 429, and `Retry-After` says this.
    Throttled(&'static str),
    /// It is refused with 429, and the status in the answer asks for so many seconds.
    Busy(u32),
    /// The connection breaks before it arrives.
    Reset,
    /// It takes effect, and the connection breaks before the answer.
    ResetAfter,
    /// It never arrives, and no answer comes.
    Lost,
    /// It takes effect, and no answer comes.
    Unanswered,
    /// It takes effect so many milliseconds later, whoever still waits for it, and no answer comes.
    Late(u64),
    /// It takes effect, and half of the answer comes.
    Truncated,
    /// It takes effect, and the answer is a page for people.
    Nonsense,
    /// It takes effect, and the answer is 200 with a Status in it.
    Status,
    /// It waits before it takes effect, and its answer waits: so many milliseconds.
    Slow(u64, u64),
    /// A watch: 410 comes as its first event.
    Gone,
    /// A list: it shows what was stored so many versions ago.
    Stale(u64),
    /// The operator dies as it calls.
    DiesBefore,
    /// The operator dies before it has the answer.
    DiesAfter,
}

impl Fault {
    /// The word under which it is counted.
    pub fn kind(&self) -> String {
        match self {
            Self::Refused(code, _) => format!("refused {code}"),
            Self::Garbled(code, _) => format!("applied, then {code}"),
            other => {
                let text = format!("{other:?}");
                text.split('(').next().unwrap_or_default().to_lowercase()
            }
        }
    }
}

/// Where a fault is put: the `number`-th call (from 0) of its kind, such as `create pods`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The verb and resource.
    pub calls: String,
    /// Which of them.
    pub number: u64,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.calls, self.number)
    }
}
