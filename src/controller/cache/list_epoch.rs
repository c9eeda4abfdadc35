//! Which of two states of an object is newer: what a list, the watch, or an answer to an own call says.
//!
//! Versions alone do not tell: a server that was restored from a backup counts from there again. A list is newer than
//! all that was known before it began.

use std::collections::BTreeSet;

use kube_follow::Version;

/// An object's namespace and name.
pub(crate) type ObjectName = (String, String);

/// The list epoch of a call: how many lists had begun when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListEpoch(u64);

/// The lists of one resource, and how far the watch after them has come.
#[derive(Default)]
pub(crate) struct ListTracker {
    begun: u64,
    /// The version up to which the watch has sent everything.
    seen: Version,
    open: Option<List>,
}

/// A list under way.
struct List {
    /// What was cached before, as long as the list has not named it.
    unlisted: BTreeSet<ObjectName>,
    /// Objects in answers to calls since the list began. Which are newer, these or those of the list, shows when the
    /// list's version is known.
    answered: BTreeSet<ObjectName>,
    /// The version at which the objects of the current page were read.
    version: Version,
}

impl ListTracker {
    /// A list begins, while these are cached.
    pub(crate) fn list_started(&mut self, held: impl Iterator<Item = ObjectName>) {
        self.begun += 1;
        self.open = Some(List {
            unlisted: held.collect(),
            answered: BTreeSet::new(),
            version: Version::default(),
        });
    }

    /// A page of the list has come, of this version.
    pub(crate) fn list_page(&mut self, version: Version) {
        if let Some(list) = &mut self.open {
            list.version = version;
        }
    }

    /// The list names an object at version `named`, while version `held` is cached. Whether the list is stale for it: an
    /// answer that came since the list began was given after the list was read.
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

    /// The list is complete. `held` gives the cached version of an object. Returns what is gone: what the list did not
    /// name, unless an answer is newer.
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

    /// The watch has sent everything up to this version.
    pub(crate) fn bookmark(&mut self, version: Version) {
        self.seen = self.seen.max(version);
    }

    /// The epoch of a call that is sent now.
    pub(crate) fn epoch(&self) -> ListEpoch {
        ListEpoch(self.begun)
    }

    /// Whether a list has begun since a call was sent. If so, its answer may be older or newer: the list or the
    /// watch shows what the call did, or neither does because the server was restored from a backup.
    pub(crate) fn has_new_list_since(&self, epoch: ListEpoch) -> bool {
        self.begun != epoch.0
    }

    /// The server has answered a call with an object at this version. Whether that is news: the watch has sent all that it
    /// is past, and what it has not sent by then is not there any more.
    pub(crate) fn accepts_answer(&mut self, name: &ObjectName, version: Version, epoch: ListEpoch) -> bool {
        if self.has_new_list_since(epoch) {
            return false;
        }
        let Some(list) = &mut self.open else {
            // At the same version it is what the watch has sent, or versions are no numbers.
            return version >= self.seen;
        };
        list.answered.insert(name.clone());
        true
    }
}
