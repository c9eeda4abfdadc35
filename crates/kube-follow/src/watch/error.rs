//! The reasons for the end of a list or a watch.

use std::time::Duration;

use kube::core::Status;

use crate::call::{CallError, message};

/// The reason for the end of a list or a watch.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchError {
    /// A page of the list, or the start of the watch, failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// An event could not be read.
    #[error("{}", message(.0))]
    Stream(kube::Error),
    /// The server sent an error as an event.
    #[error("{}", .0.message)]
    Rejected(Box<Status>),
    /// The server sent nothing for the silence timeout, not even the end of the stream.
    #[error("no event before the silence timeout")]
    Silent,
    /// The watch ended as soon as it began.
    #[error("the watch ended as soon as it began")]
    EndedAtOnce,
    /// The list has no version to watch from.
    #[error("the list has no version")]
    ListWithoutVersion,
    /// An event has a lower version than the one before, because the server was restored from a backup.
    #[error("a version is lower than the one before")]
    VersionWentBack,
    /// Watches end at their timeout, but none has sent an event.
    #[error("no events and no bookmarks within the silence timeout")]
    NoEvents,
}

impl WatchError {
    /// Returns the pause that the server requests before the next call, if any.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Call(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Returns true if the call waited at a closed gate, or was lost with the connection of a server that is away.
    pub(super) fn is_away(&self) -> bool {
        matches!(self, Self::Call(CallError::Away))
    }

    /// Returns true if the connection of a watch was lost.
    pub(super) fn is_lost_connection(&self) -> bool {
        matches!(self, Self::Stream(kube::Error::ReadEvents(_)))
    }

    /// Returns true if the server does not serve the resource.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Call(error) if error.code() == Some(404))
    }

    /// Returns true if the client lacks the permission to read the resource.
    pub(super) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Call(error) if error.code() == Some(403))
    }

    /// Returns true if only a new list helps: the version is too old, or an event cannot be read.
    pub(super) fn needs_list(&self) -> bool {
        match self {
            Self::Call(error) => error.code() == Some(410),
            Self::Stream(kube::Error::Api(status)) => matches!(status.code, 0 | 410),
            Self::Rejected(status) => status.code == 410,
            // A server that was restored from a backup has no record of the versions after that backup.
            Self::Stream(kube::Error::SerdeError(_)) | Self::VersionWentBack | Self::NoEvents => true,
            _ => false,
        }
    }
}
