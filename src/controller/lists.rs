//! In which order lists, the watch and answers to own calls say what they say.

use std::collections::BTreeSet;

use kube_follow::Version;

/// An object's namespace and name.
pub(super) type ObjectName = (String, String);

/// How many lists had begun when a call was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent(u64);

/// The lists of the objects of one kind, and how far the watch behind them has come.
///
/// Versions alone do not tell which of two states is the newer one: a server that was restored from a backup
/// counts from there again. A list is newer than all that was known before it began.
#[derive(Default)]
pub(super) struct Lists {
    begun: u64,
    /// The version up to which the watch has told everything.
    seen: Version,
    open: Option<List>,
}

/// A list under way.
struct List {
    /// What was held before, as long as the list has not named it.
    unlisted: BTreeSet<ObjectName>,
    /// What the server has answered calls with since the list began. Whether these answers or the list
    /// are newer shows when the list's version is known.
    answered: BTreeSet<ObjectName>,
    /// What the list names now was so at this version.
    version: Version,
}

impl Lists {
    /// A list begins, while this is held.
    pub(super) fn begin(&mut self, held: impl Iterator<Item = ObjectName>) {
        self.begun += 1;
        self.open = Some(List {
            unlisted: held.collect(),
            answered: BTreeSet::new(),
            version: Version::default(),
        });
    }

    /// A page of the list has come, of this version.
    pub(super) fn page(&mut self, version: Version) {
        if let Some(list) = &mut self.open {
            list.version = version;
        }
    }

    /// The list names an object at version `named`, of which version `held` is held. Whether what is held is newer: an
    /// answer that came since the list began, and was given after the list was made.
    pub(super) fn name(&mut self, name: &ObjectName, named: Version, held: Option<Version>) -> bool {
        let Some(list) = &mut self.open else {
            return false;
        };
        list.unlisted.remove(name);
        list.answered.remove(name) && held > Some(list.version.max(named))
    }

    /// The list is complete. `held` tells the version of what is held. Returns what is gone: what the list did not
    /// name, unless an answer is newer.
    pub(super) fn end(&mut self, held: impl Fn(&ObjectName) -> Option<Version>) -> BTreeSet<ObjectName> {
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

    /// The watch has told everything up to this version.
    pub(super) fn passed(&mut self, version: Version) {
        self.seen = self.seen.max(version);
    }

    /// To be told with the answer to a call that is sent now.
    pub(super) fn sent(&self) -> Sent {
        Sent(self.begun)
    }

    /// Whether a list has begun since a call was sent. If so, nothing tells whether its answer is newer: the list or the
    /// watch tells of what the call did, or neither does because the server was set back to a backup.
    pub(super) fn overtook(&self, sent: Sent) -> bool {
        self.begun != sent.0
    }

    /// The server has answered a call with an object at this version. Whether that is news: the watch has told of
    /// all that it is past, and what it has not told by then the server does not have any more.
    pub(super) fn answer(&mut self, name: &ObjectName, version: Version, sent: Sent) -> bool {
        if self.overtook(sent) {
            return false;
        }
        let Some(list) = &mut self.open else {
            // At the same version it is what the watch has told, or versions are no numbers.
            return version >= self.seen;
        };
        list.answered.insert(name.clone());
        true
    }
}
