//! The courses of runs, each with its figures.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use training_job_testbed::cluster::Link;
use training_operator_testing::usage::age;

use crate::driver::Driver;
use crate::processes;
use crate::test_cluster::{SETTLE_TIME, TestCluster};
use crate::timelines::{Figures, JobTimeline, spread};
use crate::work::{Contender, Course, Jobs, NODE, Work};

/// Runs the work once by one contender. Returns the figures, and the calls by verb and resource.
pub(crate) async fn run(contender: Contender, work: &Work, in_flight: usize) -> (Figures, Figures) {
    let kind = work.jobs.kind;
    if let Course::Processes = work.course {
        return (processes::run(contender, work.jobs).await, Figures::new());
    }
    let mut cluster = TestCluster::start(contender, kind, in_flight).await;
    let mut driver = Driver::start(&cluster, kind).await;
    match work.course {
        Course::Burst => burst(&cluster, &mut driver, work.jobs).await,
        Course::Restart => restart(&mut cluster, &mut driver, work.jobs).await,
        Course::Foreign(pods) => foreign(&cluster, &mut driver, pods).await,
        Course::Idle(time) => idle(&cluster, &mut driver, work.jobs, time).await,
        Course::Beside => beside(&cluster, &mut driver, work.jobs).await,
        Course::Kinds => kinds(&mut cluster).await,
        Course::Away(time) => away(&cluster, &mut driver, work.jobs, time).await,
        Course::Quota(slots) => quota(&cluster, &mut driver, work.jobs, slots).await,
        Course::Watched(time) => watched(&cluster, &mut driver, work.jobs, time).await,
        Course::Processes => unreachable!("its pods are not played"),
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

fn has_succeeded(timeline: &JobTimeline) -> bool {
    timeline.succeeded.is_some() && timeline.last_pod_ended.is_some()
}

async fn burst(cluster: &TestCluster, driver: &mut Driver, jobs: Jobs) -> (Figures, Figures) {
    let mark = cluster.mark();
    driver.submit(jobs, names(jobs));
    driver
        .until("all jobs to succeed", |timelines| timelines.all(has_succeeded))
        .await;
    let seconds = driver.timelines.figures();
    sleep(SETTLE_TIME).await;
    let (mut figures, calls) = cluster.since(&mark, jobs.count);
    figures.extend(seconds);
    if let Some(tell) = &cluster.tell {
        let _ = tell.send(serde_json::json!({"done": true}));
        let line = cluster.operator().wait_for_line("calls: ").await;
        let times: Figures = serde_json::from_str(line.trim_start_matches("calls: ")).unwrap();
        figures.extend(times);
    }
    (figures, calls)
}

/// Measures a restart. The operator is ready when a job that was created in the meantime has a pod.
async fn restart(cluster: &mut TestCluster, driver: &mut Driver, jobs: Jobs) -> (Figures, Figures) {
    driver.submit(jobs, names(jobs));
    driver
        .until("all jobs to run", |timelines| {
            timelines.all(|timeline| timeline.running.is_some())
        })
        .await;
    driver.play(SETTLE_TIME).await;
    cluster.kill_operator();
    driver.submit(Jobs { count: 1, ..jobs }, ["late".to_owned()]);
    driver.play(Duration::from_secs(1)).await;
    let mark = cluster.mark();
    cluster.start_operator().await;
    driver
        .until("a job that came meanwhile to have a pod", |timelines| {
            !timelines.jobs["late"].made.is_empty()
        })
        .await;
    let ago = driver.timelines.jobs["late"].made[0].elapsed().as_secs_f64();
    let ready = age(cluster.operator_pid()) - ago;
    driver.play(SETTLE_TIME).await;
    let (mut figures, calls) = cluster.since(&mark, 1);
    figures.insert("ready".to_owned(), ready);
    (figures, calls)
}

async fn foreign(cluster: &TestCluster, driver: &mut Driver, pods: usize) -> (Figures, Figures) {
    let mark = cluster.mark();
    driver.foreign(pods).await;
    sleep(SETTLE_TIME).await;
    cluster.since(&mark, 1)
}

async fn idle(cluster: &TestCluster, driver: &mut Driver, jobs: Jobs, time: Duration) -> (Figures, Figures) {
    driver.submit(jobs, names(jobs));
    driver
        .until("all jobs to succeed", |timelines| timelines.all(has_succeeded))
        .await;
    sleep(2 * SETTLE_TIME).await;
    let mark = cluster.mark();
    sleep(time).await;
    cluster.since(&mark, 1)
}

async fn beside(cluster: &TestCluster, driver: &mut Driver, large: Jobs) -> (Figures, Figures) {
    let small = Jobs::new(1, 5, 1);
    let mark = cluster.mark();
    driver.submit(small, ["alone".to_owned()]);
    driver
        .until("a small job", |timelines| timelines.all(has_succeeded))
        .await;
    driver.play(SETTLE_TIME).await;
    driver.submit(large, ["large".to_owned()]);
    let begun = large.pods() / 10;
    driver
        .until("a tenth of a large job", |timelines| {
            timelines.jobs["large"].made.len() >= begun
        })
        .await;
    driver.submit(small, ["beside".to_owned()]);
    driver
        .until("a small job beside", |timelines| {
            timelines.jobs["beside"].is_made()
        })
        .await;
    let large_had = driver.timelines.jobs["large"].made.len();
    driver
        .until("both jobs", |timelines| timelines.all(has_succeeded))
        .await;
    let making = |name: &str| driver.timelines.jobs[name].making().unwrap().as_secs_f64();
    let (mut figures, calls) = cluster.since(&mark, 1);
    for name in ["alone", "beside", "large"] {
        figures.insert(format!("making_{name}"), making(name));
    }
    figures.insert("large_had".to_owned(), large_had as f64);
    (figures, calls)
}

/// Measures jobs in a namespace whose quota has capacity for the pods of some of them at a time.
async fn quota(cluster: &TestCluster, driver: &mut Driver, jobs: Jobs, slots: usize) -> (Figures, Figures) {
    cluster.limit_pods(slots * jobs.pods()).await;
    let (mut figures, calls) = burst(cluster, driver, jobs).await;
    let of_all = |at: fn(&JobTimeline) -> Option<Instant>| {
        let mut all: Vec<_> = driver.timelines.jobs.values().filter_map(at).collect();
        all.sort();
        all
    };
    let made = of_all(|timeline| timeline.made.iter().max().copied());
    let ended = of_all(|timeline| timeline.last_pod_ended);
    let waits = made[slots..].iter().zip(&ended);
    spread(
        &mut figures,
        "next",
        waits.map(|(made, ended)| made.saturating_duration_since(*ended)),
    );
    (figures, calls)
}

fn is_watched(timeline: &JobTimeline) -> bool {
    timeline.jobs.stalled_after.is_some()
}

/// The wait between two lines that a watched pod prints.
const PRINT_INTERVAL: Duration = Duration::from_secs(10);

/// Measures the calls for jobs whose output is read, and the end of other jobs without them and beside them.
async fn watched(
    cluster: &TestCluster,
    driver: &mut Driver,
    jobs: Jobs,
    time: Duration,
) -> (Figures, Figures) {
    let others = Jobs::new(jobs.count / 10, 5, 1);
    let ends = async |driver: &mut Driver, name: &str| {
        driver.submit(others, (0..others.count).map(|n| format!("{name}{n}")));
        driver
            .until("the other jobs to succeed", |timelines| {
                timelines.all(|timeline| is_watched(timeline) || has_succeeded(timeline))
            })
            .await;
        let ended = driver
            .timelines
            .jobs
            .iter()
            .filter(|(job, _)| job.starts_with(name));
        let delays =
            ended.filter_map(|(_, job)| Some(job.succeeded?.saturating_duration_since(job.last_pod_ended?)));
        let mut figures = Figures::new();
        spread(&mut figures, &format!("end_{name}"), delays);
        figures
    };
    let mut figures = ends(driver, "alone").await;
    let logs = cluster.plane.directory().join("logs-of-node");
    let directory = logs.join(&cluster.namespace);
    std::fs::create_dir_all(&directory).unwrap();
    let _node = cluster.plane.answering_node(NODE, "LOGS", &logs).await;
    let printing = tokio::spawn(async move {
        for step in 0.. {
            for n in 0..jobs.count {
                let line = format!(
                    "{} stdout F step {step}/100000 loss=0.{n}\n",
                    jiff::Timestamp::now()
                );
                let file = directory.join(format!("j{n}-worker-0.log"));
                let mut file = File::options().create(true).append(true).open(file).unwrap();
                file.write_all(line.as_bytes()).unwrap();
            }
            sleep(PRINT_INTERVAL).await;
        }
    });
    driver.submit(jobs, names(jobs));
    driver
        .until("all watched jobs to run", |timelines| {
            timelines.all(|timeline| !is_watched(timeline) || timeline.running.is_some())
        })
        .await;
    driver.play(time / 2).await;
    let mark = cluster.mark();
    driver.play(time).await;
    let (calm, _) = cluster.since(&mark, 1);
    figures.extend(
        ["cpu", "calls", "status_writes"]
            .map(|name| (format!("{name}_a_second"), calm[name] / calm["seconds"])),
    );
    figures.extend(ends(driver, "beside").await);
    printing.abort();
    let (more, calls) = cluster.since(&mark, 1);
    figures.extend(more);
    (figures, calls)
}

/// Time without a further event after which the missing ones count as lost.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(30);

/// Measures what an operator does while the API server is away in each way, with jobs that are being created.
async fn away(cluster: &TestCluster, driver: &mut Driver, jobs: Jobs, time: Duration) -> (Figures, Figures) {
    let mark = cluster.mark();
    let mut figures = Figures::new();
    let counts = || {
        let connections = cluster.relay.traffic().connections + refused_connections();
        [connections, cluster.operator().text().lines().count()]
    };
    for link in Link::AWAY {
        let name = format!("{link:?}").to_lowercase();
        driver.submit(jobs, (0..jobs.count).map(|n| format!("{name}{n}")));
        let is_of = |job: &str| job.starts_with(&name);
        driver
            .until("a tenth of the jobs to have pods", |timelines| {
                let made = timelines
                    .jobs
                    .iter()
                    .filter(|(job, timeline)| is_of(job) && timeline.is_made());
                made.count() >= jobs.count / 10
            })
            .await;
        cluster.relay.set(link);
        let (end, mut before, mut most) = (Instant::now() + time, counts(), [0, 0]);
        while Instant::now() < end {
            driver.play(Duration::from_secs(1)).await;
            let now = counts();
            most = [0, 1].map(|n| most[n].max(now[n] - before[n]));
            before = now;
        }
        cluster.relay.set(Link::Up);
        let up = Instant::now();
        let first = |driver: &Driver| {
            let made = driver.timelines.jobs.values().flat_map(|timeline| &timeline.made);
            made.copied().filter(|made| *made > up).min()
        };
        driver
            .until("all jobs to succeed", |timelines| timelines.all(has_succeeded))
            .await;
        let back = first(driver).map_or(0.0, |first| (first - up).as_secs_f64());
        let worst = [
            ("connections in the worst second", most[0] as f64),
            ("log lines in the worst second", most[1] as f64),
            ("from its return to the first pod, s", back),
            ("from its return to the last end, s", up.elapsed().as_secs_f64()),
        ];
        figures.extend(worst.map(|(figure, value)| (format!("{name}: {figure}"), value)));
    }
    // Events are sent after the calls for jobs, so some are still queued.
    let all = jobs.count * Link::AWAY.len();
    let (mut ended, mut grew_at) = (0, Instant::now());
    while ended < all && grew_at.elapsed() < EVENTS_TIMEOUT {
        let now = cluster.events("MXJobSucceeded").await;
        if now > ended {
            (ended, grew_at) = (now, Instant::now());
        }
        sleep(SETTLE_TIME).await;
    }
    let lost = all as f64 - ended as f64;
    figures.insert("events of ended jobs that were lost".to_owned(), lost);
    let (more, calls) = cluster.since(&mark, all);
    figures.extend(more);
    (figures, calls)
}

/// Returns the number of refused connections of all programs of this machine so far.
fn refused_connections() -> usize {
    let text = std::fs::read_to_string("/proc/net/snmp").unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let place = names.split(' ').position(|name| name == "AttemptFails").unwrap();
    values.split(' ').nth(place).unwrap().parse().unwrap()
}

/// Measures the cost of kinds without jobs.
async fn kinds(cluster: &mut TestCluster) -> (Figures, Figures) {
    sleep(SETTLE_TIME).await;
    let one = cluster.memory();
    cluster.kill_operator();
    cluster.schemes = KINDS.map(|kind| format!("--enable-scheme={kind}")).to_vec();
    let mark = cluster.mark();
    cluster.start_operator().await;
    sleep(SETTLE_TIME).await;
    let all = cluster.memory();
    let (mut figures, calls) = cluster.since(&mark, 1);
    figures.insert("memory_one".to_owned(), one);
    figures.insert("memory_all".to_owned(), all);
    let more = KINDS.len() - 1;
    figures.insert("memory_kind".to_owned(), (all - one) / more as f64);
    (figures, calls)
}
