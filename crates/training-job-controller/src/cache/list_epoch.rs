//! Decides which of two states of an object is newer: one of a list, the watch, or a response to our own call.
//!
//! Versions alone cannot decide this, because a server that was restored from a backup counts again from an earlier
//! version. A list is newer than everything cached before it began.

use std::collections::BTreeSet;

use kube_follow::Version;

/// An object's namespace and name.
pub(crate) type ObjectName = (String, String);

/// The list epoch of a call: the number of lists begun when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListEpoch(u64);

/// The current list of one resource, and the progress of the watch that follows.
#[derive(Default)]
pub(crate) struct ListTracker {
    begun: u64,
    /// The version up to which the watch has sent everything.
    seen: Version,
    open: Option<List>,
}

struct List {
    /// Cached objects that the list has not named yet.
    unlisted: BTreeSet<ObjectName>,
    /// Objects in responses to calls since the list began. The version of the list decides whether they or the listed
    /// ones are newer.
    answered: BTreeSet<ObjectName>,
    /// The version at which the objects of the current page were read.
    version: Version,
}

impl ListTracker {
    /// Starts a list. `held` are the cached objects.
    pub(crate) fn list_started(&mut self, held: impl Iterator<Item = ObjectName>) {
        self.begun += 1;
        self.open = Some(List {
            unlisted: held.collect(),
            answered: BTreeSet::new(),
            version: Version::default(),
        });
    }

    /// Records the version of the next page of the list.
    pub(crate) fn list_page(&mut self, version: Version) {
        if let Some(list) = &mut self.open {
            list.version = version;
        }
    }

    /// Records that the list names an object at version `named` while version `held` is cached. Returns true if the
    /// list is stale for this object, because a response since the list began has a later state.
    pub(crate) fn is_stale_in_list(
        &mut self,
        name: &ObjectName,
        named: Version,
        held: Option<Version>,
    ) -> bool {
        let Some(list) = &mut self.open else {
            return false;
        };
        list.unlisted.remove(name);
        list.answered.remove(name) && held > Some(list.version.max(named))
    }

    /// Ends a list. `held` returns the cached version of an object. Returns the objects that are gone: those that the
    /// list did not name, unless a response is newer.
    pub(crate) fn list_done(
        &mut self,
        held: impl Fn(&ObjectName) -> Option<Version>,
    ) -> BTreeSet<ObjectName> {
        let Some(list) = self.open.take() else {
            return BTreeSet::new();
        };
        self.seen = list.version;
        let mut gone = list.unlisted;
        for name in list.answered {
            if held(&name) > Some(list.version) {
                gone.remove(&name);
            } else {
                gone.insert(name);
            }
        }
        gone
    }

    /// Records that the watch has sent everything up to this version.
    pub(crate) fn bookmark(&mut self, version: Version) {
        self.seen = self.seen.max(version);
    }

    /// Returns the epoch of a call that is sent now.
    pub(crate) fn epoch(&self) -> ListEpoch {
        ListEpoch(self.begun)
    }

    /// Returns true if a list has begun since a call was sent. Its response then cannot be ordered against the list.
    /// The list or the watch shows the effect of the call, unless the server was restored from a backup.
    pub(crate) fn has_new_list_since(&self, epoch: ListEpoch) -> bool {
        self.begun != epoch.0
    }

    /// Returns true if a response with an object at this version is newer than the cached state. The watch has
    /// already sent everything up to its own version, so an older object that it did not send is gone.
    pub(crate) fn accepts_answer(&mut self, name: &ObjectName, version: Version, epoch: ListEpoch) -> bool {
        if self.has_new_list_since(epoch) {
            return false;
        }
        let Some(list) = &mut self.open else {
            // At an equal version, the watch sent the same state, or versions are not numbers.
            return version >= self.seen;
        };
        list.answered.insert(name.clone());
        true
    }
}
