//! One page of a list, whose objects are not decoded yet.

use kube::api::{ListParams, Request};
use kube::{Api, Resource};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::CallError;

/// A page as its text has it.
pub(super) struct Page<'a> {
    /// The version at which it was read.
    pub(super) version: Option<String>,
    /// Which page comes next, if any.
    pub(super) continue_token: Option<String>,
    pub(super) items: Vec<&'a RawValue>,
}

/// Asks for a page.
///
/// # Errors
/// The server does not answer with one.
pub(super) async fn ask<K: Resource + Clone>(api: &Api<K>, params: &ListParams) -> kube::Result<String> {
    let request = Request::new(api.resource_url()).list(params);
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    request.extensions_mut().insert("list");
    api.clone().into_client().request_text(request).await
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(default)]
    metadata: Meta,
    /// Servers written in Go say null for none.
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    continue_: Option<String>,
}

impl<'a> Page<'a> {
    /// Reads a page.
    ///
    /// # Errors
    /// It is no list.
    pub(super) fn read(text: &'a str) -> Result<Self, CallError> {
        let list: List<'_> = serde_json::from_str(text).map_err(kube::Error::SerdeError)?;
        let set = |text: Option<String>| text.filter(|t| !t.is_empty());
        Ok(Self {
            version: set(list.metadata.resource_version),
            continue_token: set(list.metadata.continue_),
            items: list.items.unwrap_or_default(),
        })
    }
}
