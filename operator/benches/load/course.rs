//! The courses of runs, each with its figures.

use std::time::Duration;

use tokio::time::sleep;

use crate::driver::Driver;
use crate::process::age;
use crate::seen::{Figures, Life};
use crate::stage::{SETTLING, Stage};
use crate::work::{Contender, Course, Jobs, Work};

/// Runs the work once by one contender. Returns the figures, and the calls by verb and resource.
pub(crate) async fn run(contender: Contender, work: &Work, in_flight: usize) -> (Figures, Figures) {
    let kind = work.jobs.kind;
    let mut stage = Stage::start(contender, kind, in_flight).await;
    let mut driver = Driver::start(&stage, kind).await;
    match work.course {
        Course::Burst => burst(&stage, &mut driver, work.jobs).await,
        Course::Restart => restart(&mut stage, &mut driver, work.jobs).await,
        Course::Foreign(pods) => foreign(&stage, &mut driver, pods).await,
        Course::Idle(time) => idle(&stage, &mut driver, work.jobs, time).await,
        Course::Beside => beside(&stage, &mut driver, work.jobs).await,
        Course::Kinds => kinds(&mut stage).await,
    }
}

const KINDS: [&str; 9] = [
    "MXJob",
    "MxJob",
    "TFJob",
    "TfJob",
    "XGBoostJob",
    "PyTorchJob",
    "PaddleJob",
    "JAXJob",
    "MPIJob",
];

fn names(jobs: Jobs) -> impl Iterator<Item = String> {
    (0..jobs.count).map(|n| format!("j{n}"))
}

fn has_succeeded(life: &Life) -> bool {
    life.succeeded.is_some() && life.last_pod_ended.is_some()
}

async fn burst(stage: &Stage, driver: &mut Driver, jobs: Jobs) -> (Figures, Figures) {
    let mark = stage.mark();
    driver.submit(jobs, names(jobs));
    driver
        .until("all jobs to succeed", |seen| seen.all(has_succeeded))
        .await;
    let seconds = driver.seen.figures();
    sleep(SETTLING).await;
    let (mut figures, calls) = stage.since(&mark, jobs.count);
    figures.extend(seconds);
    if let Some(tell) = &stage.tell {
        let _ = tell.send(serde_json::json!({"done": true}));
        let line = stage.operator().wait_for_line("calls: ").await;
        let times: Figures = serde_json::from_str(line.trim_start_matches("calls: ")).unwrap();
        figures.extend(times);
    }
    (figures, calls)
}

/// Measures a restart. The operator is ready when a job that was created in the meantime has a pod.
async fn restart(stage: &mut Stage, driver: &mut Driver, jobs: Jobs) -> (Figures, Figures) {
    driver.submit(jobs, names(jobs));
    driver
        .until("all jobs to run", |seen| seen.all(|life| life.running.is_some()))
        .await;
    driver.play(SETTLING).await;
    stage.kill_operator();
    driver.submit(Jobs { count: 1, ..jobs }, ["late".to_owned()]);
    driver.play(Duration::from_secs(1)).await;
    let mark = stage.mark();
    stage.start_operator().await;
    driver
        .until("a job that came meanwhile to have a pod", |seen| {
            !seen.lives["late"].made.is_empty()
        })
        .await;
    let ago = driver.seen.lives["late"].made[0].elapsed().as_secs_f64();
    let ready = age(stage.operator_pid()) - ago;
    driver.play(SETTLING).await;
    let (mut figures, calls) = stage.since(&mark, 1);
    figures.insert("ready".to_owned(), ready);
    (figures, calls)
}

async fn foreign(stage: &Stage, driver: &mut Driver, pods: usize) -> (Figures, Figures) {
    let mark = stage.mark();
    driver.foreign(pods).await;
    sleep(SETTLING).await;
    stage.since(&mark, 1)
}

async fn idle(stage: &Stage, driver: &mut Driver, jobs: Jobs, time: Duration) -> (Figures, Figures) {
    driver.submit(jobs, names(jobs));
    driver
        .until("all jobs to succeed", |seen| seen.all(has_succeeded))
        .await;
    sleep(2 * SETTLING).await;
    let mark = stage.mark();
    sleep(time).await;
    stage.since(&mark, 1)
}

async fn beside(stage: &Stage, driver: &mut Driver, large: Jobs) -> (Figures, Figures) {
    let small = Jobs::new(1, 5, 1);
    let mark = stage.mark();
    driver.submit(small, ["alone".to_owned()]);
    driver.until("a small job", |seen| seen.all(has_succeeded)).await;
    driver.play(SETTLING).await;
    driver.submit(large, ["large".to_owned()]);
    let begun = large.pods() / 10;
    driver
        .until("a tenth of a large job", |seen| {
            seen.lives["large"].made.len() >= begun
        })
        .await;
    driver.submit(small, ["beside".to_owned()]);
    driver
        .until("a small job beside", |seen| seen.lives["beside"].is_made())
        .await;
    let large_had = driver.seen.lives["large"].made.len();
    driver.until("both jobs", |seen| seen.all(has_succeeded)).await;
    let making = |name: &str| driver.seen.lives[name].making().unwrap().as_secs_f64();
    let (mut figures, calls) = stage.since(&mark, 1);
    for name in ["alone", "beside", "large"] {
        figures.insert(format!("making_{name}"), making(name));
    }
    figures.insert("large_had".to_owned(), large_had as f64);
    (figures, calls)
}

/// Measures the cost of kinds without jobs.
async fn kinds(stage: &mut Stage) -> (Figures, Figures) {
    sleep(SETTLING).await;
    let one = stage.memory();
    stage.kill_operator();
    stage.schemes = KINDS.map(|kind| format!("--enable-scheme={kind}")).to_vec();
    let mark = stage.mark();
    stage.start_operator().await;
    sleep(SETTLING).await;
    let all = stage.memory();
    let (mut figures, calls) = stage.since(&mark, 1);
    figures.insert("memory_one".to_owned(), one);
    figures.insert("memory_all".to_owned(), all);
    let more = KINDS.len() - 1;
    figures.insert("memory_kind".to_owned(), (all - one) / more as f64);
    (figures, calls)
}
