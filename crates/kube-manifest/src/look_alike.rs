//! Characters that look like others or like nothing, pasted from pages, chats and word processors.

const CYRILLIC_LETTER: &str = "a Cyrillic letter";
const GREEK_LETTER: &str = "a Greek letter";

/// A character that is easily taken for another one.
///
/// ```
/// let found = kube_manifest::look_alike("r\u{435}plicas").unwrap();
/// assert_eq!((found.at, found.plain), (1, "e"));
/// assert_eq!(found.problem(), "U+0435 (a Cyrillic letter) looks like \"e\"");
/// assert_eq!(found.remedy(), "type \"e\" in its place");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookAlike {
    /// The number of characters before it in the text.
    pub at: usize,
    /// The character itself.
    pub character: char,
    /// The sort of character, such as `a Cyrillic letter`.
    pub sort: &'static str,
    /// The character that was meant; empty if the character is invisible.
    pub plain: &'static str,
}

impl LookAlike {
    /// Returns the problem: the number of the character and the character that it looks like.
    pub fn problem(&self) -> String {
        let (code, sort) = (u32::from(self.character), self.sort);
        match self.plain {
            "" => format!("U+{code:04X} ({sort}) is invisible"),
            " " => format!("U+{code:04X} ({sort}) looks like a space"),
            plain => format!("U+{code:04X} ({sort}) looks like {plain:?}"),
        }
    }

    /// Returns the remedy.
    pub fn remedy(&self) -> String {
        match self.plain {
            "" => "remove it".to_owned(),
            " " => "type a space in its place".to_owned(),
            plain => format!("type {plain:?} in its place"),
        }
    }

    fn is_of_alphabet(&self) -> bool {
        matches!(self.sort, CYRILLIC_LETTER | GREEK_LETTER)
    }

    /// True for a character that ends or separates words of YAML, or that is invisible.
    pub(crate) fn is_structural(&self) -> bool {
        !self.plain.starts_with(|c: char| c.is_ascii_alphanumeric())
    }
}

/// Returns the first character of a text that is easily taken for another one. Letters of other alphabets count only
/// beside plain letters, because whole words of these alphabets are words of another language.
pub fn look_alike(text: &str) -> Option<LookAlike> {
    look_alikes(text).next()
}

pub(crate) fn look_alikes(text: &str) -> impl Iterator<Item = LookAlike> {
    let is_mixed = text.contains(|c: char| c.is_ascii_alphabetic());
    let characters = text.chars().filter(|_| !text.is_ascii()).enumerate();
    let found = characters.filter_map(|(at, character)| {
        let (sort, plain) = meaning(character)?;
        Some(LookAlike {
            at,
            character,
            sort,
            plain,
        })
    });
    found.filter(move |found| is_mixed || !found.is_of_alphabet())
}

/// True for a character that would be printed as nothing, or that changes the direction of the text.
pub(crate) fn is_invisible(character: char) -> bool {
    meaning(character).is_some_and(|(_, plain)| plain.is_empty())
}

fn meaning(character: char) -> Option<(&'static str, &'static str)> {
    const CYRILLIC: &str = "аеорсхуіјѕһӏԁԛԝАВЕКМНОРСТУХІЈЅ";
    const CYRILLIC_PLAIN: &str = "aeopcxyijshldqwABEKMHOPCTYXIJS";
    const GREEK: &str = "αονρικυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ";
    const GREEK_PLAIN: &str = "aovpikuABEZHIKMNOPTYX";
    /// The visible characters of ASCII, whose full-width forms begin with U+FF01.
    const VISIBLE: &str =
        "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";
    let letter = |alphabet: &str, plain: &'static str| {
        let n = alphabet.chars().position(|letter| letter == character)?;
        plain.get(n..=n)
    };
    Some(match character {
        '\u{a0}' | '\u{202f}' | '\u{2007}' => ("a no-break space", " "),
        '\u{3000}' => ("an ideographic space", " "),
        '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{205f}' => ("a space of another width", " "),
        '\u{200b}' => ("a zero-width space", ""),
        '\u{200c}' | '\u{200d}' | '\u{2060}' => ("a zero-width joiner", ""),
        '\u{feff}' => ("a byte order mark", ""),
        '\u{ad}' => ("a soft hyphen", ""),
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            ("a mark of the writing direction", "")
        }
        '\u{85}' | '\u{2028}' | '\u{2029}' => ("a line separator", " "),
        '“' | '”' | '„' | '‟' | '″' => ("a typographic quotation mark", "\""),
        '‘' | '’' | '‚' | '‛' | '′' => ("a typographic quotation mark", "'"),
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => ("a typographic dash", "-"),
        '\u{ff01}'..='\u{ff5e}' => {
            let n = u32::from(character) as usize - 0xff01;
            ("a full-width character", VISIBLE.get(n..=n)?)
        }
        _ => match letter(CYRILLIC, CYRILLIC_PLAIN) {
            Some(plain) => (CYRILLIC_LETTER, plain),
            None => (GREEK_LETTER, letter(GREEK, GREEK_PLAIN)?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sort_has_its_number_and_its_plain_form() {
        for (text, problem, remedy) in [
            (
                "a\u{a0}b",
                "U+00A0 (a no-break space) looks like a space",
                "type a space in its place",
            ),
            (
                "restart\u{200b}Policy",
                "U+200B (a zero-width space) is invisible",
                "remove it",
            ),
            (
                "“x:1”",
                "U+201C (a typographic quotation mark) looks like \"\\\"\"",
                "type \"\\\"\" in its place",
            ),
            (
                "replicas：2",
                "U+FF1A (a full-width character) looks like \":\"",
                "type \":\" in its place",
            ),
            (
                "—epochs",
                "U+2014 (a typographic dash) looks like \"-\"",
                "type \"-\" in its place",
            ),
            ("iмage", "", ""),
            (
                "Мaster",
                "U+041C (a Cyrillic letter) looks like \"M\"",
                "type \"M\" in its place",
            ),
            (
                "Κind",
                "U+039A (a Greek letter) looks like \"K\"",
                "type \"K\" in its place",
            ),
            (
                "１",
                "U+FF11 (a full-width character) looks like \"1\"",
                "type \"1\" in its place",
            ),
            ("вес", "", ""),
            ("größe", "", ""),
            ("plain", "", ""),
        ] {
            let found = look_alike(text);
            let words = found.map(|found| (found.problem(), found.remedy()));
            assert_eq!(
                words.unwrap_or_default(),
                (problem.to_owned(), remedy.to_owned()),
                "{text}"
            );
        }
    }
}
