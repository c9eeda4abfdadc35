//! The jobs that users create.

use serde_json::{Value, json};
use training_job::api::RunPolicy;
use training_job::api::labels::Keys;

use crate::random::Random;
use crate::world::job::{self, JobType};

/// A job that users create.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedJob {
    /// The type of the job.
    pub job_type: JobType,
    /// The name of the job.
    pub name: String,
    /// The object to create.
    pub object: Value,
}

/// The properties that the jobs of a run may have.
#[derive(Clone, Copy, Debug)]
pub struct JobChoices {
    /// The types to draw from.
    pub job_types: &'static [JobType],
    /// True if some of the jobs are compact.
    pub compact: bool,
    /// True if some of the jobs have failure and success policies.
    pub policies: bool,
    /// True if the cluster has a gang scheduler, for which pods request CPUs.
    pub gangs: bool,
    /// True if the output of some of the jobs is watched.
    pub progress: bool,
}

impl PlannedJob {
    /// Draws the `number`-th job of a run.
    pub fn draw(random: &mut Random, number: u64, choices: &JobChoices) -> Self {
        let job_type = *random.pick(choices.job_types);
        let mut roles = draw_roles(random, job_type);
        let restart = *random.pick(&["ExitCode", "ExitCode", "OnFailure", "Never", "Always"]);
        // Sometimes two jobs of different kinds have the same name.
        let shares_name = choices.job_types != JobType::MXJOBS && random.chance(200);
        let mut name = format!("job-{}", if shares_name { 0 } else { number });
        let is_compact = choices.compact && random.chance(600);
        if is_compact && random.chance(500) {
            make_large(&mut name, &mut roles);
        }
        let mut object = job::new(job_type, &name, &roles, restart);
        object["spec"]["runPolicy"] = draw_run_policy(random);
        if is_compact {
            object["spec"]["runPolicy"]["layout"] = json!("Compact");
        }
        if choices.policies {
            let names: Vec<_> = roles.iter().map(|(role, _)| *role).collect();
            draw_policies(random, &names, &mut object["spec"]["runPolicy"]);
        }
        if choices.gangs {
            job::ask_for_cpus(&mut object, job_type);
        }
        if choices.progress && random.chance(400) {
            draw_progress(random, &mut object["spec"]["runPolicy"]);
        }
        // This uses no random number, so that earlier seeds keep their jobs.
        if number % 3 == 1 {
            say_by_annotations(&mut object);
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
        JobType::PyTorch => vec![("Master", 1), ("Worker", up_to(3))],
        JobType::Paddle => vec![("Master", up_to(2)), ("Worker", up_to(3))],
        JobType::Mpi => vec![("Launcher", 1), ("Worker", up_to(3))],
        JobType::Steps => vec![
            ("Database", 1),
            ("Controller", 1),
            ("nodes", up_to(2)),
            ("step-a", up_to(2)),
            ("step-b", 1),
        ],
        JobType::Elastic | JobType::Jax => vec![("Worker", up_to(3))],
    };
    let workers_alone = random.between(1, 4) == 1;
    let without = match job_type {
        JobType::Train => 2,
        JobType::PyTorch | JobType::Paddle | JobType::Steps => 1,
        _ => 0,
    };
    roles
        .into_iter()
        .skip(if workers_alone { without } else { 0 })
        .collect()
}

/// Makes the name and the numbers of replicas so large that the common part of the environments needs a ConfigMap.
fn make_large(name: &mut String, roles: &mut [(&'static str, i32)]) {
    name.push_str("-with-a-name-of-forty-characters-or-so");
    for (role, replicas) in roles {
        if matches!(*role, "Worker" | "TunerServer") {
            *replicas = 14;
        }
    }
}

/// Sometimes adds a failure policy, a success policy, or another controller.
fn draw_policies(random: &mut Random, roles: &[&str], policy: &mut Value) {
    if random.chance(600) {
        let mut failure = json!({});
        if random.chance(400) {
            failure["maxRestarts"] = json!(random.between(0, 3));
        }
        if random.chance(200) {
            failure["maxRestarts"] = json!(random.between(0, 3));
            failure["windowSeconds"] = json!(random.between(5, 60));
        }
        let rules = (0..random.between(0, 2)).map(|_| draw_rule(random, roles));
        failure["rules"] = rules.collect();
        policy["failurePolicy"] = failure;
    }
    if random.chance(300) {
        let mut success = json!({"operator": random.pick(&["All", "Any"])});
        if random.chance(600) {
            success["roles"] = json!([random.pick(roles)]);
        }
        policy["successPolicy"] = success;
    }
    if random.chance(100) {
        policy["managedBy"] = json!("kueue.x-k8s.io/multikueue");
    }
}

/// Moves the run policy fields that a client with the Go operator's types drops to annotations.
fn say_by_annotations(object: &mut Value) {
    for field in RunPolicy::ANNOTATED_FIELDS {
        let policy = object["spec"]["runPolicy"].as_object_mut();
        if let Some(value) = policy.and_then(|policy| policy.remove(field)) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            object["metadata"]["annotations"][Keys::DEFAULT.annotation_of(field)] = text.into();
        }
    }
}

/// Adds a progress policy. Jobs that restart because of it have a limit, because all pods hang at some time.
fn draw_progress(random: &mut Random, policy: &mut Value) {
    let seconds = random.between(15, 25);
    let mut action = *random.pick(&["Report", "Restart", "Fail"]);
    if policy["backoffLimit"].is_null() && action == "Restart" {
        policy["backoffLimit"] = json!(2);
    }
    if policy["backoffLimit"] == 0 || policy["failurePolicy"]["maxRestarts"] == 0 {
        action = "Fail";
    }
    let watch = *random.pick(&["Deciding", "All"]);
    policy["progress"] = json!({"stalledAfterSeconds": seconds, "onStall": action, "watch": watch});
    if random.chance(500) {
        policy["progress"]["pattern"] = json!(r"step (?P<step>\d+)");
    }
}

fn draw_rule(random: &mut Random, roles: &[&str]) -> Value {
    let actions = ["FailJob", "RestartJob", "RestartRole", "RestartReplica", "Ignore"];
    let mut rule = json!({"action": random.pick(&actions)});
    if random.chance(300) {
        rule["roles"] = json!([random.pick(roles)]);
    }
    match random.below(3) {
        0 => {
            let operator = *random.pick(&["In", "NotIn"]);
            rule["onExitCodes"] = json!({"operator": operator, "values": [1, 137, 143]});
        }
        1 => rule["onPodConditions"] = json!([{"type": "DisruptionTarget"}]),
        _ => {}
    }
    rule
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
