//! The directory in which a cluster outlives its process: `cluster.lock`, `objects.sqlite` and `output`.

mod objects;

#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use objects::Objects;

/// The permission bits of group and others.
const OTHERS: u32 = 0o077;

/// The longest wait for the lock of a process that has just ended.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason that a directory cannot keep a cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// Another process has the directory.
    #[error("{}: another local cluster uses it; end that one, or choose another directory", .0.display())]
    InUse(PathBuf),
    /// The directory contains something else.
    #[error("{}: not empty, and not made by a local cluster; choose another directory", .0.display())]
    Foreign(PathBuf),
    /// The directory contains secrets that other users of the machine can read.
    #[error("{}: must be closed to other users (has mode {mode:03o}); run: chmod 700 {}", path.display(), path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A later version of the program has written the directory.
    #[error(
        "{}: written by a newer version of this program (format {found}, must be at most {known}); use that version, or choose another directory", path.display()
    )]
    Newer {
        /// The file with the format.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this version reads.
        known: u32,
    },
    /// The content of a file is not what was written.
    #[error(
        "{}: damaged: {problem}; nothing was changed: restore the directory from a copy, or move it away to begin with an empty cluster", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// A description of the damage.
        problem: String,
    },
}

impl DataError {
    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            error,
        }
    }

    /// Returns the error of a database whose entries cannot be objects.
    pub(crate) fn of_objects(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::damaged(path, error.to_string()),
            _ => Self::io(path, error),
        }
    }

    fn damaged(path: &Path, problem: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }
}

/// Locks a file, within a second: the kernel takes a moment to end a process that was killed, and a process that is being
/// started has the files of its parent until its program runs.
fn lock_soon(file: &File) -> Result<(), TryLockError> {
    let end = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(LOCK_TIMEOUT / 50),
            result => return result,
        }
    }
}

/// A directory that keeps the objects of a cluster and the output of its pods. No other process uses it.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    /// Locked while this value exists. The kernel releases the lock when the process ends, however it ends.
    lock: File,
}

impl DataDirectory {
    /// Opens the directory. Creates it, with its parents, if it does not exist.
    ///
    /// # Errors
    /// Another process or something else has the directory, other users can read it, or it cannot be written.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let failed = |error| DataError::io(path, error);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(failed)?;
        let path = fs::canonicalize(path).map_err(failed)?;
        let failed = |error| DataError::io(&path, error);
        let is_own = path.join("cluster.lock").exists();
        let mode = fs::metadata(&path).map_err(failed)?.mode() & 0o777;
        if !is_own {
            if fs::read_dir(&path).map_err(failed)?.next().is_some() {
                return Err(DataError::Foreign(path));
            }
            fs::set_permissions(&path, Permissions::from_mode(0o700)).map_err(failed)?;
        } else if mode & OTHERS != 0 {
            return Err(DataError::Open { path, mode });
        }
        let lock_path = path.join("cluster.lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options
            .open(&lock_path)
            .map_err(|error| DataError::io(&lock_path, error))?;
        match lock_soon(&lock) {
            Ok(()) => Ok(Self { path, lock }),
            Err(TryLockError::WouldBlock) => Err(DataError::InUse(path)),
            Err(TryLockError::Error(error)) => Err(DataError::io(&lock_path, error)),
        }
    }

    /// Returns the directory for the stories of finished jobs.
    pub fn history(&self) -> PathBuf {
        self.path.join("history")
    }

    /// Returns the directory for the output of pods.
    pub(crate) fn output(&self) -> PathBuf {
        self.path.join("output")
    }

    /// Returns the storage of the objects, which keeps the directory locked.
    pub(crate) fn objects(self) -> Result<Objects, DataError> {
        Objects::open(&self.path.join("objects.sqlite"), self.lock)
    }
}
