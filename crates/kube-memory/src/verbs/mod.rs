//! What a request does to objects: each verb, and how its body becomes an object that can be stored.

pub(crate) mod apply;
pub(crate) mod binding;
pub(crate) mod continue_token;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod normalize;
pub(crate) mod patch;
pub(crate) mod update;
