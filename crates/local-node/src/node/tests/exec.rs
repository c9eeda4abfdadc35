//! Commands that pods run in other pods.

use std::path::Path;

use serde_json::{Value, json};

use super::fake_api::Bench;
use super::{dead, script};
use crate::{AdjustEnv, NodeConfig};

fn bench() -> Bench {
    let set_names: AdjustEnv = |pod, env| {
        env.set("EXEC", pod.exec.display().to_string(), "to call others");
        env.set("TMPDIR", pod.temporary.display().to_string(), "its own");
    };
    Bench::new(NodeConfig {
        adjust_env: [("toy".to_owned(), set_names)].into(),
        ..NodeConfig::default()
    })
}

/// Creates a pod that runs `run`.
fn create(bench: &Bench, name: &str, run: &str) {
    let mut spec = script("Never", run);
    // The commands that other pods run here. (`$$$$` is `$$` once references are expanded.) The first leaves its
    // group and session.
    spec["containers"][0]["env"] = json!([
        {"name": "AWAY", "value": "setsid sh -c 'echo pid $$$$; exec sleep 1000'"},
        {"name": "OVER", "value": r#"exec "$EXEC" host 'eval "$AWAY"'"#},
        {"name": "NAME", "value": "it's theirs"},
    ]);
    let labels: Value = json!({"metadata": {"labels": {"training.kubeflow.org/operator-name": "toy"}}});
    bench.api.create(name, name, &spec, labels);
}

const STAY: &str = "echo up; exec sleep 1000";

async fn pid(bench: &mut Bench) -> u32 {
    let line = bench.line("pid ").await;
    line.trim_start_matches("pid ").parse().unwrap()
}

#[tokio::test]
async fn a_command_runs_in_another_pod_with_its_callers_input_and_output() {
    let mut bench = bench();
    create(&bench, "host", STAY);
    bench.line("up").await;
    let call = r#"
        echo in | "$EXEC" host 'read line;' 'echo "$line: $NAME $HOSTNAME ${MINE-none}"; touch "$TMPDIR/x"; echo "$TMPDIR"; exit 7'
        echo "code $?; $(ls "$TMPDIR" | wc -l) here"
    "#;
    create(&bench, "caller", &format!("export MINE=x; {call}"));
    assert_eq!(bench.line("in: ").await, "in: it's theirs host none");
    let theirs = bench.line("tmp").await;
    assert_eq!(bench.line("code").await, "code 7; 0 here");
    assert!(Path::new(&theirs).join("x").exists());
    bench.node.take().unwrap().kill();
    assert!(!Path::new(&theirs).exists(), "nothing is left");
}

#[tokio::test]
async fn a_pod_that_comes_later_is_awaited() {
    let mut bench = bench();
    bench.api.service("host");
    create(
        &bench,
        "caller",
        // The name is replaced by its address where a service has that name.
        r#"echo calling; exec "$EXEC" host echo done in '$HOSTNAME'"#,
    );
    bench.line("calling").await;
    create(&bench, "host", STAY);
    assert_eq!(bench.line("done").await, "done in host");
    bench.api.phase("caller", "Succeeded").await;
}

#[tokio::test]
async fn a_command_ends_with_the_pod_that_it_runs_in() {
    let mut bench = bench();
    create(&bench, "host", STAY);
    create(&bench, "caller", r#""$EXEC" host 'eval "$AWAY"'; echo "code $?""#);
    let command = pid(&mut bench).await;
    bench.api.delete_gracefully("host", 0);
    assert_eq!(bench.line("code").await, "code 137");
    dead(command).await;
    bench.api.phase("caller", "Succeeded").await;
}

#[tokio::test]
async fn a_command_ends_with_its_caller_also_over_a_third_pod() {
    let mut bench = bench();
    create(&bench, "host", STAY);
    create(&bench, "between", STAY);
    create(&bench, "caller", r#""$EXEC" between 'eval "$OVER"' & wait"#);
    let command = pid(&mut bench).await;
    bench.api.delete_gracefully("caller", 0);
    bench.api.gone("caller").await;
    dead(command).await;
    assert_eq!(
        bench.api.phases("host"),
        ["Running"],
        "the pod itself is left alone"
    );
}
