//! Decodes structs from JSON objects only. Derived code also accepts a list of the fields, and a merge patch of such
//! a list replaces all of it.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A struct that was decoded from an object.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct OfMap<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OfMap<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        d.deserialize_any(OfMap(PhantomData)).map(Self)
    }
}

/// Decodes an object. Null, which Go clients write for an empty value, gives the default.
pub(super) fn object<'de, D, T>(d: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(optional_object(d)?.unwrap_or_default())
}

/// Decodes an object or null.
pub(super) fn optional_object<'de, D, T>(d: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Object<T>>::deserialize(d)?.map(|object| object.0))
}

/// Decodes a list of objects. Null gives an empty list.
pub(super) fn list_of_objects<'de, D, T>(d: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let items = Option::<Vec<Object<T>>>::deserialize(d)?.unwrap_or_default();
    Ok(items.into_iter().map(|item| item.0).collect())
}

/// Decodes a map of objects. Null gives an empty map.
pub(super) fn map_of_objects<'de, D, T>(d: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let items = Option::<BTreeMap<String, Object<T>>>::deserialize(d)?.unwrap_or_default();
    Ok(items.into_iter().map(|(key, item)| (key, item.0)).collect())
}
