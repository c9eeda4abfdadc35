//! Text of a pod's specification with its `$(VARIABLE)` references replaced.

use std::ops::Range;

/// A value, and the parts of it that must stay names.
///
/// `metadata.name` as a value (a log prefix, a checkpoint's file name, the number at its end) means the name and not
/// an address, also after a reference has copied it into another value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text {
    value: String,
    kept: Vec<Range<usize>>,
}

impl Text {
    /// Text in which names of pods and services may be replaced.
    pub(super) fn plain(value: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            kept: Vec::new(),
        }
    }

    /// Text that is used unchanged.
    pub(super) fn kept(value: impl Into<String>) -> Self {
        let value = value.into();
        let whole = 0..value.len();
        Self {
            value,
            kept: vec![whole],
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.value
    }

    /// Returns true if all of `part` must stay unchanged.
    pub(super) fn keeps(&self, part: &Range<usize>) -> bool {
        self.kept
            .iter()
            .any(|kept| kept.start <= part.start && part.end <= kept.end)
    }

    fn append(&mut self, other: &Text) {
        let offset = self.value.len();
        self.value.push_str(&other.value);
        self.kept.extend(
            other
                .kept
                .iter()
                .map(|kept| kept.start + offset..kept.end + offset),
        );
    }

    /// Replaces `$(NAME)` by the result of `lookup`. `$$` is one dollar sign, so `$$(NAME)` is the text `$(NAME)`. A
    /// reference without a result stays unchanged.
    pub(super) fn expand(input: &str, lookup: impl Fn(&str) -> Option<Text>) -> Self {
        let mut text = Self::default();
        let mut rest = input;
        while let Some(dollar) = rest.find('$') {
            text.value.push_str(&rest[..dollar]);
            let after = &rest[dollar + 1..];
            if let Some(tail) = after.strip_prefix('$') {
                text.value.push('$');
                rest = tail;
            } else if let Some((name, tail)) = after.strip_prefix('(').and_then(|open| open.split_once(')')) {
                match lookup(name) {
                    Some(found) => text.append(&found),
                    None => text.value.push_str(&rest[dollar..rest.len() - tail.len()]),
                }
                rest = tail;
            } else {
                text.value.push('$');
                rest = after;
            }
        }
        text.value.push_str(rest);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<Text> {
        match name {
            "A" => Some(Text::plain("1")),
            "EMPTY" => Some(Text::plain("")),
            "ME" => Some(Text::kept("job-worker-0")),
            "REF" => Some(Text::plain("$(A)")),
            _ => None,
        }
    }

    #[test]
    fn references_are_filled_in_as_the_kubelet_does() {
        for (input, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("$(A)", "1"),
            ("x$(A)y$(A)z", "x1y1z"),
            ("$(EMPTY)", ""),
            ("$(NOBODY)", "$(NOBODY)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$$$$(A)", "$$(A)"),
            ("$A ${A} $", "$A ${A} $"),
            ("$(A", "$(A"),
            ("$()", "$()"),
            ("$(REF)", "$(A)"),
            ("é$(A)é", "é1é"),
        ] {
            assert_eq!(Text::expand(input, lookup).as_str(), expected, "{input}");
        }
    }

    #[test]
    fn a_name_that_must_stay_is_remembered_through_references() {
        let once = Text::expand("at:$(ME)/x", lookup);
        let twice = Text::expand("[$(ONCE)]", |_| Some(once.clone()));
        assert_eq!(twice.as_str(), "[at:job-worker-0/x]");
        assert!(twice.keeps(&(4..16)));
        assert!(!twice.keeps(&(3..16)));
        assert!(!Text::plain("job").keeps(&(0..3)));
    }
}
