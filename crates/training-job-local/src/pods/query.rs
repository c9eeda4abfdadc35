//! The options in the query of a request.

use std::borrow::Cow;

/// The options of a query, by name.
pub(super) struct Options<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Options<'a> {
    pub(super) fn parse(query: Option<&'a str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self {
            pairs: pairs.collect(),
        }
    }

    /// Returns all values of an option. Empty values count as missing.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let all = self.pairs.iter().filter(move |(key, _)| key == name);
        all.map(|(_, value)| &**value).filter(|value| !value.is_empty())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some("1" | "t" | "T" | "true" | "True" | "TRUE"))
    }

    /// Returns a number that is at least `least`.
    ///
    /// # Errors
    /// The message for a number that is too small, or for a text that is not a number.
    pub(super) fn number(&self, name: &str, least: i64) -> Result<Option<u64>, String> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let number: i64 = text
            .parse()
            .map_err(|_| format!("{name}: Invalid value: {text:?}: must be an integer"))?;
        match u64::try_from(number) {
            Ok(number) if number >= least.unsigned_abs() => Ok(Some(number)),
            _ => {
                let than = if least == 0 {
                    "greater than or equal to 0"
                } else {
                    "greater than 0"
                };
                Err(format!("{name}: Invalid value: {number}: must be {than}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_by_an_api_server() {
        let options = Options::parse(Some(
            "command=a%20b&command=c+d&follow=true&tailLines=-1&limitBytes=0&tty=",
        ));
        assert_eq!(options.all("command").collect::<Vec<_>>(), ["a b", "c d"]);
        assert!(options.flag("follow") && !options.flag("tty"));
        let problem = options.number("tailLines", 0).unwrap_err();
        assert_eq!(
            problem,
            "tailLines: Invalid value: -1: must be greater than or equal to 0"
        );
        let problem = options.number("limitBytes", 1).unwrap_err();
        assert_eq!(problem, "limitBytes: Invalid value: 0: must be greater than 0");
        assert_eq!(options.number("sinceSeconds", 1), Ok(None));
    }
}
