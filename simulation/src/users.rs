//! Users, and whoever else does things to a cluster: what they do is data, so that it can be taken away.

use http::Method;
use kube_memory::Cluster;
use serde_json::{Value, json};

use crate::job::{self, Kind};
use crate::random::Random;
use crate::settings::Settings;
use crate::wire;

/// A kind of thing that users do, or that befalls a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is described with the deed it leads to")]
pub enum Habit {
    Scale,
    Suspend,
    Policy,
    DeletePod,
    DeleteJob,
    Recreate,
    Break,
    Relabel,
    Orphan,
    Foreign,
    Touch,
    Cut,
    Compact,
    Freeze,
    Kill,
    EditStatus,
    SetClock,
    Restore,
    Quota,
}

impl Habit {
    /// All of them. Those of a version are the first.
    const ALL: [Self; 19] = [
        Self::Scale,
        Self::Suspend,
        Self::Policy,
        Self::DeletePod,
        Self::DeleteJob,
        Self::Recreate,
        Self::Break,
        Self::Relabel,
        Self::Orphan,
        Self::Foreign,
        Self::Touch,
        Self::Cut,
        Self::Compact,
        Self::Freeze,
        Self::Kill,
        Self::EditStatus,
        Self::SetClock,
        Self::Restore,
        Self::Quota,
    ];

    /// Those of a version of the settings.
    pub fn of_version(version: u32) -> &'static [Self] {
        match version {
            1 => &Self::ALL[..15],
            2 => &Self::ALL[..18],
            _ => &Self::ALL,
        }
    }
}

/// A job that users make.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPlan {
    /// What kind of job it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// The object as it is sent.
    pub object: Value,
}

/// Something that is done at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// When, in milliseconds since the beginning.
    pub at: u64,
    /// What.
    pub deed: Deed,
}

/// Something that is done. Numbers are those of jobs.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// A job is made.
    Create(usize),
    /// A job is deleted with this propagation policy.
    Delete(usize, &'static str),
    /// A job is deleted and made again at once.
    Recreate(usize),
    /// A patch is merged into a job.
    Edit(usize, Value),
    /// A patch is merged into the status of a job.
    EditStatus(usize, Value),
    /// A patch is merged into a pod or service.
    EditChild(&'static str, String, Value),
    /// A pod is deleted, gracefully or by force.
    DeletePod(String, bool),
    /// No more than so many pods may be in the namespace, or any number.
    Quota(Option<u64>),
    /// Somebody else makes an object of this name.
    Foreign(&'static str, String),
    /// Watches are cut.
    Cut(Option<&'static str>),
    /// The cluster forgets its history, and cuts watches.
    Compact,
    /// Watches fall silent.
    Freeze(&'static str),
    /// All operators are killed and started anew.
    Kill,
    /// The operators' clocks are set so many seconds apart from the cluster's.
    SetClock(i64),
    /// A backup of the cluster is made.
    Backup,
    /// The cluster is set back to its backup, if there is one. Versions go on: if they went back, and on beyond
    /// the newest that an operator knew before it asked, nobody could tell.
    Restore,
}

/// The jobs of a seed.
pub fn jobs(settings: &Settings) -> Vec<JobPlan> {
    let mut random = Random::about(settings.seed, "jobs", 0);
    (0..settings.jobs)
        .map(|n| plan(settings, n, &mut random))
        .collect()
}

fn plan(settings: &Settings, number: u64, random: &mut Random) -> JobPlan {
    let kinds = [Kind::Train, Kind::Train, Kind::Tune, Kind::Boost, Kind::Flow];
    let kinds = if settings.all_kinds {
        &kinds[..]
    } else {
        &kinds[..3]
    };
    let kind = *random.pick(kinds);
    let mut some = |most: u64| i32::try_from(random.between(1, most)).unwrap_or(1);
    let roles: Vec<(&str, i32)> = match kind {
        Kind::Train => vec![("Scheduler", 1), ("Server", some(2)), ("Worker", some(3))],
        Kind::Tune => vec![("TunerTracker", 1), ("TunerServer", some(2)), ("Tuner", 1)],
        Kind::Boost => vec![("Master", 1), ("Worker", some(3))],
        Kind::Flow => vec![("Chief", 1), ("PS", some(2)), ("Worker", some(2))],
    };
    let keep = random.between(1, 4);
    let roles: Vec<_> = match kind {
        // Some trainings have workers alone.
        Kind::Train if keep == 1 => roles.into_iter().skip(2).collect(),
        _ => roles,
    };
    let restart = *random.pick(&["ExitCode", "ExitCode", "OnFailure", "Never", "Always"]);
    // Now and then two jobs of different kinds have one name.
    let letter = if settings.all_kinds && random.chance(200) {
        0
    } else {
        number
    };
    let name = format!(
        "job-{letter}{}",
        if letter == number { "" } else { kind.plural() }
    );
    let name = if letter == number {
        name
    } else {
        "job-0".to_owned()
    };
    let mut object = job::of(kind, &name, &roles, restart);
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
    object["spec"]["runPolicy"] = policy;
    JobPlan { kind, name, object }
}

/// What is done in the run of a seed, in order of time.
pub fn acts(settings: &Settings, jobs: &[JobPlan]) -> Vec<Act> {
    let mut random = Random::about(settings.seed, "acts", 0);
    let mut acts: Vec<Act> = Vec::new();
    for number in 0..jobs.len() {
        let at = random.between(0, 3) * random.between(0, 2_000);
        acts.push(Act {
            at,
            deed: Deed::Create(number),
        });
    }
    for _ in 0..settings.deeds {
        let at = random.between(1, settings.span * 1_000);
        let habit = *random.pick(&settings.habits);
        let number = usize::try_from(random.below(jobs.len() as u64)).unwrap_or(0);
        let job = &jobs[number];
        let mut put = |at: u64, deed: Deed| acts.push(Act { at, deed });
        let names: Vec<String> = job::names(&job.object).into_iter().collect();
        let child = random.pick(&names).clone();
        let field = job.kind.words()[2];
        let all_roles: Vec<String> = job::roles(&job.object).into_keys().collect();
        let role = random.pick(&all_roles).clone();
        let mut replicas = json!({"spec": {}});
        let mut set = |n: i64| {
            replicas["spec"][field] = json!({role.clone(): {"replicas": n}});
            replicas.clone()
        };
        let suspend = |yes: bool| json!({"spec": {"runPolicy": {"suspend": yes}}});
        let later = at + random.between(0, 3) * random.between(0, 8_000);
        match habit {
            Habit::Scale => put(at, Deed::Edit(number, set(random.between(0, 4) as i64))),
            Habit::Suspend => {
                put(at, Deed::Edit(number, suspend(true)));
                if random.chance(900) {
                    put(later, Deed::Edit(number, suspend(false)));
                }
            }
            Habit::Policy => {
                let policy = match random.below(3) {
                    0 => json!({"cleanPodPolicy": random.pick(&["All", "Running", "None"])}),
                    1 => json!({"activeDeadlineSeconds": random.between(1, 100)}),
                    _ => json!({"backoffLimit": random.between(0, 3)}),
                };
                put(at, Deed::Edit(number, json!({"spec": {"runPolicy": policy}})));
            }
            Habit::DeletePod => put(at, Deed::DeletePod(child, random.chance(300))),
            Habit::DeleteJob => {
                let how = *random.pick(&["Background", "Foreground", "Orphan"]);
                put(at, Deed::Delete(number, how));
            }
            Habit::Recreate => put(at, Deed::Recreate(number)),
            Habit::Break => {
                put(at, Deed::Edit(number, set(-1)));
                put(later, Deed::Edit(number, set(1)));
            }
            Habit::Relabel => {
                let label = *random.pick(&[
                    "training.kubeflow.org/operator-name",
                    "training.kubeflow.org/replica-index",
                    "training.kubeflow.org/job-name",
                ]);
                let value = random
                    .pick(&[Value::Null, json!("2000000000"), json!("x")])
                    .clone();
                let plural = *random.pick::<&str>(&["pods", "services"]);
                put(
                    at,
                    Deed::EditChild(plural, child, json!({"metadata": {"labels": {label: value}}})),
                );
            }
            Habit::Orphan => {
                let patch = json!({"metadata": {"ownerReferences": null}});
                put(
                    at,
                    Deed::EditChild(random.pick::<&str>(&["pods", "services"]), child, patch),
                );
            }
            Habit::Foreign => put(
                at,
                Deed::Foreign(random.pick::<&str>(&["pods", "services"]), child),
            ),
            Habit::Touch => {
                let patch = json!({"metadata": {"annotations": {"touched": at.to_string()}}});
                put(at, Deed::Edit(number, patch));
            }
            Habit::Cut => {
                let which = *random.pick(&[None, Some("pods"), Some(job.kind.plural()), Some("services")]);
                put(at, Deed::Cut(which));
            }
            Habit::Compact => put(at, Deed::Compact),
            Habit::Freeze => {
                let which = *random.pick(&["pods", job.kind.plural(), "services"]);
                put(at, Deed::Freeze(which));
            }
            Habit::Kill => put(at, Deed::Kill),
            Habit::Quota => {
                put(at, Deed::Quota(Some(random.between(0, 5))));
                put(later, Deed::Quota(None));
            }
            Habit::EditStatus => put(
                at,
                Deed::EditStatus(number, json!({ "status": status(&mut random) })),
            ),
            Habit::SetClock => put(at, Deed::SetClock(random.between(0, 1_200) as i64 - 600)),
            Habit::Restore => {
                put(at, Deed::Backup);
                put(later, Deed::Restore);
            }
        }
    }
    acts.sort_by_key(|act| act.at);
    acts
}

/// What somebody writes over a status.
fn status(random: &mut Random) -> Value {
    let time = "2030-01-01T00:00:10Z";
    random
        .pick(&[
            Value::Null,
            json!({"conditions": null}),
            json!({"conditions": [{"type": "Succeeded", "status": "True"}]}),
            json!({"conditions": [{"type": "Suspended", "status": "True", "reason": "r", "message": "m"}]}),
            json!({"conditions": [{"type": "Failed", "status": "False", "lastTransitionTime": time}]}),
            json!({"replicaStatuses": {"Worker": {"active": 99, "failed": -7}, "Sleeper": {}}}),
            json!({"replicaStatuses": null, "startTime": null}),
            json!({"startTime": "2029-12-31T23:00:00Z"}),
            json!({"completionTime": time}),
            json!({"restartCount": 50}),
            json!({"recovery": null}),
            json!({"recovery": {"job": 3}}),
            json!({"recovery": {"job": -1, "replicas": {"worker-0": 2_000_000_000}}}),
            json!({"recovery": {"completed": {"Worker": "0-4000000000,x,3-1"}}}),
        ])
        .clone()
}

/// Does what users do; what befalls the cluster's connections is not theirs. Returns the answer's code.
pub async fn perform(cluster: &Cluster, jobs: &[JobPlan], deed: &Deed) -> u16 {
    let named = |job: &JobPlan| wire::path(job.kind.plural(), &job.name);
    let create = async |job: &JobPlan| {
        let path = wire::path(job.kind.plural(), "");
        wire::send(cluster, Method::POST, &path, &job.object).await.0
    };
    let delete = async |job: &JobPlan, how: &str| {
        let options = json!({"propagationPolicy": how});
        wire::send(cluster, Method::DELETE, &named(job), &options).await.0
    };
    match deed {
        Deed::Create(n) => create(&jobs[*n]).await,
        Deed::Delete(n, how) => delete(&jobs[*n], how).await,
        Deed::Recreate(n) => {
            delete(&jobs[*n], "Background").await;
            create(&jobs[*n]).await
        }
        Deed::Edit(n, patch) => {
            wire::send(cluster, Method::PATCH, &named(&jobs[*n]), patch)
                .await
                .0
        }
        Deed::EditStatus(n, patch) => {
            let path = format!("{}/status", named(&jobs[*n]));
            wire::send(cluster, Method::PATCH, &path, patch).await.0
        }
        Deed::EditChild(plural, name, patch) => {
            wire::send(cluster, Method::PATCH, &wire::path(plural, name), patch)
                .await
                .0
        }
        Deed::DeletePod(name, force) => {
            let options = if *force {
                json!({"gracePeriodSeconds": 0})
            } else {
                json!({})
            };
            wire::send(cluster, Method::DELETE, &wire::path("pods", name), &options)
                .await
                .0
        }
        Deed::Quota(most) => quota(cluster, *most).await,
        Deed::Foreign(plural, name) => {
            let meta = json!({"name": name, "labels": {"made-by": "somebody-else"}});
            let object = job::foreign(plural, &meta);
            wire::send(cluster, Method::POST, &wire::path(plural, ""), &object)
                .await
                .0
        }
        Deed::Cut(_)
        | Deed::Compact
        | Deed::Freeze(_)
        | Deed::Kill
        | Deed::SetClock(_)
        | Deed::Backup
        | Deed::Restore => 0,
    }
}

async fn quota(cluster: &Cluster, most: Option<u64>) -> u16 {
    let path = |name| wire::path("resourcequotas", name);
    let gone = wire::send(cluster, Method::DELETE, &path("q"), &json!({}))
        .await
        .0;
    let Some(most) = most else { return gone };
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": {"pods": most.to_string()}}});
    wire::send(cluster, Method::POST, &path(""), &quota).await.0
}

/// Takes away what keeps jobs from going on: a quota, and the pods and services that nobody owns.
pub async fn clear_away(cluster: &Cluster) {
    quota(cluster, None).await;
    for plural in ["pods", "services"] {
        for object in cluster.list(plural, None) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if job::controller(&*object).is_none() {
                let path = wire::path(plural, name);
                wire::send(cluster, Method::DELETE, &path, &json!({"gracePeriodSeconds": 0})).await;
            }
        }
    }
}
