//! The lines around a syntax error, where its cause is.

use crate::look_alike::look_alikes;
use crate::node::Position;

/// A place, a problem and a remedy.
pub(crate) type Cause = (Position, String, &'static str);

/// The line of a syntax error and the lines above it.
pub(crate) struct Lines<'t> {
    lines: Vec<&'t str>,
    at: Position,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str, at: Position) -> Self {
        // One more line may hold the rest of the value.
        let lines = text.lines().take(at.line + 1).collect();
        Self { lines, at }
    }

    fn line(&self, number: usize) -> &'t str {
        let index = number.checked_sub(1);
        index.and_then(|n| self.lines.get(n)).copied().unwrap_or_default()
    }

    /// Returns the number of the line above that is neither empty nor a comment.
    fn above(&self) -> Option<usize> {
        let is_content = |number: &usize| {
            let line = self.line(*number).trim_start();
            !line.is_empty() && !line.starts_with('#')
        };
        (1..self.at.line).rev().find(is_content)
    }

    /// Returns the error of a character outside of quotes that looks like one of YAML's, in the line or the one above.
    pub(crate) fn look_alike(&self) -> Option<Cause> {
        let numbers = self.above().into_iter().chain([self.at.line]);
        let mut found = numbers.filter_map(|line| {
            let found = look_alikes(self.line(line)).find(|found| {
                let before: String = self.line(line).chars().take(found.at).collect();
                found.is_structural() && !is_quoted(&before)
            })?;
            let at = Position {
                line,
                column: found.at + 1,
            };
            let remedy = match found.plain {
                "" => "remove it",
                _ => "type the plain character in its place",
            };
            Some((at, found.problem(), remedy))
        });
        found.next()
    }

    /// Returns the error of the first tab in the indentation of the line or of a line below it.
    pub(crate) fn tab(&self) -> Cause {
        let (line, text) = (self.at.line, self.line(self.at.line));
        let indented = text.trim_start_matches(' ');
        let at = match indented.starts_with('\t') {
            true => Position {
                line,
                column: text.len() - indented.len() + 1,
            },
            false => self.at,
        };
        let problem = match text.chars().take(at.column - 1).all(char::is_whitespace) {
            true => "a tab in the indentation",
            false => "a tab between the parts of the line",
        };
        (at, problem.to_owned(), "use spaces")
    }

    /// Returns the error of a line whose key has no colon.
    pub(crate) fn missing_colon(&self) -> Cause {
        if let Some(cause) = self.without_space(self.at.line) {
            return cause;
        }
        if self.line(self.at.line).trim_start().starts_with("```") {
            return self.code_fence();
        }
        let remedy = "add one, or indent the line as part of the value above it";
        (self.at, "missing ':' after a key".to_owned(), remedy)
    }

    /// Returns the error of a colon that follows a value. The line above may lack its colon.
    pub(crate) fn unexpected_colon(&self) -> Cause {
        let line = self.line(self.at.line);
        let before: String = line.chars().take(self.at.column - 1).collect();
        let second = || {
            let problem = "unexpected second ':' in the line".to_owned();
            (self.at, problem, "put the value in quotes")
        };
        let Some(above) = self.above().filter(|_| !before.contains(": ")) else {
            return second();
        };
        if let Some(cause) = self.without_space(above) {
            return cause;
        }
        let at = Position {
            line: above,
            column: indentation(self.line(above)) + 1,
        };
        match (
            self.line(above).contains(':'),
            indentation(line) > indentation(self.line(above)),
        ) {
            (false, _) => (at, "missing ':' after a key".to_owned(), "add one"),
            (true, true) => {
                let at = Position {
                    column: indentation(line) + 1,
                    ..self.at
                };
                let problem = "the line is indented below a line that already has a value".to_owned();
                (at, problem, "indent it as that line")
            }
            (true, false) => second(),
        }
    }

    /// Returns the error of a character that no value begins with.
    pub(crate) fn unexpected_character(&self, character: char) -> Cause {
        let line = self.line(self.at.line);
        match character {
            '`' if line.trim_start().starts_with("```") => self.code_fence(),
            c if c.is_control() => (
                self.at,
                format!("the control character U+{:04X}", u32::from(c)),
                "remove it",
            ),
            c => (
                self.at,
                format!("a value must not begin with {c:?}"),
                "put it in quotes",
            ),
        }
    }

    fn code_fence(&self) -> Cause {
        (self.at, "a code fence of Markdown".to_owned(), "remove the line")
    }

    /// True if a comment of JavaScript begins at the error.
    pub(crate) fn is_json_comment(&self) -> bool {
        let rest: String = self
            .line(self.at.line)
            .chars()
            .skip(self.at.column - 1)
            .take(2)
            .collect();
        is_json_comment(&rest)
    }

    /// Returns the error of a line such as `key:value` or `-item`, which is one word to YAML.
    fn without_space(&self, number: usize) -> Option<Cause> {
        let line = self.line(number);
        let indentation = indentation(line);
        let word = line.get(indentation..)?.trim_end();
        let at = |chars: usize| Position {
            line: number,
            column: indentation + chars + 1,
        };
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if let Some(rest) = word.strip_prefix('-')
            && rest.starts_with(|c: char| c.is_ascii_alphabetic())
            && rest.contains(": ")
        {
            return Some((at(1), "missing space after '-'".to_owned(), "add one"));
        }
        let (key, value) = word.trim_start_matches("- ").split_once(':')?;
        let is_word = !key.is_empty() && key.chars().all(is_key) && !value.contains(": ");
        let is_joined = is_word && value.starts_with(|c: char| !c.is_whitespace() && c != '/');
        let before = word.find(':').unwrap_or_default();
        is_joined.then(|| (at(before + 1), "missing space after ':'".to_owned(), "add one"))
    }
}

/// The problem of a comment in JSON, which YAML reads as a part of a key.
pub(crate) const JSON_COMMENT: &str = "JSON has no comments";

/// True if a key begins as a comment of JavaScript does.
pub(crate) fn is_json_comment(key: &str) -> bool {
    key.starts_with("//") || key.starts_with("/*")
}

/// Returns the number of spaces before a line's first word or dash.
fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// True if a text that follows `before` in its line is within quotes or a comment.
fn is_quoted(before: &str) -> bool {
    let mut quote = None;
    let mut last = ' ';
    for c in before.chars() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => {}
            None if c == '#' && last == ' ' => return true,
            None if matches!(c, '"' | '\'') && !last.is_alphanumeric() => quote = Some(c),
            None => {}
        }
        last = c;
    }
    quote.is_some()
}
