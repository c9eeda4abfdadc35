//! Splits a shell script into its simple commands.

/// Programs that run a script which an option such as `-c` precedes.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "ksh", "zsh", "su", "runuser"];

/// Programs that run the command in their arguments.
const WRAPPERS: [&str; 15] = [
    "exec",
    "env",
    "time",
    "timeout",
    "nohup",
    "nice",
    "sudo",
    "setsid",
    "stdbuf",
    "xargs",
    "gosu",
    "su-exec",
    "tini",
    "dumb-init",
    "watch",
];

/// Reserved words of the shell that may precede a command.
const KEYWORDS: [&str; 9] = ["if", "then", "elif", "else", "do", "while", "until", "!", "{"];

/// A simple command of a script: a program and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The words without quotes.
    pub words: Vec<String>,
    /// The positions of the words' first bytes in the script.
    pub starts: Vec<usize>,
    /// The position after the last word.
    pub end: usize,
}

impl Command {
    /// Returns the name of the program without its directory, and its position among the words. Assignments, reserved
    /// words and programs that run another one, such as `exec`, are skipped.
    pub fn program(&self) -> Option<(&str, usize)> {
        let at = program(&self.words)?;
        Some((base(self.words.get(at)?), at))
    }

    /// Returns the position of the first word that is neither a reserved word nor an assignment.
    pub fn first(&self) -> usize {
        first(&self.words).unwrap_or_default()
    }

    /// Returns the script that the command runs in a shell.
    pub fn script(&self) -> Option<&str> {
        of_shell(&self.words)
    }
}

/// Returns the simple commands of a shell script, with those of command substitutions before the command that has
/// them.
pub fn commands(script: &str) -> Vec<Command> {
    let mut reader = Reader {
        script,
        at: 0,
        done: Vec::new(),
        open: Command::default(),
        word: None,
    };
    reader.read(None);
    reader.done
}

struct Reader<'s> {
    script: &'s str,
    at: usize,
    done: Vec<Command>,
    open: Command,
    word: Option<(usize, String)>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.script.get(self.at..)?.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Reads commands up to the end of the script, or to the character that closes a substitution.
    fn read(&mut self, close: Option<char>) {
        let mut quote = None;
        while let Some(c) = self.next() {
            let at = self.at - c.len_utf8();
            match (quote, c) {
                (Some(open), _) if c == open => quote = None,
                (Some('\''), _) => self.push(at, c),
                (_, '\\') => {
                    if let Some(next) = self.next().filter(|next| *next != '\n') {
                        self.push(at, next);
                    }
                }
                (_, '$' | '<') if self.peek() == Some('(') && (c == '$' || quote.is_none()) => {
                    self.next();
                    self.substitute(at, ')');
                }
                (None, '`') if close == Some('`') => break,
                (_, '`') => self.substitute(at, '`'),
                (Some(_), _) => self.push(at, c),
                (None, '\'' | '"') => {
                    quote = Some(c);
                    self.word.get_or_insert((at, String::new()));
                }
                (None, ')') if close == Some(')') => break,
                (None, '#') if self.word.is_none() => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.next();
                    }
                }
                (None, '&')
                    if self
                        .word
                        .as_ref()
                        .is_some_and(|(_, word)| word.ends_with(['>', '<'])) =>
                {
                    self.push(at, c);
                }
                (None, ';' | '&' | '|' | '(' | ')' | '\n') => self.end_command(at),
                (None, _) if c.is_whitespace() => self.end_word(at),
                (None, _) => self.push(at, c),
            }
        }
        self.end_command(self.at);
    }

    /// Reads the commands of a substitution, which is a part of the open word.
    fn substitute(&mut self, at: usize, close: char) {
        self.push(at, '$');
        let (open, word) = (std::mem::take(&mut self.open), self.word.take());
        self.read(Some(close));
        (self.open, self.word) = (open, word);
    }

    fn push(&mut self, at: usize, c: char) {
        self.word.get_or_insert((at, String::new())).1.push(c);
    }

    fn end_word(&mut self, at: usize) {
        if let Some((start, word)) = self.word.take() {
            self.open.words.push(word);
            self.open.starts.push(start);
            self.open.end = at;
        }
    }

    fn end_command(&mut self, at: usize) {
        self.end_word(at);
        let command = std::mem::take(&mut self.open);
        if !command.words.is_empty() {
            self.done.push(command);
        }
    }
}

/// Returns the script that a command runs in a shell.
pub(super) fn of_shell(words: &[String]) -> Option<&str> {
    let at = program(words)?;
    let (name, arguments) = (base(words.get(at)?), words.get(at + 1..)?);
    if name == "eval" {
        return arguments.first().map(String::as_str);
    }
    let takes_script =
        |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let option = SHELLS
        .contains(&name)
        .then(|| arguments.iter().position(takes_script));
    arguments.get(option.flatten()? + 1).map(String::as_str)
}

/// Returns the position of the program that a command runs.
pub(super) fn program(words: &[String]) -> Option<usize> {
    let first = first(words)?;
    if !WRAPPERS.contains(&base(words.get(first)?)) {
        return Some(first);
    }
    // Options of the wrapper may have values, so the first known program is taken.
    let rest = words.get(first + 1..)?;
    let is_program = |word: &String| {
        let name = base(word);
        super::CLIENTS.contains(&name)
            || SHELLS.contains(&name)
            || name == "sshd"
            || name.starts_with("mpirun")
            || name.starts_with("mpiexec")
    };
    let is_plain = |word: &String| !word.starts_with('-') && !is_assignment(word);
    let known = rest
        .iter()
        .position(is_program)
        .or_else(|| rest.iter().position(is_plain));
    known.map(|n| first + 1 + n)
}

fn first(words: &[String]) -> Option<usize> {
    let is_before = |word: &String| KEYWORDS.contains(&word.as_str()) || is_assignment(word);
    words.iter().position(|word| !is_before(word))
}

/// Returns true for a word such as `NAME=value`.
pub(super) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_letter) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns the name of a program without its directory.
pub(super) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_split_into_commands_with_their_places() {
        let script = "set -e # x; y\nA=1 'b c' \"$(d e)\" 2>&1 && f g\\ h |i; exec /usr/sbin/sshd -De & # z";
        let read = commands(script);
        let words: Vec<String> = read.iter().map(|command| command.words.join("|")).collect();
        assert_eq!(
            words,
            [
                "set|-e",
                "d|e",
                "A=1|b c|$|2>&1",
                "f|g h",
                "i",
                "exec|/usr/sbin/sshd|-De"
            ]
        );
        let last = read.last().unwrap();
        assert_eq!(last.program(), Some(("sshd", 1)));
        assert_eq!(&script[last.starts[1]..last.end], "/usr/sbin/sshd -De");
        for unclosed in ["a 'b", "a \"$(b", "a `b", "a \\", "$(", "é $(é) é"] {
            assert!(!commands(unclosed).is_empty(), "{unclosed}");
        }
    }
}
