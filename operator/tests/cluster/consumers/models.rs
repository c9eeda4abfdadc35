//! Models of programs that read jobs but have no package to link. Each function returns the program's result.

use serde_json::Value;
use training_operator_testing::recordings::life::{Recording, is};

/// Returns the condition that Flyte and the Open Data Hub dashboard show: the first true one when the conditions are
/// sorted by `lastTransitionTime`, newest first. The sort is stable, so that of equal times the earlier entry wins.
pub(crate) fn newest_true_condition(job: &Value) -> String {
    let conditions = job["status"]["conditions"].as_array();
    let mut conditions: Vec<&Value> = conditions.into_iter().flatten().collect();
    // All times have the same format, whose lexical order is chronological.
    conditions.sort_by(|a, b| {
        let time = |c: &Value| c["lastTransitionTime"].as_str().unwrap_or_default().to_owned();
        time(b).cmp(&time(a))
    });
    let mut newest = conditions.into_iter().filter(|c| c["status"] == "True");
    let found = newest.next().and_then(|condition| condition["type"].as_str());
    found.unwrap_or_default().to_owned()
}

/// Returns true if Flyte fails a task whose job is older than its timeout (`kf-operator.timeout`, one minute).
pub(crate) fn flyte_times_out(job: &Value) -> bool {
    job["spec"]["runPolicy"]["suspend"] != true && job["status"]["startTime"].is_null()
}

/// Returns the state that Arena lists. Arena checks the conditions in turn.
pub(crate) fn arena_state(job: &Value) -> &'static str {
    let mut states = [
        ("Succeeded", "SUCCEEDED"),
        ("Failed", "FAILED"),
        ("Running", "RUNNING"),
    ]
    .into_iter();
    let found = states.find(|(condition, _)| is(job, condition));
    found.map_or("PENDING", |(_, state)| state)
}

/// Returns the number of pods that Arena finds for a job of a supported kind.
pub(crate) fn arena_pods(recording: &Recording) -> usize {
    let kind = recording.kind.name.to_lowercase();
    let controller = format!("{kind}-controller");
    let is_its = |pod: &&Value| {
        let label = |key: &str| pod["metadata"]["labels"][key].as_str().unwrap_or_default();
        label("group-name") == "kubeflow.org" || label("training.kubeflow.org/operator-name") == controller
    };
    recording.pods.iter().filter(is_its).count()
}

/// Returns the number of pods with a label. Programs use these pods' logs or metrics.
pub(crate) fn labeled(recording: &Recording, key: &str, value: &str) -> usize {
    let has = |pod: &&Value| pod["metadata"]["labels"][key] == value;
    recording.pods.iter().filter(has).count()
}

/// Returns the number of pods that KAI's group waits for, or KAI's error.
pub(crate) fn kai_min_available(recording: &Recording) -> Result<u64, String> {
    let specs = &recording.job["spec"][recording.kind.specs];
    let mut sum = 0;
    for (role, spec) in specs.as_object().into_iter().flatten() {
        let waits_for_workers = recording.job["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady";
        if role == "Launcher" && waits_for_workers {
            continue;
        }
        match spec["replicas"].as_u64() {
            None | Some(0) => return Err(format!("{role} has no replicas")),
            Some(replicas) => sum += replicas,
        }
    }
    Ok(sum)
}

/// Returns Karmada's summary of one cluster's status: the active, succeeded and failed replicas of all roles, and the
/// health.
pub(crate) fn karmada(job: &Value) -> ([u64; 3], &'static str) {
    let counts = ["active", "succeeded", "failed"].map(|state| {
        let roles = job["status"]["replicaStatuses"].as_object();
        let counts = roles.into_iter().flatten();
        counts.filter_map(|(_, role)| role[state].as_u64()).sum()
    });
    let health = match job {
        job if is(job, "Failed") => "Unhealthy",
        job if is(job, "Succeeded") || is(job, "Running") => "Healthy",
        _ => "Unknown",
    };
    (counts, health)
}

/// Returns the state that MLRun derives from an MPIJob's launcher.
pub(crate) fn mlrun_state(job: &Value) -> &'static str {
    let launcher = &job["status"]["replicaStatuses"]["Launcher"];
    let count = |state: &str| launcher[state].as_u64().unwrap_or_default();
    match () {
        () if count("active") > 0 => "running",
        () if job["status"]["completionTime"].is_null() => "pending",
        () if count("failed") > 0 => "error",
        () if count("succeeded") > 0 => "completed",
        () => "unknown",
    }
}
