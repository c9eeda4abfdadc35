//! Programs that run beside a test.

use training_job_testbed::cluster::{ControlPlane, Program, Signal};

fn shell(script: &str) -> Program {
    Program::new("sh").args(["-c", script])
}

#[tokio::test]
async fn the_whole_output_of_a_program_is_kept() {
    let cluster = ControlPlane::shared().await;
    let program =
        cluster.spawn(shell("echo $WORD $(pwd); echo two >&2; printf half; exit 3").env("WORD", "one"));
    assert_eq!(program.exit_code().await, 3);
    let root = training_job_testbed::cluster::repository();
    assert_eq!(program.text(), format!("one {}\ntwo\nhalf", root.display()));
    assert_eq!(program.name(), "sh");
}

#[tokio::test]
async fn signals_are_the_programs_own() {
    let cluster = ControlPlane::shared().await;
    let patient = "trap 'echo asked; exit 7' TERM; echo $$; echo ready; while :; do sleep 0.05; done";
    let program = cluster.spawn(shell(patient));
    program.wait_for_line("ready").await;
    let pid = program.pid().as_raw_nonzero().to_string();
    assert_eq!(program.text().lines().next(), Some(&*pid));
    program.signal(Signal::STOP);
    program.signal(Signal::TERM);
    assert_eq!(program.ended(), None);
    program.signal(Signal::CONT);
    program.wait_for_line("asked").await;
    assert_eq!(program.exit_code().await, 7);
    program.signal(Signal::KILL);

    let program = cluster.spawn(shell("sleep 1000"));
    program.signal(Signal::KILL);
    assert_eq!(program.exit_code().await, 137);
}

#[tokio::test]
async fn a_program_is_the_administrator_by_default() {
    let cluster = ControlPlane::shared().await;
    let program = cluster.spawn(shell("echo $KUBECONFIG"));
    let line = program.wait_for_line("/").await;
    assert_eq!(line, cluster.kubeconfig().display().to_string());
    let program = cluster.spawn(shell("echo $KUBECONFIG; sleep 1000").env("KUBECONFIG", "/mine"));
    assert_eq!(program.wait_for_lines("/", 1).await, ["/mine"]);
    drop(program);
}

#[tokio::test]
#[should_panic = "awaited 1 × \"never\"; it ended with 0; its last lines:\nhello"]
async fn a_line_that_cannot_come_is_not_awaited() {
    let cluster = ControlPlane::shared().await;
    cluster.spawn(shell("echo hello")).wait_for_line("never").await;
}
