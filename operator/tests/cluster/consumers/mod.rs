//! Models of programs that read jobs, at each stage of each kind's life on a real API server. `consumer_programs`
//! runs other programs' own code on the same recordings.

mod models;
mod shipped;

use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::recordings::life::{Recording, Stage, is, play};
use training_operator_testing::recordings::problems::Problems;

use models::{
    arena_pods, arena_state, flyte_times_out, kai_min_available, karmada, labeled, mlrun_state,
    newest_true_condition,
};

/// Returns the newest condition at a stage.
fn newest(stage: Stage) -> &'static str {
    match stage {
        Stage::New => "",
        Stage::Created | Stage::Waiting | Stage::Gang => "Created",
        Stage::Running | Stage::Restarted | Stage::Resumed | Stage::TakenOver => "Running",
        Stage::Restarting => "Restarting",
        Stage::Suspended => "Suspended",
        Stage::Succeeded | Stage::Quick => "Succeeded",
        Stage::Failed => "Failed",
    }
}

#[tokio::test]
async fn models_of_readers_conclude_the_stage_of_each_kind() {
    let mut problems = Problems::default();
    for recording in &play(ControlPlane::shared().await).await {
        read_conditions(&mut problems, recording);
        if recording.kind.is_kubeflow() {
            read_counts(&mut problems, recording);
            read_pods(&mut problems, recording);
        }
    }
    problems.expect_none();
}

fn read_conditions(problems: &mut Problems, recording: &Recording) {
    let (job, stage) = (&recording.job, recording.stage);
    problems.expect("Flyte", recording, newest_true_condition(job), newest(stage));
    // The operator has observed the job within a minute.
    if stage != Stage::New {
        problems.expect("Flyte's timeout", recording, flyte_times_out(job), false);
    }
    let arena = match newest(stage) {
        "Succeeded" => "SUCCEEDED",
        "Failed" => "FAILED",
        "Running" => "RUNNING",
        _ => "PENDING",
    };
    problems.expect("Arena", recording, arena_state(job), arena);
    // `kubectl wait --for=condition=Running` must observe it, however short the job.
    if stage == Stage::Quick {
        problems.expect("kubectl wait", recording, recording.ran, true);
    }
    let is_over = matches!(stage, Stage::Succeeded | Stage::Failed | Stage::Quick);
    let has_ended = job["status"]["completionTime"].is_string();
    problems.expect("completionTime", recording, has_ended, is_over);
    problems.expect("Created", recording, is(job, "Created"), stage != Stage::New);
}

fn read_counts(problems: &mut Problems, recording: &Recording) {
    let (kind, stage) = (recording.kind, recording.stage);
    let all = kind.pods() as u64;
    let (counts, health) = karmada(&recording.job);
    let expected = match stage {
        Stage::New | Stage::Created | Stage::Suspended | Stage::Gang => [0, 0, 0],
        Stage::Waiting => [1, 0, 0],
        Stage::Running | Stage::Restarted | Stage::Resumed | Stage::TakenOver => [all, 0, 0],
        Stage::Succeeded | Stage::Quick => [0, all, 0],
        // The other replicas continue.
        Stage::Failed => [all - 1, 0, 1],
        // The counts vary while pods are replaced.
        Stage::Restarting => counts,
    };
    problems.expect("Karmada", recording, counts, expected);
    let expected = match newest(stage) {
        "Running" | "Succeeded" => "Healthy",
        "Failed" => "Unhealthy",
        _ => "Unknown",
    };
    problems.expect("Karmada's health", recording, health, expected);
    if kind.name == "MPIJob" {
        let expected = match newest(stage) {
            "Running" => Some("running"),
            "Succeeded" => Some("completed"),
            // In this recording a worker has failed, and the launcher continues.
            "Failed" => Some("running"),
            "Restarting" => None,
            _ => Some("pending"),
        };
        let found = mlrun_state(&recording.job);
        problems.expect("MLRun", recording, found, expected.unwrap_or(found));
    }
}

fn read_pods(problems: &mut Problems, recording: &Recording) {
    let (kind, stage) = (recording.kind, recording.stage);
    // A group starts when the number of pods that it waits for exists.
    if stage == Stage::Gang {
        let all = recording.pods.len() as u64;
        problems.expect("KAI", recording, kai_min_available(recording), Ok(all));
    }
    if stage != Stage::Running {
        return;
    }
    problems.expect("Arena's pods", recording, arena_pods(recording), kind.pods());
    let role = "training.kubeflow.org/job-role";
    let masters = match kind.name {
        // Its workers are all alike.
        "PaddleJob" => 0,
        // The first server of an MXJob has the label, as under the Go operator.
        _ => 1,
    };
    problems.expect(
        "Katib's primary pod",
        recording,
        labeled(recording, role, "master"),
        masters,
    );
    for (role, count) in kind.roles {
        let type_ = "training.kubeflow.org/replica-type";
        let found = labeled(recording, type_, &role.to_lowercase());
        problems.expect("kubectl logs -l", recording, found, *count as usize);
    }
    if kind.name == "MPIJob" {
        let name = recording.job["metadata"]["name"].as_str().unwrap_or_default();
        let pods = labeled(recording, "mpi-job-name", name);
        problems.expect("MLRun's pods", recording, pods, kind.pods());
        let launchers = labeled(recording, "mpi-job-role", "launcher");
        problems.expect("MLRun's launcher", recording, launchers, 1);
    }
}
