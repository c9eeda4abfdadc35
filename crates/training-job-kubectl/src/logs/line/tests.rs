//! Tests of the order and the form of lines.

use super::*;

fn line(time: &str, replica: usize, text: &str) -> Line {
    Line::parse(&format!("{time} {text}\n"), replica, Timestamp::MIN)
}

#[test]
fn a_line_without_a_time_has_the_time_of_the_line_before() {
    let first = line("2026-01-02T03:04:05.5Z", 0, "step 1");
    assert_eq!(first.text, "step 1");
    let rest = Line::parse("rest of it\r\n", 0, first.time);
    assert_eq!((rest.time, rest.text.as_str()), (first.time, "rest of it"));
    let empty = Line::parse("2026-01-02T03:04:05Z\n", 0, Timestamp::MIN);
    assert_eq!(empty.text, "");
}

#[test]
fn names_are_aligned_and_have_a_color_of_their_own() {
    let painter = Painter::new(["worker-0", "scheduler-0"].into_iter(), false);
    let [a, b] = [0, 1].map(|replica| painter.paint(&line("2026-01-02T03:04:05Z", replica, "hi")));
    assert_eq!(a, "\u{1b}[36mworker-0    |\u{1b}[0m hi\n");
    assert_eq!(b, "\u{1b}[32mscheduler-0 |\u{1b}[0m hi\n");
}
