//! Why a list or a watch ended.

use std::time::Duration;

use kube::core::Status;

use crate::call::CallError;

/// Why a list or a watch ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchError {
    /// A page of the list, or the start of the watch, failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// An event could not be read.
    #[error(transparent)]
    Stream(kube::Error),
    /// The server sent an error as an event.
    #[error("{}", .0.message)]
    Refused(Box<Status>),
    /// The server sent nothing for the silence time-out, not even the end.
    #[error("no event and no end for too long")]
    Silent,
    /// The watch ended as soon as it began.
    #[error("it ended at once")]
    EndedAtOnce,
    /// The list has no version to watch from.
    #[error("the list has no version")]
    ListWithoutVersion,
    /// An event has a lower version than the one before: the server was set back to a backup.
    #[error("versions went back")]
    VersionWentBack,
    /// Watches end in time, but none has sent anything.
    #[error("no events for too long, not even bookmarks")]
    NoEvents,
}

impl WatchError {
    /// How long the server asks not to be called, if it does.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Call(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Whether the server has no such resource.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Call(error) if error.code() == Some(404))
    }

    /// Whether only a new list helps: the version is too old, or an event cannot be read.
    pub(super) fn needs_list(&self) -> bool {
        match self {
            Self::Call(error) => error.code() == Some(410),
            Self::Stream(kube::Error::Api(status)) => matches!(status.code, 0 | 410),
            Self::Refused(status) => status.code == 410,
            // A server that was set back to a backup does not know the versions that came after it.
            Self::Stream(kube::Error::SerdeError(_)) | Self::VersionWentBack | Self::NoEvents => true,
            _ => false,
        }
    }
}
