//! Finds the word that a misspelled word was meant to be.

/// Returns the word of `known` that is nearest to `word`, ignoring case, if it is only a few typing errors away.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.to_lowercase();
    let allowed = match wanted.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        6..=8 => 2,
        _ => 3,
    };
    known
        .into_iter()
        .map(|candidate| (distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the number of characters to insert, delete, replace or swap with their neighbor to turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut previous = None;
    for (i, x) in a.chars().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != *y);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if j > 0 && previous == Some(*y) && x == b[j - 1] {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        previous = Some(x);
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found() {
        let known = ["Scheduler", "Server", "Worker", "Tuner"];
        for (word, expected) in [
            ("worker", Some("Worker")),
            ("Workr", Some("Worker")),
            ("Wokrer", Some("Worker")),
            ("Sceduler", Some("Scheduler")),
            ("Chief", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        // Allowed errors: 0 for up to two letters, 1 for up to five, 2 for up to eight, otherwise 3.
        for (word, known, expected) in [
            ("on", "on", true),
            ("on", "in", false),
            ("one", "ones", true),
            ("seven", "sever", true),
            ("seven", "serer", false),
            ("twelve", "txxlve", true),
            ("twelve", "txxxve", false),
            ("thirteen", "txxrteen", true),
            ("thirteens", "txxxteens", true),
            ("thirteens", "txxxxeens", false),
        ] {
            assert_eq!(nearest(word, [known]).is_some(), expected, "{word} {known}");
        }
        for (a, b, expected) in [
            ("", "abc", 3),
            ("abc", "", 3),
            ("ab", "ba", 1),
            ("abc", "abc", 0),
            ("abc", "axc", 1),
            ("abc", "abxc", 1),
            ("abxc", "abc", 1),
            ("abcd", "acbd", 1),
            ("abcd", "badc", 2),
            ("kitten", "sitting", 3),
            ("ca", "abc", 3),
            ("aab", "aba", 1),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
