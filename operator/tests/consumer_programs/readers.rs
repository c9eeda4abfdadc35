//! The expected results of each program.

use serde_json::{Value, json};
use training_operator_testing::recordings::life::{Recording, Stage, is};
use training_operator_testing::recordings::problems::Problems;

use crate::programs::{ask, read};

fn of_kinds<'a>(recordings: &'a [Recording], kinds: &'a [&str]) -> impl Iterator<Item = &'a Recording> {
    recordings
        .iter()
        .filter(move |recording| kinds.contains(&recording.kind.name))
}

fn of_kubeflow(recordings: &[Recording]) -> impl Iterator<Item = &Recording> {
    recordings.iter().filter(|recording| recording.kind.is_kubeflow())
}

/// Checks the health of a job by the checks in `manifests/integrations`.
pub(crate) fn argo_cd(problems: &mut Problems, recordings: &[Recording]) {
    let checks = "manifests/integrations/argo-cd/argocd-cm.yaml";
    for (recording, found) in read("argo-cd", &[checks], recordings.iter()) {
        let expected = match recording.stage {
            Stage::Suspended => "Suspended",
            Stage::Failed => "Degraded",
            stage if stage.is_success() => "Healthy",
            _ => "Progressing",
        };
        problems.expect("Argo CD", recording, &found["status"], expected);
        let is_explained = found["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty());
        problems.expect("Argo CD's message", recording, is_explained, true);
    }
}

/// Checks the end of a resource template that waits for each role to succeed, as published workflows do.
pub(crate) fn argo_workflows(problems: &mut Problems, recordings: &[Recording]) {
    let recordings: Vec<_> = of_kubeflow(recordings).collect();
    let question = |recording: &&Recording| {
        let roles = recording.kind.roles.iter();
        let succeeded =
            roles.map(|(role, count)| format!("status.replicaStatuses.{role}.succeeded == {count}"));
        json!({
            "file": recording.file(),
            "success": succeeded.collect::<Vec<_>>().join(","),
            "failure": "",
        })
    };
    let questions: Vec<_> = recordings.iter().map(question).collect();
    for (recording, found) in recordings.iter().zip(ask("argo-workflows", &questions)) {
        let expected = if recording.stage.is_success() {
            "succeeded"
        } else {
            "waits"
        };
        problems.expect("Argo Workflows", recording, &found["result"], expected);
    }
    // A replica that is being replaced may count as failed, as under the Go operator.
    let settled = recordings.iter().filter(|r| r.stage != Stage::Restarting);
    let settled: Vec<_> = settled.collect();
    let question = |recording: &&&Recording| {
        json!({
            "file": recording.file(),
            "success": "status.completionTime",
            "failure": "status.replicaStatuses.Worker.failed > 0",
        })
    };
    let questions: Vec<_> = settled.iter().map(question).collect();
    for (recording, found) in settled.iter().zip(ask("argo-workflows", &questions)) {
        let expected = match recording.stage {
            Stage::Failed => "failed",
            stage if stage.is_success() => "succeeded",
            _ => "waits",
        };
        problems.expect("Argo Workflows' failure", recording, &found["result"], expected);
    }
}

/// Checks the phase of a task. All kinds have the same status.
pub(crate) fn flyte(problems: &mut Problems, recordings: &[Recording]) {
    for (recording, found) in read("flyte", &[], of_kubeflow(recordings)) {
        let expected = match recording.stage {
            Stage::New | Stage::Created | Stage::Waiting | Stage::Gang => "Queued",
            // Flyte has no phase for it.
            Stage::Suspended => "Undefined",
            Stage::Failed => "RetryableFailure",
            stage if stage.is_success() => "Success",
            _ => "Running",
        };
        problems.expect("Flyte", recording, &found["phase"], expected);
    }
}

/// Checks the condition of a trial and its primary pod for the kinds that Katib supports by default.
pub(crate) fn katib(problems: &mut Problems, recordings: &[Recording]) {
    for (recording, found) in read("katib", &[], of_kubeflow(recordings)) {
        let expected = match recording.stage {
            Stage::Failed => "Failed",
            stage if stage.is_success() => "Succeeded",
            _ => "Running",
        };
        problems.expect("Katib", recording, &found["condition"], expected);
        let by_default = ["TFJob", "PyTorchJob", "XGBoostJob", "MPIJob"];
        if recording.stage == Stage::Running && by_default.contains(&recording.kind.name) {
            let labels = found["primaryPod"].as_object().unwrap();
            let has = |pod: &&Value| {
                labels
                    .iter()
                    .all(|(key, value)| pod["metadata"]["labels"][key] == *value)
            };
            let primary = recording.pods.iter().filter(has).count();
            problems.expect("Katib's primary pods", recording, primary, 1);
        }
    }
}

/// Checks the state of a workload.
pub(crate) fn kueue(problems: &mut Problems, recordings: &[Recording]) {
    let kinds = ["JAXJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"];
    for (recording, found) in read("kueue", &[], of_kinds(recordings, &kinds)) {
        let stage = recording.stage;
        let is_over = stage.is_success() || stage == Stage::Failed;
        problems.expect("Kueue's end", recording, &found["finished"], is_over);
        if is_over {
            problems.expect(
                "Kueue's success",
                recording,
                &found["success"],
                stage.is_success(),
            );
            problems.expect("Kueue's message", recording, found["message"] == "", false);
        }
        problems.expect(
            "Kueue's PodsReady",
            recording,
            &found["podsReady"],
            stage.is_running(),
        );
        let suspended = stage == Stage::Suspended;
        problems.expect("Kueue's suspension", recording, &found["suspended"], suspended);
        // A workload releases its quota when the job is inactive.
        let is_idle = matches!(
            stage,
            Stage::New | Stage::Created | Stage::Suspended | Stage::Gang
        ) || stage.is_success();
        if stage != Stage::Restarting {
            problems.expect("Kueue's activity", recording, &found["active"], !is_idle);
        }
        for (role, count) in recording.kind.roles {
            problems.expect(
                "Kueue's pod sets",
                recording,
                &found["podSets"][role.to_lowercase()],
                *count,
            );
        }
        let selector = found["selector"].as_str().unwrap_or_default();
        let selects = |pod: &&Value| {
            selector.split(',').all(|label| {
                let (key, value) = label.split_once('=').unwrap_or_default();
                pod["metadata"]["labels"][key] == value
            })
        };
        let selected = recording.pods.iter().filter(selects).count();
        problems.expect("Kueue's pods", recording, selected, recording.pods.len());
    }
}

/// Checks the samples of the configuration in `manifests/integrations`.
pub(crate) fn kube_state_metrics(problems: &mut Problems, recordings: &[Recording]) {
    let config = "manifests/integrations/kube-state-metrics/custom-resource-state.yaml";
    for (recording, found) in read("kube-state-metrics", &[config], recordings.iter()) {
        let samples = found["samples"].as_array().unwrap();
        let samples: Vec<_> = samples.iter().filter_map(Value::as_str).collect();
        let (kind, job) = (recording.kind, &recording.job);
        let name = job["metadata"]["name"].as_str().unwrap_or_default();
        // Returns the value of the sample of a metric whose labels include these.
        let value = |metric: &str, labels: &[(&str, &str)]| {
            let whole = [("customresource_kind", kind.name), ("name", name)];
            let labels: Vec<_> = [&whole, labels]
                .concat()
                .iter()
                .map(|(key, value)| format!("{key}=\"{value}\""))
                .collect();
            let head = format!("training_job_{metric}{{");
            let is_it = |sample: &&&str| {
                sample.starts_with(&head) && labels.iter().all(|label| sample.contains(label))
            };
            let found = samples.iter().find(is_it)?;
            found.rsplit(' ').next()?.parse::<f64>().ok()
        };
        let conditions = job["status"]["conditions"].as_array();
        for condition in conditions.into_iter().flatten() {
            let type_ = condition["type"].as_str().unwrap_or_default();
            let expected = if is(job, type_) { 1.0 } else { 0.0 };
            let found = value("condition", &[("condition", type_)]);
            problems.expect(&format!("metric of {type_}"), recording, found, Some(expected));
        }
        for (role, count) in kind.roles {
            let expected = match recording.stage {
                stage if stage.is_running() => ("active", *count),
                stage if stage.is_success() => ("succeeded", *count),
                _ => continue,
            };
            let metric = format!("replicas_{}", expected.0);
            let found = value(&metric, &[("role", role)]);
            problems.expect(
                &format!("{metric} of {role}"),
                recording,
                found,
                Some(f64::from(expected.1)),
            );
        }
        let restarts = job["status"]["restartCount"].as_f64().unwrap_or_default();
        problems.expect(
            "metric of restarts",
            recording,
            value("restarts", &[]),
            Some(restarts),
        );
        for (field, metric) in [("startTime", "start_time"), ("completionTime", "completion_time")] {
            let is_there = value(metric, &[]).is_some_and(|seconds| seconds > 1e9);
            let expected = job["status"][field].is_string();
            problems.expect(&format!("metric of {field}"), recording, is_there, expected);
        }
        let created = value("created", &[]).is_some_and(|seconds| seconds > 1e9);
        problems.expect("metric of the creation", recording, created, true);
    }
}
