//! Compares the found conditions of success, and the consequences of exit codes, with the plans of random jobs.

use proptest::prelude::*;
use training_job::TrainingJob;
use training_job_jax::JAXJob;
use training_job_mlkube::{MxJob, TfJob};
use training_job_mpi::MPIJob;
use training_job_mxnet::MXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_tensorflow::TFJob;
use training_job_xgboost::XGBoostJob;

use super::*;

/// Returns a job with these numbers of replicas of its kind's roles. The restart policies are assigned in turn.
fn job<J: TrainingJob>(replicas: &[u32], policies: &[&str], more: &Value) -> Value {
    let framework = J::FRAMEWORK;
    let container = match framework.main_container {
        "" => "main",
        named => named,
    };
    let roles = framework.roles.iter().zip(replicas).zip(policies.iter().cycle());
    let roles = roles.filter(|((_, replicas), _)| **replicas > 0);
    let roles = roles.map(|((role, replicas), policy)| {
        let template = json!({"spec": {"containers": [{"name": container, "image": "x"}]}});
        let replicas = (*replicas).clamp(role.min, role.max);
        (
            role.name,
            json!({"replicas": replicas, "restartPolicy": policy, "template": template}),
        )
    });
    let specs: Value = match framework.role_key {
        None => roles.map(|(role, spec)| (role.to_owned(), spec)).collect(),
        Some(key) => {
            let named = roles.map(|(role, mut spec)| {
                spec[key] = role.into();
                spec
            });
            named.collect()
        }
    };
    let mut spec = more.clone();
    spec[framework.roles_field] = specs;
    let meta = json!({"name": "a", "uid": "u"});
    json!({"apiVersion": J::api_version(&()), "kind": J::kind(&()), "metadata": meta, "spec": spec})
}

/// Compares the rule found with the plan when some replicas have ended. An invalid job is skipped.
fn compare<J: TrainingJob>(object: &Value, ended: &[u32]) {
    let settings = Settings::default();
    let kind = &Kind::of::<J>();
    let typed = decode(kind, object).unwrap();
    let Ok(valid) = validate_any(kind, &*typed, &settings) else {
        return;
    };
    let roles = valid.topology.roles.iter().filter(|role| role.replicas > 0);
    let hosts: Vec<Vec<String>> = roles.map(|role| role.all().map(|r| r.host()).collect()).collect();
    let mut run = DryRun::new(kind, object, &settings);
    run.run_until_idle().unwrap();
    let success = run.success(&hosts).unwrap();
    let places = (0..hosts.len()).flat_map(|role| (0..hosts[role].len()).map(move |index| (role, index)));
    let ended = places
        .zip(ended)
        .filter(|(_, bit)| **bit == 1)
        .map(|(place, _)| place);
    let ended: Replicas = ended.collect();
    let planned = run.succeeds(&hosts, &ended).unwrap();
    assert_eq!(success.holds(&ended), planned, "{success:?} {ended:?} {object}");
}

/// Compares the listed consequence of an exit code with the plan.
fn compare_code<J: TrainingJob>(object: &Value, code: i32) {
    let settings = Settings::default();
    let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
    let kind = &Kind::of::<J>();
    let Ok(timeline) = timeline(kind, object, version, &settings) else {
        return;
    };
    let typed = decode(kind, object).unwrap();
    let valid = validate_any(kind, &*typed, &settings).unwrap();
    let mut run = DryRun::new(kind, object, &settings);
    run.run_until_idle().unwrap();
    let roles = valid.topology.roles.iter().filter(|role| role.replicas > 0);
    for (role, found) in roles.zip(&timeline.roles) {
        let incident = Incident::Exit(code);
        let planned = run.consequence(incident, role, &valid).unwrap();
        let mut listed = found.incidents.iter();
        let listed = listed.find(|(listed, _)| *listed == incident).unwrap();
        assert_eq!(listed.1, planned, "{} {code} {object}", found.name);
    }
}

#[derive(Debug)]
struct RandomJob {
    replicas: Vec<u32>,
    policies: Vec<&'static str>,
    operator: Option<&'static str>,
    named: Vec<prop::sample::Index>,
    is_elastic: bool,
    all_workers: bool,
    tunes: bool,
    ended: Vec<u32>,
    /// The exit codes of a failure policy.
    ruled: Option<Vec<i32>>,
    code: i32,
}

fn check_random_job<J: TrainingJob>(random: &RandomJob) {
    let mut more = json!({});
    if let Some(operator) = random.operator {
        let all = J::FRAMEWORK.roles;
        let named: Vec<_> = random
            .named
            .iter()
            .map(|n| all[n.index(all.len())].name)
            .collect();
        more["runPolicy"] = json!({"successPolicy": {"operator": operator, "roles": named}});
    }
    match &*J::kind(&()) {
        "PyTorchJob" if random.is_elastic => {
            more["elasticPolicy"] = json!({"minReplicas": 1, "maxReplicas": 5});
        }
        "MXJob" => more["jobMode"] = if random.tunes { "MXTune" } else { "MXTrain" }.into(),
        "TFJob" if random.all_workers => more["successPolicy"] = "AllWorkers".into(),
        _ => {}
    }
    let object = job::<J>(&random.replicas, &random.policies, &more);
    if let Some(values) = &random.ruled {
        more["runPolicy"]["failurePolicy"] = json!({"rules": [
            {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": values}},
            {"action": "Ignore", "onExitCodes": {"values": [1, 137, 255]}},
        ]});
    }
    compare_code::<J>(&job::<J>(&random.replicas, &random.policies, &more), random.code);
    compare::<J>(&object, &random.ended);
}

fn policies() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["Never", "OnFailure", "Always", "ExitCode"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn the_explained_rule_agrees_with_the_plan(
        replicas in prop::collection::vec(0_u32..5, 6),
        policies in prop::collection::vec(policies(), 1..4),
        operator in prop::sample::select(vec![None, Some("All"), Some("Any")]),
        named in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        is_elastic: bool,
        all_workers: bool,
        tunes: bool,
        ended in prop::collection::vec(0_u32..2, 24),
        ruled in prop::option::of(prop::collection::vec(1..=255, 1..4)),
        code in 1..=255,
        other in prop::sample::select(vec![
            check_random_job::<MXJob> as fn(&RandomJob),
            check_random_job::<XGBoostJob>,
            check_random_job::<PaddleJob>,
            check_random_job::<JAXJob>,
            check_random_job::<MPIJob>,
            check_random_job::<TfJob>,
            check_random_job::<MxJob>,
        ]),
    ) {
        let random = RandomJob { replicas, policies, operator, named, is_elastic, all_workers, tunes, ended, ruled, code };
        check_random_job::<TFJob>(&random);
        check_random_job::<PyTorchJob>(&random);
        other(&random);
    }
}
