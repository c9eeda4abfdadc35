//! The controllers of every cluster: the garbage collector of dependents, and the clean-up of namespaces and
//! definitions that are being deleted. One step handles one object.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::{Family, Target, definition};
use crate::object::json;
use crate::server::Server;
use crate::store::{ObjectKey, object::Object};
use crate::verbs::delete::{DeleteOptions, FOREGROUND, ORPHAN};

/// The owners of an object, by their state.
#[derive(Default)]
struct Owners {
    alive: usize,
    waiting: Vec<String>,
    absent: Vec<String>,
    /// True if an owner is of a kind that is not served, so that its existence is unknown.
    unknown: bool,
}

impl Server {
    /// Processes the next object in the queue. Returns false if the queue is empty.
    pub(crate) fn collect_step(&mut self, now: Timestamp) -> bool {
        let Some(key) = self.store.garbage.pop_front() else {
            return false;
        };
        let Some(object) = self.store.by_key(&key).cloned() else {
            return true;
        };
        let Some(target) = self.store.registry.stored(key.kind) else {
            return true;
        };
        if object.is_deleting() {
            match target.kind.family {
                Family::Namespace => self.empty_namespace(&target, &object, now),
                Family::Definition if object.has_finalizer(definition::CLEANUP) => {
                    self.delete_instances(&target, &object, now);
                }
                _ => {}
            }
        }
        let Some(object) = self.store.by_key(&key).cloned() else {
            return true;
        };
        if !object.is_deleting() {
            self.delete_if_unowned(&target, &object, now);
        } else if object.has_finalizer(ORPHAN) {
            self.orphan_dependents(&target, &object);
        } else if object.has_finalizer(FOREGROUND) {
            self.delete_dependents(&target, &object, now);
        }
        true
    }

    /// Deletes an object whose owners are all gone. If some are alive, removes its references to the others.
    fn delete_if_unowned(&mut self, target: &Target, object: &Arc<Object>, now: Timestamp) {
        let owners = self.owners(target, object);
        if owners.unknown || (owners.waiting.is_empty() && owners.absent.is_empty()) {
            return;
        }
        if owners.alive > 0 {
            let gone: Vec<String> = owners.waiting.into_iter().chain(owners.absent).collect();
            self.remove_owner_references(target, object, &gone);
            return;
        }
        let waited_for = !owners.waiting.is_empty();
        let has_dependents = self.store.dependents(object.uid()).next().is_some();
        let policy = if object.has_finalizer(ORPHAN) {
            "Orphan"
        } else if object.has_finalizer(FOREGROUND) || (waited_for && has_dependents) {
            "Foreground"
        } else {
            "Background"
        };
        let options = DeleteOptions::with_policy(policy);
        // A deletion without preconditions cannot be rejected.
        let _ = self.delete_object(target, object, &options, now);
    }

    fn owners(&self, target: &Target, object: &Object) -> Owners {
        let mut owners = Owners::default();
        for reference in json::array(object.meta("ownerReferences")) {
            let text = |key: &str| reference.get(key).and_then(Value::as_str).unwrap_or_default();
            let uid = text("uid").to_owned();
            let Some(owner_kind) = self.store.registry.owner(text("apiVersion"), text("kind")) else {
                owners.unknown = true;
                continue;
            };
            // An owner is in the namespace of its dependent, or has no namespace.
            let namespace = match (owner_kind.kind.namespaced, target.kind.namespaced) {
                (false, _) => "",
                (true, true) => object.namespace(),
                (true, false) => {
                    owners.unknown = true;
                    continue;
                }
            };
            let owner = self
                .store
                .get(owner_kind.id, namespace, text("name"))
                .filter(|owner| owner.uid() == uid);
            match owner {
                None => owners.absent.push(uid),
                Some(owner) if owner.is_deleting() && owner.has_finalizer(FOREGROUND) => {
                    owners.waiting.push(uid)
                }
                Some(_) => owners.alive += 1,
            }
        }
        owners
    }

    /// Removes the references to these owners.
    fn remove_owner_references(&mut self, target: &Target, object: &Arc<Object>, uids: &[String]) {
        let mut document = object.document().clone();
        let kept: Vec<Value> = json::array(object.meta("ownerReferences"))
            .filter(|reference| {
                let uid = reference.get("uid").and_then(Value::as_str).unwrap_or_default();
                !uids.iter().any(|gone| gone == uid)
            })
            .cloned()
            .collect();
        document.set_meta("ownerReferences", Value::from(kept));
        self.store
            .replace(target, object, document, object.applied.clone());
    }

    fn dependents(&self, uid: &str) -> Vec<(Target, Arc<Object>)> {
        let keys: Vec<ObjectKey> = self.store.dependents(uid).cloned().collect();
        keys.into_iter()
            .filter_map(|key| {
                Some((
                    self.store.registry.stored(key.kind)?,
                    self.store.by_key(&key)?.clone(),
                ))
            })
            .collect()
    }

    fn orphan_dependents(&mut self, target: &Target, owner: &Arc<Object>) {
        let uid = [owner.uid().to_owned()];
        for (kind, dependent) in self.dependents(owner.uid()) {
            self.remove_owner_references(&kind, &dependent, &uid);
        }
        self.remove_finalizer(target, owner, ORPHAN);
    }

    /// Deletes the dependents of an owner in foreground deletion, and removes its finalizer when none of them blocks
    /// it.
    fn delete_dependents(&mut self, target: &Target, owner: &Arc<Object>, now: Timestamp) {
        for (kind, dependent) in self.dependents(owner.uid()) {
            if !dependent.is_deleting() {
                self.delete_if_unowned(&kind, &dependent, now);
            }
        }
        let blocks = |dependent: &Object| {
            json::array(dependent.meta("ownerReferences")).any(|reference| {
                reference.get("uid").and_then(Value::as_str) == Some(owner.uid())
                    && reference.get("blockOwnerDeletion") == Some(&Value::Bool(true))
            })
        };
        let blocked = self
            .dependents(owner.uid())
            .iter()
            .any(|(_, dependent)| blocks(dependent));
        if !blocked {
            self.remove_finalizer(target, owner, FOREGROUND);
        }
    }

    /// Removes a finalizer. If it was the last one, removes the object too.
    fn remove_finalizer(&mut self, target: &Target, object: &Arc<Object>, name: &str) {
        let kept: Vec<Value> = json::array(object.meta("finalizers"))
            .filter(|finalizer| *finalizer != name)
            .cloned()
            .collect();
        let grace = object
            .meta("deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        if kept.is_empty() && grace == 0 && target.kind.family != Family::Namespace {
            self.store.remove(target, object);
            return;
        }
        let mut document = object.document().clone();
        document.set_meta("finalizers", Value::from(kept));
        self.store
            .replace(target, object, document, object.applied.clone());
    }

    /// Deletes the objects in a namespace, then the namespace once it is empty.
    fn empty_namespace(&mut self, target: &Target, space: &Arc<Object>, now: Timestamp) {
        let name = space.name().to_owned();
        let kinds: Vec<Target> = self
            .store
            .registry
            .all()
            .filter(|kind| kind.kind.namespaced)
            .collect();
        let mut left = false;
        for kind in kinds {
            let objects: Vec<Arc<Object>> = self.store.iter(kind.id, Some(&name), None).cloned().collect();
            for object in objects {
                left |= !self.delete_unless_deleting(&kind, &object, now);
            }
        }
        let held = json::array(space.meta("finalizers")).next().is_some();
        if !left && !held {
            self.store.remove(target, space);
        }
    }

    /// Deletes the objects of a definition's kind, then the definition once none is left.
    fn delete_instances(&mut self, target: &Target, definition: &Arc<Object>, now: Timestamp) {
        let found = definition::parse_kind(definition.value()).and_then(|kind| {
            self.store
                .registry
                .by_plural(&format!("{}.{}", kind.plural, kind.stored()?.group))
        });
        let Some(kind) = found else {
            self.remove_finalizer(target, definition, definition::CLEANUP);
            return;
        };
        let objects: Vec<Arc<Object>> = self.store.iter(kind.id, None, None).cloned().collect();
        let mut left = false;
        for object in objects {
            left |= !self.delete_unless_deleting(&kind, &object, now);
        }
        if !left {
            self.store.remove_kind(kind.id);
            self.remove_finalizer(target, definition, definition::CLEANUP);
        }
    }

    /// Deletes an object, unless it is being deleted already. Returns true if it is gone.
    fn delete_unless_deleting(&mut self, target: &Target, object: &Arc<Object>, now: Timestamp) -> bool {
        if object.is_deleting() {
            return false;
        }
        let options = DeleteOptions::with_policy("Background");
        self.delete_object(target, object, &options, now)
            .is_ok_and(|done| done.gone)
    }
}
