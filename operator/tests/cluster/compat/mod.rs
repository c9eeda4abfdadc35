//! Plays the scenarios of `tests/compat` on a real API server, and compares each state with the recording of the Go
//! operator. Each scenario has a file with the known differences, in `tests/compat/replica` and `tests/compat/default`;
//! `tests/compat/differences.yaml` has their reasons.
//!
//! `make compat` regenerates these files.

mod compare;
mod corpus;
mod here;
mod look;
mod mirror;
mod normal;
mod play;
mod pods;
mod reasons;
mod requests;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::StreamExt;
use training_job_testbed::cluster::{ControlPlane, Options};
use training_operator_testing::operator::start;

use corpus::{Golden, Scenario};
use here::{Here, Scope};
use look::Memory;
use play::Play;

/// The number of concurrent scenarios.
const AT_ONCE: usize = 32;

/// The scenarios whose files are regenerated instead of compared, such as `mx-*`.
fn recorded() -> Option<String> {
    std::env::var("COMPAT_RECORD").ok().filter(|v| !v.is_empty())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_scope_replica_only_listed_differences_from_the_recordings_exist() {
    play_all(Scope::Replica).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_default_scope_only_restarts_differ_more() {
    play_all(Scope::Default).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_volcano_only_listed_differences_from_the_recordings_exist() {
    play_all(Scope::Volcano).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_coscheduling_only_listed_differences_from_the_recordings_exist() {
    play_all(Scope::Coscheduling).await;
}

async fn play_all(scope: Scope) {
    let cluster = ControlPlane::start(Options::default()).await;
    cluster.install_crds().await;
    install_groups(&cluster, scope).await;
    let flags = [
        "--enable-scheme=MXJob,TFJob,PyTorchJob,XGBoostJob,PaddleJob,JAXJob,MPIJob",
        // As under the Go operator, whose jobs all have it.
        "--pytorch-init-container-image=alpine:3.10",
    ];
    let operator = start(&cluster, &[&flags[..], scope.flags()].concat()).await;
    let names = scope.scenarios();
    let mut scenarios = corpus::scenarios();
    let pattern = recorded().unwrap_or_else(|| "*".to_owned());
    scenarios.retain(|s| names.contains(&s.name) && compare::names(&pattern, &s.name));
    let client = cluster.client();
    let begin = Instant::now();
    let runs = scenarios.into_iter().map(async |scenario| {
        let name = scenario.name.clone();
        let error = run(&cluster, &client, scope, scenario).await.err();
        error.map(|error| format!("{name} {error}"))
    });
    let runs: Vec<_> = futures::stream::iter(runs)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let failed: Vec<_> = runs.iter().flatten().cloned().collect();
    println!("{scope:?}: {} scenarios in {:?}", runs.len(), begin.elapsed());
    assert_eq!(
        operator.ended(),
        None,
        "the operator has ended:\n{}",
        operator.text()
    );
    assert!(
        failed.is_empty(),
        "{} of {} differ:\n{}",
        failed.len(),
        runs.len(),
        failed.join("\n")
    );
}

/// Installs the definition of the gang scheduler's PodGroups.
async fn install_groups(cluster: &ControlPlane, scope: Scope) {
    let group = match scope {
        Scope::Volcano => "scheduling.volcano.sh",
        Scope::Coscheduling => "scheduling.x-k8s.io",
        Scope::Replica | Scope::Default => return,
    };
    cluster.install_pod_groups(group).await;
}

async fn run(
    cluster: &ControlPlane,
    client: &kube::Client,
    scope: Scope,
    scenario: Scenario,
) -> Result<(), String> {
    let golden = scenario.golden();
    let expected = recorded()
        .is_none()
        .then(|| Here::read(scope, &scenario.name, &golden));
    let mut memory = Memory::default();
    let mut play = Play::begin(cluster, client, scenario.clone()).await?;
    for step in &scenario.steps {
        let (verb, what) = step
            .as_object()
            .and_then(|s| s.iter().next())
            .ok_or("a step of nothing")?;
        if verb == "settle" {
            memory.look(&mut play, &golden, expected.as_ref()).await?;
            continue;
        }
        if let (true, "wait", Some(seconds)) = (recorded().is_some(), verb.as_str(), what.as_u64()) {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
        }
        let error = format!("did[{}].error", play.did.len());
        play.may_lack_pod = expected.as_ref().is_none_or(|here| {
            let places = here.steps.get(memory.places.len());
            places.is_some_and(|places| places.contains_key(&error))
        });
        play.act(verb, what).await?;
    }
    if !play.did.is_empty() {
        memory.look(&mut play, &golden, expected.as_ref()).await?;
    }
    if memory.places.len() != golden.steps.len() {
        return Err(format!(
            "{} steps, {} recorded",
            memory.places.len(),
            golden.steps.len()
        ));
    }
    play.end().await?;
    let told = memory.events.last().cloned().unwrap_or_default();
    let (missing, mut more) = here::events(&golden, &told);
    if recorded().is_some() {
        // Comes after a minute without a scheduler: only a recording takes that long.
        more.retain(|line| !line.contains(" PodGroupWaits "));
    }
    let found = Here {
        steps: memory.places,
        missing,
        more,
    };
    if recorded().is_some() {
        found.write(scope, &scenario.name, &golden);
    }
    // A wider restart scope changes the order of events.
    if scope == Scope::Default {
        return Ok(());
    }
    early(&play.scenario, &golden, &memory.events, &found)
}

/// An event may come a step earlier than recorded, because the Go client limits its events per second. It may come even
/// earlier where the scenario names a defect of the events.
fn early(scenario: &Scenario, golden: &Golden, told: &[BTreeSet<String>], here: &Here) -> Result<(), String> {
    let mut wrong = Vec::new();
    let names = golden.names();
    for (told, pair) in told.iter().zip(golden.steps.windows(2)) {
        let early = told.difference(&pair[1].events).filter(|line| {
            let known = pair[1].sometimes.contains(*line) || here.more.contains(*line);
            let path = format!("events {line}");
            let is_of_defect =
                |defect: &corpus::Defect| defect.step.have(&pair[0].name, &names) && defect.at.cover(&path);
            !known
                && !scenario.differs.iter().any(is_of_defect)
                && golden
                    .steps
                    .last()
                    .is_some_and(|last| last.events.contains(*line))
        });
        wrong.extend(early.map(|line| format!("  [{}] early event: {line}", pair[0].name)));
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}
