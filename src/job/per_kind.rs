//! Values that are the same for all jobs of a kind, and take a while to build.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// A cache of one value of each kind.
pub(crate) struct PerKind(Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl PerKind {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Returns the value of kind `J`. It is built for the first job of the kind. All values of a kind in a cache have one
    /// type.
    pub(crate) fn get<J: 'static, V: Send + Sync + 'static>(&self, build: impl FnOnce() -> V) -> Arc<V> {
        let all = || self.0.lock();
        let found = all().get(&TypeId::of::<J>()).cloned();
        if let Some(value) = found.and_then(|value| value.downcast().ok()) {
            return value;
        }
        // Not under the lock, because a hook of the kind may panic.
        let value = Arc::new(build());
        all().insert(TypeId::of::<J>(), value.clone());
        value
    }
}
