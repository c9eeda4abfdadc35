//! Objects as JSON, stored or not.

use kube_memory::Object;
use serde_json::Value;

/// An object as JSON, either stored in the cluster or sent to it.
pub trait Json {
    /// Returns a member of the object, or null if it is missing.
    fn member(&self, key: &str) -> &Value;
    /// Returns a member of the object's metadata, or null if it is missing.
    fn meta(&self, key: &str) -> &Value;
    /// Returns the whole object.
    fn whole(&self) -> &Value;
}

impl Json for Value {
    fn member(&self, key: &str) -> &Value {
        &self[key]
    }

    fn meta(&self, key: &str) -> &Value {
        &self["metadata"][key]
    }

    fn whole(&self) -> &Value {
        self
    }
}

impl Json for Object {
    fn member(&self, key: &str) -> &Value {
        &self[key]
    }

    fn meta(&self, key: &str) -> &Value {
        Self::meta(self, key).unwrap_or(&Value::Null)
    }

    fn whole(&self) -> &Value {
        self.value()
    }
}

impl<T: Json> Json for &T {
    fn member(&self, key: &str) -> &Value {
        (**self).member(key)
    }

    fn meta(&self, key: &str) -> &Value {
        (**self).meta(key)
    }

    fn whole(&self) -> &Value {
        (**self).whole()
    }
}
