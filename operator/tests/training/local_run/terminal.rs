//! The live view on a terminal.

use std::process::Command;

use training_operator_testing::local_run::manifest::Manifest;
use training_operator_testing::local_run::run::{Ended, Run};
use training_operator_testing::local_run::trial::{Trial, local_run};

/// Runs a command on a terminal of the given size, and copies its output. Types Ctrl-C once the output contains
/// `INTERRUPT_AT`.
const TERMINAL: &str = "
import fcntl, os, pty, struct, sys, termios
rows, columns, *command = sys.argv[1:]
pid, master = pty.fork()
if pid == 0:
    size = struct.pack('HHHH', int(rows), int(columns), 0, 0)
    fcntl.ioctl(0, termios.TIOCSWINSZ, size)
    os.execv(command[0], command)
interrupt_at, seen = os.environ.get('INTERRUPT_AT', '').encode(), b''
try:
    while chunk := os.read(master, 65536):
        seen += chunk
        if interrupt_at and interrupt_at in seen:
            os.write(master, b'\\x03')
            interrupt_at = b''
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

/// A script for workers that print a few lines with pauses.
const SCRIPT: &str = "for i in 1 2 3; do echo \"line $$i of $$HOSTNAME\"; sleep 0.2; done; printf 'no end'";

fn on_terminal(trial: &Trial, rows: u16, columns: u16, set: &[(&str, &str)]) -> Ended {
    on_terminal_with(trial, (rows, columns), set, SCRIPT, "")
}

fn on_terminal_with(
    trial: &Trial,
    (rows, columns): (u16, u16),
    set: &[(&str, &str)],
    script: &str,
    redirect: &str,
) -> Ended {
    let inner = local_run();
    let shell = format!("exec \"$0\" \"$@\" {redirect}");
    let mut outer = Command::new("python3");
    outer.args([
        "-c",
        TERMINAL,
        &rows.to_string(),
        &columns.to_string(),
        "/bin/sh",
        "-c",
        &shell,
    ]);
    outer.arg(inner.get_program()).args(inner.get_args());
    outer.arg(trial.write(&Manifest::shell("shown", 3, script)));
    outer
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .envs(set.iter().copied());
    Run::start(&mut outer).end_anyhow()
}

/// Returns the content of a terminal after these bytes: all its lines in their last state, including those scrolled
/// away.
fn screen(bytes: &str) -> Vec<String> {
    let mut lines: Vec<Vec<char>> = vec![Vec::new()];
    let (mut row, mut column) = (0, 0);
    let mut rest = bytes;
    while let Some(char) = rest.chars().next() {
        rest = &rest[char.len_utf8()..];
        match char {
            '\n' => row += 1,
            '\r' => column = 0,
            '\u{1b}' => {
                let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                let number: usize = rest[1..end].parse().unwrap_or(0);
                match &rest[end..=end] {
                    "A" => row -= number.max(1).min(row),
                    "J" => {
                        lines.truncate(row + 1);
                        lines[row].truncate(column);
                    }
                    // Colors have no width.
                    "m" => {}
                    letter => panic!("a sequence that is not known: {letter}"),
                }
                rest = &rest[end + 1..];
            }
            char => {
                let line = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = char;
                column += 1;
            }
        }
        lines.resize(lines.len().max(row + 1), Vec::new());
    }
    let text = |line: Vec<char>| line.into_iter().collect::<String>().trim_end().to_owned();
    lines.into_iter().map(text).collect()
}

fn written(ended: &Ended) -> String {
    ended.out.join("\n")
}

/// Checks that the table was visible while the job ran, and that finally each line appears once and complete, with
/// one table.
#[track_caller]
fn expect_shown(ended: &Ended) {
    ended.expect_code(0);
    let written = written(ended);
    let tables = written.matches("REPLICA ").count();
    assert!(tables > 1, "no table while it ran:\n{written}");
    assert!(
        written.contains("Worker   3/3 running"),
        "no role was seen running:\n{written}"
    );
    let screen = screen(&written);
    for name in ["worker-0", "worker-1", "worker-2"] {
        for line in 1..=3 {
            let whole = format!("{name} | line {line} of shown-{name}");
            assert_eq!(
                screen.iter().filter(|l| **l == whole).count(),
                1,
                "{whole}\n{screen:#?}"
            );
        }
        let unended = format!("{name} | no end");
        assert_eq!(screen.iter().filter(|l| **l == unended).count(), 1, "{screen:#?}");
    }
    let headers = screen.iter().filter(|line| line.starts_with("REPLICA"));
    assert_eq!(
        headers.count(),
        1,
        "the live table is gone in the end: {screen:#?}"
    );
    let rows = screen
        .iter()
        .rev()
        .take_while(|line| !line.starts_with("REPLICA"));
    let rows: Vec<_> = rows.filter(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 3, "{screen:#?}");
    assert!(!written.contains("\u{1b}[?25l"), "the cursor is left as it is");
}

#[test]
fn the_table_changes_below_the_lines() {
    let trial = Trial::new();
    let ended = on_terminal(&trial, 40, 100, &[]);
    expect_shown(&ended);
    // Names have colors, and the output of processes has none.
    let coloured = written(&ended);
    assert!(
        coloured.contains("mworker-0\u{1b}[0m | line 1 of shown-worker-0"),
        "{coloured:?}"
    );
}

/// The terminal has fewer rows than the table, and fewer columns than a line.
#[test]
fn a_small_terminal_loses_no_line() {
    let trial = Trial::new();
    let ended = on_terminal(&trial, 3, 100, &[]);
    ended.expect_code(0);
    let screen = screen(&written(&ended));
    for name in ["worker-0", "worker-1", "worker-2"] {
        let last = format!("{name} | line 3 of shown-{name}");
        assert_eq!(screen.iter().filter(|l| **l == last).count(), 1, "{screen:#?}");
    }
}

/// Some terminals of CI services have no size.
#[test]
fn a_terminal_without_a_size_loses_no_line() {
    let trial = Trial::new();
    let ended = on_terminal(&trial, 0, 0, &[]);
    ended.expect_code(0);
    let written = written(&ended);
    for name in ["worker-0", "worker-1", "worker-2"] {
        assert!(
            written.contains(&format!(" | line 3 of shown-{name}")),
            "{written}"
        );
    }
}

#[test]
fn no_color_is_heeded() {
    let trial = Trial::new();
    let ended = on_terminal(&trial, 40, 100, &[("NO_COLOR", "1")]);
    expect_shown(&ended);
    let written = written(&ended);
    assert!(
        written.contains("worker-0 | line 1") && !written.contains("\u{1b}[0m"),
        "{written:?}"
    );
}

/// An empty value counts as unset, as https://no-color.org specifies.
#[test]
fn an_empty_no_color_is_none() {
    let trial = Trial::new();
    let ended = on_terminal(&trial, 40, 100, &[("NO_COLOR", "")]);
    assert!(
        written(&ended).contains("mworker-0\u{1b}[0m | line 1"),
        "{}",
        ended.transcript()
    );
}

/// The terminal cannot move its cursor. The output must have no escape sequences, and every line.
#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let trial = Trial::new();
    let ended = on_terminal(&trial, 40, 100, &[("TERM", "dumb")]);
    ended.expect_code(0);
    assert!(!written(&ended).contains('\u{1b}'), "{:?}", written(&ended));
    ended.only(&["worker-0 | line 3 of shown-worker-0"]);
    ended.only(&["worker-0 * Running"]);
}

/// The terminal writes ^C where the cursor is.
#[test]
fn ctrl_c_leaves_no_part_of_the_table() {
    let trial = Trial::new();
    let set = [("INTERRUPT_AT", "3/3 running")];
    let ended = on_terminal_with(&trial, (40, 100), &set, "exec sleep 1000", "");
    ended.expect_code(130);
    let screen = screen(&written(&ended));
    let is_note = |line: &&String| line.contains("stopping; a second signal");
    let notes: Vec<_> = screen.iter().filter(is_note).collect();
    assert_eq!(
        notes,
        ["training-operator: stopping; a second signal kills the processes at once"],
        "{screen:#?}"
    );
    let headers = screen.iter().filter(|line| line.contains("REPLICA"));
    assert_eq!(headers.count(), 1, "{screen:#?}");
}

/// `2> errors.txt` redirects the warnings, not the view.
#[test]
fn errors_in_a_file_do_not_change_the_view() {
    let trial = Trial::new();
    let ended = on_terminal_with(&trial, (40, 100), &[], SCRIPT, "2>/dev/null");
    expect_shown(&ended);
}
