//! The values of the labels that name a reason.

/// The reason of a failed reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorReason {
    /// The object changed meanwhile, or the cache is outdated.
    Conflict,
    /// The server denied the call, for example because of a missing permission or a quota.
    Denied,
    /// The server rejected the object.
    Invalid,
    /// An object of another owner has the name.
    NameTaken,
    /// The server did not respond, or could not carry out the call.
    NoResponse,
    /// The server stored a different object than was sent.
    NotStored,
    /// A hook of the kind panicked.
    Panic,
}

impl ErrorReason {
    pub(super) const ALL: [Self; 7] = [
        Self::Conflict,
        Self::Denied,
        Self::Invalid,
        Self::NameTaken,
        Self::NoResponse,
        Self::NotStored,
        Self::Panic,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "Conflict",
            Self::Denied => "Denied",
            Self::Invalid => "Invalid",
            Self::NameTaken => "NameTaken",
            Self::NoResponse => "NoResponse",
            Self::NotStored => "NotStored",
            Self::Panic => "Panic",
        }
    }
}

/// The cause for which the story of a finished job was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostStory {
    /// Too many jobs finished at once. The operator tries again unless the job is deleted before.
    Queue,
    /// The file could not be written.
    Write,
}

impl LostStory {
    pub(super) const ALL: [Self; 2] = [Self::Queue, Self::Write];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "Queue",
            Self::Write => "Write",
        }
    }
}

/// The cause for which an event was not stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DropCause {
    /// The job has too many events.
    RateLimit,
    /// Too many events are queued.
    Queue,
    /// The call failed.
    Call,
    /// The operator stopped before the event was sent.
    Stop,
}

impl DropCause {
    pub(super) const ALL: [Self; 4] = [Self::RateLimit, Self::Queue, Self::Call, Self::Stop];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "RateLimit",
            Self::Queue => "Queue",
            Self::Call => "Call",
            Self::Stop => "Stop",
        }
    }
}
