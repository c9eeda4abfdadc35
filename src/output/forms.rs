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

/// Returns the numbers of a line in one of the usual forms. The table of the tests lists them by framework.
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

/// Returns a line without the escape sequences of terminals, such as colours. Keras prints them to files as well.
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

/// Returns a line without what mpirun puts before it, such as `[1,0]<stdout>: `, and XGBoost's tracker, `[12:30:59] `.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_frameworks_have_numbers() {
        let numbers = |step: f64, total: Option<f64>, loss: Option<f64>| Numbers {
            step: Some(step),
            total,
            loss,
        };
        for (line, expected) in [
            // Assignments, and the words of many loops.
            ("step=120 loss=0.53", numbers(120.0, None, Some(0.53))),
            (
                "step 120/1000 loss: 0.53",
                numbers(120.0, Some(1_000.0), Some(0.53)),
            ),
            ("epoch 3/10", numbers(3.0, Some(10.0), None)),
            ("epoch 2, step 30: loss 1.5", numbers(30.0, None, None)),
            // tqdm, alone and in Lightning.
            (
                " 45%|████▌     | 45/100 [00:12<00:15,  3.61it/s, loss=0.3]",
                numbers(45.0, Some(100.0), Some(0.3)),
            ),
            (
                "Epoch 3:  45%|███  | 45/100 [00:12<00:15, 3.61it/s, v_num=0, train_loss=0.31]",
                numbers(45.0, Some(100.0), Some(0.31)),
            ),
            // Keras 3 and 2.
            (
                "45/100 ━━━━━━━━━━━━━━━━━━━━ 12s 3ms/step - accuracy: 0.91 - loss: 0.31",
                numbers(45.0, Some(100.0), Some(0.31)),
            ),
            ("Epoch 3/10", numbers(3.0, Some(10.0), None)),
            (
                " 45/100 [======>.............] - ETA: 3s - loss: 0.3120 - accuracy: 0.91",
                numbers(45.0, Some(100.0), Some(0.312)),
            ),
            // MXNet.
            (
                "INFO:root:Epoch[3] Batch [20]\tSpeed: 1000.50 samples/sec\taccuracy=0.93",
                numbers(20.0, None, None),
            ),
            ("Epoch[0] Train-accuracy=0.5", numbers(0.0, None, None)),
            // The examples of PyTorch and Horovod, which is started by mpirun --tag-output.
            (
                "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300123",
                numbers(640.0, Some(60_000.0), Some(2.300_123)),
            ),
            (
                "[1,0]<stdout>:Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.3",
                numbers(640.0, Some(60_000.0), Some(2.3)),
            ),
            (
                "Epoch: [0][ 10/391]\tTime  0.1 ( 0.2)\tLoss 6.9 (6.9)",
                numbers(10.0, Some(391.0), None),
            ),
            // JSON lines, and the Trainer of Hugging Face.
            (
                r#"{"step": 100, "loss": 0.31, "lr": 1e-4}"#,
                numbers(100.0, None, Some(0.31)),
            ),
            (
                "{'loss': 0.31, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.5}",
                numbers(0.5, None, Some(0.31)),
            ),
            // XGBoost.
            ("[12]\ttrain-rmse:0.31\teval-rmse:0.4", numbers(12.0, None, None)),
            // Estimators, Megatron, Paddle.
            (
                "INFO:absl:loss = 0.31, step = 100 (2.3 sec)",
                numbers(100.0, None, Some(0.31)),
            ),
            (
                " iteration       10/     100 | consumed samples:  640 | lm loss: 3.1E+00 |",
                numbers(10.0, Some(100.0), Some(3.1)),
            ),
            (
                "step 10/100 - loss: 0.3000 - acc: 0.9 - 12ms/step",
                numbers(10.0, Some(100.0), Some(0.3)),
            ),
            // Real lines of tqdm 4.70, Lightning 2.6 and the Trainer of Hugging Face (transformers), without a terminal.
            (
                "100%|█████████▉| 6580/6600 [05:33<00:01, 19.81it/s, loss=0.000152]",
                numbers(6_580.0, Some(6_600.0), Some(0.000_152)),
            ),
            (
                "Epoch 1:  88%|████████▊ | 7/8 [00:00<00:00, 350.95it/s, train_loss=0.152, val_loss=0.100]",
                numbers(7.0, Some(8.0), Some(0.152)),
            ),
            (
                "Validation DataLoader 0:  12%|█▎        | 1/8 [00:00<00:00, 881.90it/s]\u{1b}[A",
                numbers(1.0, Some(8.0), None),
            ),
            (
                "{'loss': '1.018', 'grad_norm': '2.715', 'learning_rate': '4.063e-05', 'epoch': '0.5'}",
                numbers(0.5, None, Some(1.018)),
            ),
            // Keras 3.15 prints colours to a file as well.
            (
                "\u{1b}[1m 8/10\u{1b}[0m \u{1b}[32m━━━━━━━━━━━━━━━━\u{1b}[0m\u{1b}[37m━━━━\u{1b}[0m \u{1b}[1m0s\u{1b}[0m 8ms/step - loss: 0.5247 - mae: 0.6084 \u{8}\u{8}",
                numbers(8.0, Some(10.0), Some(0.524_7)),
            ),
            (
                "10/10 - 0s - 9ms/step - loss: 0.2529 - mae: 0.4094",
                numbers(10.0, Some(10.0), Some(0.252_9)),
            ),
            // MXNet 1.9.
            (
                "INFO:root:Epoch[0] Batch [20-40]\tSpeed: 14993.98 samples/sec\taccuracy=0.477500",
                numbers(40.0, None, None),
            ),
            ("INFO:root:Epoch[0] Time cost=0.172", numbers(0.0, None, None)),
            // Paddle 3.3.
            (
                "step  2/10 - loss: 0.6337 - acc: 0.6562 - 27ms/step",
                numbers(2.0, Some(10.0), Some(0.633_7)),
            ),
            (
                "step 10/10 [==============================] - loss: 0.6837 - acc: 0.5156 - 2ms/step",
                numbers(10.0, Some(10.0), Some(0.683_7)),
            ),
            // XGBoost 3.2, alone and by its tracker, as in a job of several ranks.
            (
                "[11]\ttrain-logloss:0.64057\ttrain-auc:0.73415\teval-logloss:0.64057",
                numbers(11.0, None, Some(0.640_57)),
            ),
            (
                "[21:38:07] [10]\ttrain-logloss:0.06137",
                numbers(10.0, None, Some(0.061_37)),
            ),
            // mpirun --output tag of Open MPI 5.
            (
                "[1,1]<stdout>: Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300123",
                numbers(640.0, Some(60_000.0), Some(2.300_123)),
            ),
            (
                "[1,1]<stdout>: 45/100 - 0s - loss: 0.5",
                numbers(45.0, Some(100.0), Some(0.5)),
            ),
            (
                "[Sun Nov 29 21:25:17 2026][1,1]<stdout>: [12]\ttrain-rmse:0.31",
                numbers(12.0, None, None),
            ),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn other_lines_have_no_step() {
        for line in [
            "",
            "Loading data from /data/2024/01/02",
            "2024/01/02 12:00:00 connected",
            "downloading 12/13",
            "[rank0]: waiting",
            "loss=0.5",
            "step one",
            "[1] + running",
            "11/29 21:00:00 - INFO - began",
            "[21:38:07] Task 000000 got rank 0",
            "\u{1b}[A",
        ] {
            assert_eq!(read(line).step, None, "{line}");
        }
    }
}
