//! Stores the changes of each request before anything shows them.

use std::{io, sync::Arc};

use crate::kinds::{Family, Registry, definition};
use crate::request::failure::{ApiResult, Failure};
use crate::server::Server;
use crate::storage::{COUNTERS, Counters, Storage, decode, encode, entries, key, resource_of};
use crate::store::object::Object;

impl Server {
    /// Takes the objects of a storage in the place of all objects, or fills the storage with the present objects if it
    /// is empty. Later changes are stored there. Returns the number of entries whose kind is not served.
    pub(crate) fn attach(&mut self, mut storage: Box<dyn Storage>) -> io::Result<usize> {
        let stored = storage.load()?;
        let unserved = if stored.is_empty() {
            storage.commit(&self.all_entries()?)?;
            0
        } else {
            self.take_stored(stored)?
        };
        self.storage = Some(storage);
        self.store.defer_changes();
        Ok(unserved)
    }

    pub(crate) fn all_entries(&self) -> io::Result<Vec<(String, Option<Vec<u8>>)>> {
        let mut all = vec![self.counters_entry()?];
        for target in self.store.registry.all() {
            for object in self.store.iter(target.id, None, None) {
                all.push((key(&target, object), Some(encode(object)?)));
            }
        }
        Ok(all)
    }

    fn counters_entry(&self) -> io::Result<(String, Option<Vec<u8>>)> {
        let counters = Counters {
            version: self.store.version(),
            uids: self.uids,
            suffixes: self.suffixes,
            addresses: self.addresses,
        };
        Ok((COUNTERS.to_owned(), Some(serde_json::to_vec(&counters)?)))
    }

    fn take_stored(&mut self, stored: Vec<(String, Vec<u8>)>) -> io::Result<usize> {
        let damaged = |problem: &str| io::Error::new(io::ErrorKind::InvalidData, problem);
        let counters = stored.iter().find(|(key, _)| key == COUNTERS);
        let (_, counters) = counters.ok_or_else(|| damaged("the entry of the counters is missing"))?;
        let counters: Counters = serde_json::from_slice(counters)
            .map_err(|error| damaged(&format!("the entry of the counters is damaged: {error}")))?;
        let is_definition = |key: &str| resource_of(key).starts_with("customresourcedefinitions.");
        let (definitions, others): (Vec<_>, Vec<_>) = stored
            .into_iter()
            .filter(|(key, _)| key != COUNTERS)
            .partition(|(key, _)| is_definition(key));
        self.store.clear();
        let mut unserved = 0;
        // Definitions come first, because they are needed to read the objects of their kinds.
        for (key, value) in definitions.into_iter().chain(others) {
            let Some(target) = self.store.registry.by_plural(resource_of(&key)) else {
                unserved += 1;
                continue;
            };
            let object = Arc::new(decode(&target, &key, &value)?);
            if object.resource_version() > counters.version {
                return Err(damaged(&format!(
                    "the entry {key:?} is newer than the version {} of the counters",
                    counters.version
                )));
            }
            self.store.restore_object(&target, object.clone());
            if target.kind.family == Family::Definition {
                self.serve_definition(&object);
            }
        }
        self.store.restart_at(counters.version);
        (self.uids, self.suffixes, self.addresses) = (counters.uids, counters.suffixes, counters.addresses);
        Ok(unserved)
    }

    fn serve_definition(&mut self, definition: &Object) {
        if let Some(kind) = definition::parse_kind(definition.value()) {
            self.install(kind);
        }
    }

    /// Returns the kinds that are restored if the next changes cannot be stored.
    pub(crate) fn kinds_to_restore(&self) -> Option<Arc<Registry>> {
        self.storage.is_some().then(|| Arc::clone(&self.store.registry))
    }

    /// Stores the changes since the last call, then shows them to watches. Reverts them if they cannot be stored.
    pub(crate) fn commit(&mut self, kinds: Option<Arc<Registry>>) -> ApiResult<()> {
        let changes = self.store.take_deferred();
        if changes.is_empty() {
            return Ok(());
        }
        let pairs = changes.iter().map(|(target, change)| (target, &**change));
        let stored = entries(pairs).and_then(|mut changed| {
            changed.push(self.counters_entry()?);
            self.storage
                .as_mut()
                .map_or(Ok(()), |storage| storage.commit(&changed))
        });
        match stored {
            Ok(()) => {
                for (target, change) in changes {
                    self.store.publish(&target, change);
                }
                Ok(())
            }
            Err(error) => {
                self.store.revert(changes);
                if let Some(kinds) = kinds {
                    self.store.registry = kinds;
                }
                Err(Failure::not_stored(&error))
            }
        }
    }
}
