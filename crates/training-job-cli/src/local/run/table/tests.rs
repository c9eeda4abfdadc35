//! Tests of the layout of tables.

use super::*;

fn job() -> JobLine {
    JobLine {
        name: "spirals".to_owned(),
        state: "Running".to_owned(),
        elapsed: 250,
        restarts: 1,
        backoff_limit: Some(3),
        left: Some(350),
    }
}

/// Returns the rows of one master and some workers, the last of them failed.
fn rows(workers: usize, failed: usize) -> (Vec<Row>, Vec<Row>) {
    let mut phases = vec!["Running"; workers - failed];
    phases.extend(vec!["Failed"; failed]);
    let restarts = i32::try_from(failed).unwrap() * 2;
    let roles = vec![
        Row::of_role("Master", 1, &["Running"], 0),
        Row::of_role("Worker", workers, &phases, restarts),
    ];
    let troubled = (workers - failed..workers).map(|index| Row {
        name: format!("worker-{index}"),
        phase: vec!["Failed".to_owned()],
        age: Some(72),
        exit_code: Some(1),
        restarts: 2,
    });
    (roles, troubled.collect())
}

fn live_text(workers: usize, failed: usize, (screen, columns): (usize, usize)) -> String {
    let (roles, troubled) = rows(workers, failed);
    live(&[job()], &roles, &troubled, screen, columns).join("\n")
}

#[test]
fn replicas_that_are_well_have_a_row_for_their_role() {
    let expected = "\
spirals  Running  4m10s  restarts 1 of 3  5m50s left
REPLICA  PHASE            RESTARTS
Master   1/1 running             0
Worker   200/200 running         0";
    assert_eq!(live_text(200, 0, (24, 80)), expected);
    assert_eq!(live_text(200, 0, (24, 200)), expected);
}

#[test]
fn replicas_in_trouble_have_a_row_each() {
    let expected = "\
spirals  Running  4m10s  restarts 1 of 3  5m50s left
REPLICA   PHASE                    AGE  EXIT  RESTARTS
Master    1/1 running                                0
Worker    2/3 running, 1 failed                      2
worker-2  Failed                 1m12s     1         2";
    assert_eq!(live_text(3, 1, (24, 80)), expected);
}

#[test]
fn the_table_takes_a_third_of_the_screen() {
    let text = live_text(200, 30, (24, 80));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 8, "{text}");
    assert_eq!(lines[7], "... and 27 more");
    assert!(
        lines[3].starts_with("Worker") && lines[3].contains("170/200 running, 30 failed"),
        "{text}"
    );
    assert_eq!(
        live_text(200, 30, (3, 80)),
        "spirals  Running  4m10s  restarts 1 of 3  5m50s left"
    );
    assert_eq!(live_text(200, 30, (1, 80)), "");
    assert_eq!(live_text(200, 30, (0, 80)), "");
}

#[test]
fn a_narrow_screen_loses_columns_and_no_part_of_a_word() {
    assert_eq!(
        live_text(200, 1, (24, 40)),
        "\
spirals  Running  4m10s  restarts 1 of 3
REPLICA     PHASE
Master      1/1 running
Worker      199/200 running, 1 failed
worker-199  Failed"
    );
}

#[test]
fn long_names_lose_their_first_words() {
    let row = |phase: &str| Row {
        name: "second-job-with-long-name-master-0".to_owned(),
        phase: vec![phase.to_owned()],
        age: Some(9),
        exit_code: Some(137),
        restarts: 12,
    };
    let job = JobLine {
        name: "second-job-with-long-name".to_owned(),
        ..job()
    };
    let at = |columns| {
        live(
            std::slice::from_ref(&job),
            &[],
            &[row("Waiting 10s")],
            24,
            columns,
        )
        .join("\n")
    };
    assert_eq!(
        at(80),
        "\
second-job-with-long-name  Running  4m10s  restarts 1 of 3  5m50s left
REPLICA                             PHASE        AGE  EXIT  RESTARTS
second-job-with-long-name-master-0  Waiting 10s   9s   137        12"
    );
    assert_eq!(
        at(40),
        "\
…-job-with-long-name  Running  4m10s
REPLICA                      PHASE
…-with-long-name-master-0    Waiting 10s"
    );
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for columns in 0..=200 {
        for (workers, failed) in [(3, 0), (3, 1), (200, 30)] {
            let text = live_text(workers, failed, (24, columns));
            assert!(
                text.lines().all(|line| line.chars().count() <= columns),
                "{columns}:\n{text}"
            );
        }
    }
}

#[test]
fn a_role_counts_replicas_that_do_not_exist_yet() {
    let row = Row::of_role("Worker", 40, &["Running"], 1);
    assert_eq!(row.phase, ["1/40 running", "39 pending"]);
    assert_eq!(row.restarts, 1);
}

#[test]
fn the_summary_has_all_replicas_and_columns() {
    let (_, troubled) = rows(3, 2);
    assert_eq!(
        full(&troubled),
        [
            "REPLICA   PHASE     AGE  EXIT  RESTARTS",
            "worker-1  Failed  1m12s     1         2",
            "worker-2  Failed  1m12s     1         2",
        ]
    );
}
