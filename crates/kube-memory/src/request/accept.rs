//! The `Accept` header: the media types of responses, in the client's order.

pub(crate) const JSON: &str = "application/json";

/// The media types of objects in a real server's responses. Here each of them gets JSON.
pub(crate) const MEDIA_TYPES: [&str; 3] = [JSON, "application/yaml", "application/vnd.kubernetes.protobuf"];

/// A media type that the client accepts, such as `application/json;as=Table;v=v1;g=meta.k8s.io`.
#[derive(Debug, Clone, PartialEq)]
struct MediaType {
    name: String,
    parameters: Vec<(String, String)>,
    quality: f32,
}

/// The media types that a client accepts, the preferred one first. Without a header, every type is accepted.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Accepted(Vec<MediaType>);

/// The conversion that a client requests of a media type: kind, group and version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Conversion<'a> {
    pub(crate) kind: &'a str,
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
}

impl Accepted {
    pub(crate) fn parse(header: &str) -> Self {
        let mut types: Vec<MediaType> = header.split(',').filter_map(MediaType::parse).collect();
        // The sort is stable.
        types.sort_by(|one, other| other.quality.total_cmp(&one.quality));
        Self(types)
    }

    /// Returns what `choose` returns for the first media type for which it returns something. `choose` gets one of
    /// `names`, which the server prefers in this order, and the conversion.
    pub(crate) fn first<'a, T>(
        &'a self,
        names: &[&'static str],
        choose: impl Fn(&'static str, Conversion<'a>) -> Option<T>,
    ) -> Option<T> {
        if self.0.is_empty() {
            return names.iter().find_map(|name| choose(name, Conversion::default()));
        }
        self.0.iter().find_map(|accepted| {
            let mut covered = names.iter().filter(|name| accepted.covers(name));
            covered.find_map(|name| choose(name, accepted.conversion()))
        })
    }
}

impl MediaType {
    /// Returns `None` for an empty text.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().filter(|name| !name.is_empty())?.to_owned();
        let parameters: Vec<(String, String)> = parts
            .filter_map(|part| part.split_once('='))
            .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
            .collect();
        let quality = parameters.iter().find(|(key, _)| key == "q");
        let quality = quality.and_then(|(_, value)| value.parse().ok()).unwrap_or(1.0);
        Some(Self {
            name,
            parameters,
            quality,
        })
    }

    fn covers(&self, name: &str) -> bool {
        let of_type = |whole: &str| name.starts_with(whole.trim_end_matches('*'));
        self.name == name || self.name == "*/*" || (self.name.ends_with("/*") && of_type(&self.name))
    }

    fn conversion(&self) -> Conversion<'_> {
        let parameter = |key| {
            let found = self.parameters.iter().find(|(name, _)| name == key);
            found.map_or("", |(_, value)| value.as_str())
        };
        Conversion {
            kind: parameter("as"),
            group: parameter("g"),
            version: parameter("v"),
        }
    }
}
