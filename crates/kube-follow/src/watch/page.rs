//! One page of a list, with objects that are not decoded yet.

use kube::api::{ListParams, Request};
use kube::{Api, Resource};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::CallError;

/// A page that borrows its objects from the text.
pub(super) struct Page<'a> {
    /// The version at which the server read the page.
    pub(super) version: Option<String>,
    /// The token of the next page, if any.
    pub(super) continue_token: Option<String>,
    pub(super) items: Vec<&'a RawValue>,
}

/// Requests a page and returns its text.
///
/// # Errors
/// The request fails.
pub(super) async fn request<K: Resource + Clone>(api: &Api<K>, params: &ListParams) -> kube::Result<String> {
    let request = Request::new(api.resource_url()).list(params);
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    request.extensions_mut().insert("list");
    api.clone().into_client().request_text(request).await
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(default)]
    metadata: Meta,
    /// Servers written in Go send null for an empty list.
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
    /// Decodes a page.
    ///
    /// # Errors
    /// The text is not a list.
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
