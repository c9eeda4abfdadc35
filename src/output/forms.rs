//! The forms in which frameworks print steps and losses.

use std::borrow::Cow;

/// The words before the number of a step, without regard to case.
pub const STEP_WORDS: [&str; 8] = [
    "step",
    "steps",
    "global_step",
    "train_step",
    "iter",
    "iteration",
    "batch",
    "epoch",
];

/// The numbers of a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// The step.
    pub step: Option<f64>,
    /// The number of steps.
    pub total: Option<f64>,
    /// The loss.
    pub loss: Option<f64>,
}

/// A word that a number follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair<'a> {
    /// The word.
    pub word: &'a str,
    /// The number, which is finite.
    pub number: f64,
    /// The number after the slash in `120/1000`.
    pub total: Option<f64>,
    /// True if the number follows `=` or `:`, as a metric's does.
    pub is_assigned: bool,
}

impl Pair<'_> {
    fn is_step(&self) -> bool {
        STEP_WORDS.iter().any(|word| self.word.eq_ignore_ascii_case(word))
    }

    fn is_epoch(&self) -> bool {
        self.word.eq_ignore_ascii_case("epoch")
    }

    fn is_loss(&self) -> bool {
        let word = self.word.as_bytes();
        let end = word.len().checked_sub(4).and_then(|from| word.get(from..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(b"loss")) && self.is_assigned
    }
}

/// Returns the words that a finite number follows: `step 120/1000`, `Epoch[3]`, `loss=0.53`, `"accuracy": 0.9`.
pub fn pairs(text: &str) -> Vec<Pair<'_>> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | '@');
    let mut pairs = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find(|c: char| c.is_alphabetic()) {
        rest = rest.get(begin..).unwrap_or_default();
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let number = after.trim_start_matches([' ', '=', ':', '[', '#', '\t', '(', '"', '\'']);
        let between = after.strip_suffix(number).unwrap_or_default();
        match leading_number(end_of_range(number)) {
            Some((value, left)) if !between.is_empty() => {
                let total = left.strip_prefix('/').map(str::trim_start);
                pairs.push(Pair {
                    word,
                    number: value,
                    total: total.and_then(leading_number).map(|(total, _)| total),
                    is_assigned: between.contains(['=', ':']),
                });
                rest = left;
            }
            _ => rest = after,
        }
    }
    pairs
}

/// Returns a text from the second number of a range such as `20-40]`, or else all of it.
fn end_of_range(text: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let range = text.split_once(']').and_then(|(range, _)| range.split_once('-'));
    match range.filter(|(from, to)| is_number(from) && is_number(to)) {
        Some((from, _)) => text.get(from.len() + 1..).unwrap_or_default(),
        None => text,
    }
}

/// Returns the finite number at the beginning of a text, and what is left.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let length = text
        .find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+' | 'e' | 'E'))
        .unwrap_or(text.len());
    let digits = text
        .get(..length)
        .unwrap_or_default()
        .trim_end_matches(['.', '-', '+', 'e', 'E']);
    let begins_with_number = digits.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    let value: f64 = digits.parse().ok().filter(|_| begins_with_number)?;
    let left = text.get(digits.len()..).unwrap_or_default();
    value.is_finite().then_some((value, left))
}

/// Returns the numbers of a line in one of the usual forms. The table in `tests/plan/forms.rs` lists them by framework.
pub(super) fn read(line: &str) -> Numbers {
    let line = without_escapes(line);
    let line = without_prefix(&line);
    let pairs = pairs(line);
    let loss = pairs.iter().find(|pair| pair.word.eq_ignore_ascii_case("loss"));
    let loss = loss.filter(|pair| pair.is_assigned);
    let loss = loss.or_else(|| pairs.iter().find(|pair| pair.is_loss()));
    let steps = || pairs.iter().filter(|pair| pair.is_step());
    // With `epoch 2 step 30`, the finer one counts.
    let (step, total) = if let Some(step) = steps().find(|pair| !pair.is_epoch()) {
        (Some(step.number), step.total)
    } else if let Some((step, total)) = of_bar(line).or_else(|| in_brackets(line)) {
        (Some(step), Some(total))
    } else if let Some(epoch) = steps().next() {
        (Some(epoch.number), epoch.total)
    } else {
        let has_metric = pairs.iter().any(|pair| pair.is_assigned);
        (of_round(line).filter(|_| has_metric), None)
    };
    Numbers {
        step,
        total,
        loss: loss.map(|pair| pair.number),
    }
}

/// Returns a line without the escape sequences of terminals, such as colors. Some programs print them to files as well.
fn without_escapes(line: &str) -> Cow<'_, str> {
    let Some((begin, _)) = line.split_once('\u{1b}') else {
        return Cow::Borrowed(line);
    };
    let mut plain = begin.to_owned();
    for part in line.split('\u{1b}').skip(1) {
        let is_end = |c: char| matches!(c, '@'..='~');
        let text = part.strip_prefix('[').and_then(|part| part.split_once(is_end));
        plain += text.map_or(part, |(_, text)| text);
    }
    Cow::Owned(plain)
}

/// Returns a line without the prefix of a launcher, such as `[1,0]<stdout>: `, and without a time, such as `[12:30:59] `.
fn without_prefix(line: &str) -> &str {
    let line = ["]<stdout>:", "]<stderr>:"]
        .iter()
        .find_map(|stream| line.split_once(stream))
        .map_or(line, |(_, text)| text.trim_start());
    let is_time = |time: &str| time.len() == 8 && time.chars().all(|c| c.is_ascii_digit() || c == ':');
    let timed = line.strip_prefix('[').and_then(|line| line.split_once("] "));
    timed
        .filter(|(time, _)| is_time(time))
        .map_or(line, |(_, text)| text)
}

/// Returns the numbers of a bar: ` 45%|████▌     | 45/100 [00:12<00:15, 3.61it/s]`, or `45/100 ━━━━━━ 12s 3ms/step`.
fn of_bar(line: &str) -> Option<(f64, f64)> {
    let after = match line.split_once("%|") {
        Some((_, bar)) => bar.rsplit_once('|').map(|(_, after)| after)?,
        None => line,
    };
    let after = after.trim_start();
    // `11/29 21:00:00` is a date.
    let rest = after.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
    fraction(after, ' ').filter(|_| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the numbers in brackets: `Train Epoch: 1 [640/60000 (1%)]`.
fn in_brackets(line: &str) -> Option<(f64, f64)> {
    line.split('[').skip(1).find_map(|after| {
        let after = after.trim_start();
        fraction(after, ' ').or_else(|| fraction(after, ']'))
    })
}

/// Returns the numbers of a fraction such as `640/60000` at the beginning of a text, if `end` follows.
fn fraction(text: &str, end: char) -> Option<(f64, f64)> {
    let (step, rest) = leading_number(text)?;
    let (total, rest) = leading_number(rest.strip_prefix('/')?.trim_start())?;
    (step <= total && rest.starts_with(end)).then_some((step, total))
}

/// Returns the number of a round: `[12]\ttrain-rmse:0.31`.
fn of_round(line: &str) -> Option<f64> {
    let (round, rest) = leading_number(line.trim_start().strip_prefix('[')?)?;
    rest.strip_prefix(']')?.starts_with([' ', '\t']).then_some(round)
}
