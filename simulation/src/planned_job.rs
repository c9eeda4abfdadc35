//! The jobs that users make.

use serde_json::{Value, json};

use crate::job::{self, JobType};
use crate::random::Random;

/// A job that users make.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedJob {
    /// Its type.
    pub job_type: JobType,
    /// Its name.
    pub name: String,
    /// The object that is sent.
    pub object: Value,
}

impl PlannedJob {
    /// The `number`-th job of a run, of any type or of MXJobs alone, and perhaps compact.
    pub fn draw(random: &mut Random, number: u64, all_kinds: bool, compact_jobs: bool) -> Self {
        let types = [
            JobType::Train,
            JobType::Train,
            JobType::Tune,
            JobType::XgBoost,
            JobType::TensorFlow,
        ];
        let types = if all_kinds { &types[..] } else { &types[..3] };
        let job_type = *random.pick(types);
        let mut roles = draw_roles(random, job_type);
        let restart = *random.pick(&["ExitCode", "ExitCode", "OnFailure", "Never", "Always"]);
        // Now and then two jobs of different kinds have one name.
        let shares_name = all_kinds && random.chance(200);
        let mut name = format!("job-{}", if shares_name { 0 } else { number });
        let is_compact = compact_jobs && random.chance(600);
        if is_compact && random.chance(500) {
            make_large(&mut name, &mut roles);
        }
        let mut object = job::new(job_type, &name, &roles, restart);
        object["spec"]["runPolicy"] = draw_run_policy(random);
        if is_compact {
            object["spec"]["runPolicy"]["layout"] = json!("Compact");
        }
        Self {
            job_type,
            name,
            object,
        }
    }
}

fn draw_roles(random: &mut Random, job_type: JobType) -> Vec<(&'static str, i32)> {
    let mut up_to = |most: u64| i32::try_from(random.between(1, most)).unwrap_or(1);
    let roles = match job_type {
        JobType::Train | JobType::Toy => vec![("Scheduler", 1), ("Server", up_to(2)), ("Worker", up_to(3))],
        JobType::Tune => vec![("TunerTracker", 1), ("TunerServer", up_to(2)), ("Tuner", 1)],
        JobType::XgBoost => vec![("Master", 1), ("Worker", up_to(3))],
        JobType::TensorFlow => vec![("Chief", 1), ("PS", up_to(2)), ("Worker", up_to(2))],
    };
    let workers_alone = random.between(1, 4) == 1;
    if job_type == JobType::Train && workers_alone {
        roles.into_iter().skip(2).collect()
    } else {
        roles
    }
}

/// So many replicas, of so long names, that their environments have more in common than is worth a ConfigMap.
fn make_large(name: &mut String, roles: &mut [(&'static str, i32)]) {
    name.push_str("-with-a-name-of-forty-characters-or-so");
    for (role, replicas) in roles {
        if matches!(*role, "Worker" | "TunerServer") {
            *replicas = 14;
        }
    }
}

fn draw_run_policy(random: &mut Random) -> Value {
    let mut policy = json!({});
    if random.chance(500) {
        policy["cleanPodPolicy"] = json!(random.pick(&["All", "Running", "None"]));
    }
    if random.chance(200) {
        policy["ttlSecondsAfterFinished"] = json!(random.between(0, 60));
    }
    if random.chance(200) {
        policy["activeDeadlineSeconds"] = json!(random.between(5, 120));
    }
    if random.chance(300) {
        policy["backoffLimit"] = json!(random.between(0, 3));
    }
    if random.chance(300) {
        policy["restartScope"] = json!(random.pick(&["Replica", "Role", "Job"]));
    }
    if random.chance(50) {
        policy["suspend"] = json!(true);
    }
    policy
}
