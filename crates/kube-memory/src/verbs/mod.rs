//! The verbs of requests, and the conversion of a body to an object that can be stored.

pub(crate) mod apply;
pub(crate) mod binding;
pub(crate) mod continue_token;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod normalize;
pub(crate) mod patch;
pub(crate) mod scale;
pub(crate) mod update;
