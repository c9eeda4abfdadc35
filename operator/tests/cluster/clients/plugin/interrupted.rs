//! `restart`, ended before the operator has suspended the job.

use std::path::Path;

use rustix::process::Signal;
use training_job_testbed::cluster::{Background, Program};

use super::links;
use super::rights::Account;
use crate::clients::stage::Stage;

/// Starts a restart of a job that no operator suspends, and returns it once the job has `suspend: true`.
async fn restart(stage: &Stage, kubeconfig: &Path) -> Background {
    let restart = stage.cluster.spawn(
        Program::new(links(stage.cluster).join("kubectl-training"))
            .args(["restart", "mxjob/spirals", "--timeout", "10m"])
            .env("KUBECONFIG", kubeconfig),
    );
    let suspended = "--for=jsonpath={.spec.runPolicy.suspend}=true";
    stage
        .run(&["wait", "mxjob", "spirals", suspended, "--timeout=60s"])
        .await;
    restart
}

async fn stage_without_operator(name: &str) -> Stage {
    let stage = Stage::new(name).await;
    stage.run(&["create", "-f", "examples/mxnet/train.yaml"]).await;
    stage.all_run("spirals", 5, "0").await;
    stage.operator.signal(Signal::TERM);
    stage.operator.exit_code().await;
    stage
}

#[tokio::test]
async fn the_job_is_resumed() {
    let stage = stage_without_operator("plugin-interrupted").await;
    let kubeconfig = stage.cluster.kubeconfig_in(&stage.namespace);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let restart = restart(&stage, &kubeconfig).await;
        restart.signal(signal);
        assert_eq!(restart.exit_code().await, code, "{}", restart.text());
        let suspend = [
            "get",
            "mxjob",
            "spirals",
            "-o",
            "jsonpath={.spec.runPolicy.suspend}",
        ];
        assert_eq!(stage.run(&suspend).await, "false", "{signal:?}");
    }
}

#[tokio::test]
async fn a_job_that_cannot_be_resumed_is_named_with_its_remedy() {
    let stage = stage_without_operator("plugin-stuck").await;
    let account = Account::new(&stage).await;
    let right = |verb: &str| (verb.to_owned(), "jobs".to_owned());
    let (read, patch) = (["get", "list", "watch"].map(right), right("patch"));
    account
        .may(&[&read[..], std::slice::from_ref(&patch)].concat(), None)
        .await;
    let restart = restart(&stage, &account.kubeconfig).await;
    account.may(&read, Some(&patch)).await;
    restart.signal(Signal::INT);
    assert_eq!(restart.exit_code().await, 2, "{}", restart.text());
    let text = restart.text();
    assert!(
        text.contains(
            "MXJob/spirals stays suspended; when this is solved, run: kubectl training resume MXJob/spirals"
        ),
        "{text}"
    );
    assert!(text.contains("not allowed to patch"), "{text}");
}
