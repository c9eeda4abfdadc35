//! The objects of a cluster in a SQLite database: a table of keys, values and checksums.
//!
//! A change is written to the operating system before it is answered, so it survives the end of this process, however
//! it ends. It is written to the disk itself only when SQLite moves its write-ahead log (a file of some MB) into the
//! database: a power failure may take the changes since then away, the newest first, and damages nothing.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use kube_memory::Storage;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};

use super::DataError;

/// The format of the database, in its `user_version`.
const FORMAT: u32 = 1;

/// The size to which the write-ahead log is cut after it was moved into the database.
const MAX_LOG_BYTES: u32 = 8 * 1024 * 1024;

/// The objects of a cluster.
pub(crate) struct Objects {
    path: PathBuf,
    connection: Connection,
    loaded: Vec<(String, Vec<u8>)>,
    /// Dropped after the connection is closed.
    _lock: File,
}

impl Objects {
    /// Opens the database, or creates it, and reads all objects. A damaged database is not changed.
    pub(super) fn open(path: &Path, lock: File) -> Result<Self, DataError> {
        let failed = |error| explain(path, &error);
        // SQLite would let others read it.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.open(path).map_err(|error| DataError::io(path, error))?;
        let connection = Connection::open(path).map_err(failed)?;
        // Closing writes the log into the database, which must not happen to a damaged one.
        let no_write = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        connection.set_db_config(no_write, true).map_err(failed)?;
        let set = |name: &str, value: &str| connection.pragma_update(None, name, value).map_err(failed);
        set("locking_mode", "EXCLUSIVE")?;
        let found: u32 = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(failed)?;
        if found > FORMAT {
            return Err(DataError::Newer {
                path: path.to_owned(),
                found,
                known: FORMAT,
            });
        }
        let loaded = if found == 0 {
            set("auto_vacuum", "INCREMENTAL")?;
            Vec::new()
        } else {
            read(path, &connection)?
        };
        set("journal_mode", "WAL")?;
        set("synchronous", "NORMAL")?;
        set("journal_size_limit", &MAX_LOG_BYTES.to_string())?;
        if found == 0 {
            let create = format!(
                "BEGIN; CREATE TABLE entry (key TEXT PRIMARY KEY, value BLOB NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID; \
                 PRAGMA user_version = {FORMAT}; COMMIT"
            );
            connection.execute_batch(&create).map_err(failed)?;
        }
        // Gives the room of deleted objects back. A full disk only delays that.
        let _ = connection.pragma_query(None, "incremental_vacuum", |_| Ok(()));
        connection.set_db_config(no_write, false).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            connection,
            loaded,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn store(&mut self, changed: &[(String, Option<Vec<u8>>)]) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        for (key, value) in changed {
            match value {
                Some(value) => transaction
                    .prepare_cached("INSERT OR REPLACE INTO entry VALUES (?, ?, ?)")?
                    .execute((key, value, checksum(key, value)))?,
                None => transaction
                    .prepare_cached("DELETE FROM entry WHERE key = ?")?
                    .execute([key])?,
            };
        }
        transaction.commit()
    }
}

impl Storage for Objects {
    fn load(&mut self) -> io::Result<Vec<(String, Vec<u8>)>> {
        Ok(std::mem::take(&mut self.loaded))
    }

    fn commit(&mut self, changed: &[(String, Option<Vec<u8>>)]) -> io::Result<()> {
        self.store(changed).map_err(|error| {
            let path = self.path.display();
            let cause = match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => "No space left on device".to_owned(),
                _ => error.to_string(),
            };
            io::Error::other(format!(
                "{path}: {cause}; free some space on this disk, and repeat the request"
            ))
        })
    }
}

/// Reads all entries of a database, and checks them.
fn read(path: &Path, connection: &Connection) -> Result<Vec<(String, Vec<u8>)>, DataError> {
    let failed = |error| explain(path, &error);
    let check = connection.pragma_query_value(None, "quick_check", |row| row.get::<_, String>(0));
    let check = check.map_err(failed)?;
    if check != "ok" {
        return Err(DataError::damaged(path, check));
    }
    let mut statement = connection
        .prepare("SELECT key, value, sum FROM entry")
        .map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let (key, value): (String, Vec<u8>) = (row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
        if row.get(2).ok() != Some(checksum(&key, &value)) {
            return Err(DataError::damaged(
                path,
                format!("the checksum of {key:?} is wrong"),
            ));
        }
        entries.push((key, value));
    }
    Ok(entries)
}

/// Returns a checksum of an entry: FNV-1a.
fn checksum(key: &str, value: &[u8]) -> i64 {
    let bytes = key.bytes().chain([0]).chain(value.iter().copied());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash.cast_signed()
}

fn explain(path: &Path, error: &rusqlite::Error) -> DataError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            DataError::damaged(path, error.to_string())
        }
        _ if matches!(error, rusqlite::Error::SqliteFailure(..)) => {
            DataError::io(path, io::Error::other(error.to_string()))
        }
        _ => DataError::damaged(path, error.to_string()),
    }
}
