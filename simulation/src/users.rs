//! Users, and whoever else writes to a cluster. Their actions are data, so that a failing run can be shrunk.

use http::Method;
use kube_memory::Cluster;
use serde_json::{Value, json};
use training_job::api::labels;

use crate::direct;
use crate::job;
use crate::planned_job::PlannedJob;
use crate::random::Random;

/// Something that a user does. The numbers are those of jobs.
#[derive(Clone, Debug, PartialEq)]
pub enum UserAction {
    /// Creates a job.
    Create(usize),
    /// Deletes a job with this propagation policy.
    Delete(usize, &'static str),
    /// Deletes a job and creates it again at once.
    Recreate(usize),
    /// Merges a patch into a job.
    Edit(usize, Value),
    /// Merges a patch into the status of a job.
    EditStatus(usize, Value),
    /// Merges a patch into a pod or service: its plural and name.
    EditChild(&'static str, String, Value),
    /// Deletes a pod, by force or gracefully.
    DeletePod(String, bool),
    /// Deletes the services or ConfigMaps whose names begin so: their plural, and the beginning.
    DeleteOthers(&'static str, String),
    /// Allows so many pods in the namespace, or any number.
    Quota(Option<u64>),
    /// Creates a pod or service that no job controls: its plural and name.
    Foreign(&'static str, String),
}

impl UserAction {
    /// What a queue does with a job, in one patch: it admits it to this zone, or evicts it.
    pub fn queue(number: usize, job: &PlannedJob, zone: Option<&str>) -> Self {
        let template = json!({"template": {"spec": {"nodeSelector": {"zone": zone}}}});
        let roles = job::roles(&job.object).into_keys();
        let specs: Value = roles.map(|role| (role, template.clone())).collect();
        let mut patch = json!({
            "metadata": {"labels": {labels::QUEUE_NAME: "queue"}},
            "spec": {"runPolicy": {"suspend": zone.is_none()}},
        });
        patch["spec"][job.job_type.replica_specs_field()] = specs;
        Self::Edit(number, patch)
    }

    /// The job it is done to, if it names one.
    pub fn job(&self) -> Option<usize> {
        match self {
            Self::Create(n) | Self::Delete(n, _) | Self::Recreate(n) | Self::Edit(n, _) => Some(*n),
            _ => None,
        }
    }
}

/// A type of user action, which a seed has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserActionType {
    /// Changes the replicas of a role.
    Scale,
    /// Suspends a job, and mostly resumes it later.
    Suspend,
    /// Changes the run policy.
    Policy,
    /// Deletes a pod.
    DeletePod,
    /// Deletes a job.
    DeleteJob,
    /// Deletes a job and creates it again.
    Recreate,
    /// Makes the spec invalid, and valid again later.
    Break,
    /// Changes or removes a label of a child.
    Relabel,
    /// Removes the owner of a child.
    Orphan,
    /// Creates an object with a child's name.
    Foreign,
    /// Changes an annotation of a job.
    Touch,
    /// Writes over a status.
    EditStatus,
    /// Sets a quota of pods, and removes it later.
    Quota,
    /// Deletes a service, or the ConfigMaps of a job.
    DeleteOthers,
    /// Deletes or empties an object that a job has beside pods and services.
    SpoilObject,
    /// A queue takes a job's room away, and gives it room elsewhere later.
    Queue,
    /// Deletes the group of a job, or makes it ask for more pods than there are.
    SpoilGroup,
}

/// What an action is about.
pub struct Target<'a> {
    /// The number of the job.
    pub number: usize,
    /// The job.
    pub job: &'a PlannedJob,
    /// One of its roles.
    pub role: String,
    /// The name of one of its pods.
    pub pod: String,
    /// The name of one of its services.
    pub service: String,
}

impl<'a> Target<'a> {
    /// One of these jobs, of which there is at least one.
    pub fn draw(random: &mut Random, jobs: &'a [PlannedJob]) -> Self {
        let number = usize::try_from(random.below(jobs.len() as u64)).unwrap_or(0);
        let job = &jobs[number];
        let names: Vec<String> = job::names(&job.object).into_iter().collect();
        let pod = random.pick(&names).clone();
        let service = match job::is_compact(&job.object) {
            true => format!("{}-hosts", job.name),
            false => pod.clone(),
        };
        let roles: Vec<String> = job::roles(&job.object).into_keys().collect();
        let role = random.pick(&roles).clone();
        Self {
            number,
            job,
            role,
            pod,
            service,
        }
    }

    /// Pods or services, and the name of one of them.
    fn child(self, random: &mut Random) -> (&'static str, String) {
        match draw_plural(random) {
            "pods" => ("pods", self.pod),
            plural => (plural, self.service),
        }
    }

    fn edit_run_policy(&self, policy: Value) -> UserAction {
        UserAction::Edit(self.number, json!({"spec": {"runPolicy": policy}}))
    }

    fn scale(&self, replicas: i64) -> UserAction {
        let mut patch = json!({"spec": {}});
        let field = self.job.job_type.replica_specs_field();
        patch["spec"][field] = json!({self.role.clone(): {"replicas": replicas}});
        UserAction::Edit(self.number, patch)
    }
}

impl UserActionType {
    /// The actions to carry out, with their times: `at`, or `later` for what undoes the first.
    pub fn draw(
        self,
        random: &mut Random,
        at: u64,
        later: u64,
        target: Target<'_>,
    ) -> Vec<(u64, UserAction)> {
        let number = target.number;
        let once = |action| vec![(at, action)];
        match self {
            Self::Scale => once(target.scale(random.between(0, 4) as i64)),
            Self::Suspend => {
                let suspend = |yes: bool| target.edit_run_policy(json!({"suspend": yes}));
                let mut actions = once(suspend(true));
                if random.chance(900) {
                    actions.push((later, suspend(false)));
                }
                actions
            }
            Self::Policy => once(target.edit_run_policy(match random.below(3) {
                0 => json!({"cleanPodPolicy": random.pick(&["All", "Running", "None"])}),
                1 => json!({"activeDeadlineSeconds": random.between(1, 100)}),
                _ => json!({"backoffLimit": random.between(0, 3)}),
            })),
            Self::DeletePod => once(UserAction::DeletePod(target.pod, random.chance(300))),
            Self::DeleteJob => {
                let propagation = *random.pick(&["Background", "Foreground", "Orphan"]);
                once(UserAction::Delete(number, propagation))
            }
            Self::Recreate => once(UserAction::Recreate(number)),
            Self::Break => vec![(at, target.scale(-1)), (later, target.scale(1))],
            Self::Relabel => {
                let label = *random.pick(&[
                    "training.kubeflow.org/operator-name",
                    "training.kubeflow.org/replica-index",
                    "training.kubeflow.org/job-name",
                ]);
                let values = [Value::Null, json!("2000000000"), json!("x")];
                let value = random.pick(&values).clone();
                let patch = json!({"metadata": {"labels": {label: value}}});
                let (plural, name) = target.child(random);
                once(UserAction::EditChild(plural, name, patch))
            }
            Self::Orphan => {
                let patch = json!({"metadata": {"ownerReferences": null}});
                let (plural, name) = target.child(random);
                once(UserAction::EditChild(plural, name, patch))
            }
            Self::Foreign => {
                let (plural, name) = target.child(random);
                once(UserAction::Foreign(plural, name))
            }
            Self::DeleteOthers => once(match random.chance(500) {
                true => UserAction::DeleteOthers("services", target.service),
                false => UserAction::DeleteOthers("configmaps", format!("{}-env-", target.job.name)),
            }),
            Self::SpoilObject => {
                // What is drawn is part of what seeds mean.
                let plural = *random.pick(&job::CHILDREN[2..7]);
                let name = job::object_name(&target.job.object, plural).unwrap_or_default();
                let emptied = match plural {
                    "configmaps" => json!({"data": null}),
                    "rolebindings" => json!({"subjects": null}),
                    job::AUTOSCALERS => json!({"spec": {"maxReplicas": 99}}),
                    _ => json!({"rules": null}),
                };
                once(match random.chance(500) {
                    true => UserAction::DeleteOthers(plural, name),
                    false => UserAction::EditChild(plural, name, emptied),
                })
            }
            Self::Queue => {
                let zone = *random.pick(&["a", "b"]);
                let queue = |zone| UserAction::queue(number, target.job, zone);
                vec![(at, queue(None)), (later, queue(Some(zone)))]
            }
            Self::SpoilGroup => once(match random.chance(500) {
                true => UserAction::DeleteOthers(job::GROUPS, target.job.name.clone()),
                false => {
                    let patch = json!({"spec": {"minMember": 99}});
                    UserAction::EditChild(job::GROUPS, target.job.name.clone(), patch)
                }
            }),
            Self::Touch => {
                let patch = json!({"metadata": {"annotations": {"touched": at.to_string()}}});
                once(UserAction::Edit(number, patch))
            }
            Self::EditStatus => {
                let patch = json!({"status": draw_status(random)});
                once(UserAction::EditStatus(number, patch))
            }
            Self::Quota => {
                let pods = random.between(0, 5);
                vec![
                    (at, UserAction::Quota(Some(pods))),
                    (later, UserAction::Quota(None)),
                ]
            }
        }
    }
}

fn draw_plural(random: &mut Random) -> &'static str {
    random.pick::<&str>(&["pods", "services"])
}

/// A status that somebody writes over the operator's.
fn draw_status(random: &mut Random) -> Value {
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

/// Carries an action out, and returns the status code of the last answer.
pub async fn perform(cluster: &Cluster, jobs: &[PlannedJob], action: &UserAction) -> u16 {
    let path_of = |job: &PlannedJob| direct::path(job.job_type.plural(), &job.name);
    let create = async |job: &PlannedJob| {
        let path = direct::path(job.job_type.plural(), "");
        direct::send(cluster, Method::POST, &path, &job.object).await.0
    };
    let delete = async |job: &PlannedJob, how: &str| {
        let options = json!({"propagationPolicy": how});
        direct::send(cluster, Method::DELETE, &path_of(job), &options)
            .await
            .0
    };
    match action {
        UserAction::Create(n) => create(&jobs[*n]).await,
        UserAction::Delete(n, how) => delete(&jobs[*n], how).await,
        UserAction::Recreate(n) => {
            delete(&jobs[*n], "Background").await;
            create(&jobs[*n]).await
        }
        UserAction::Edit(n, patch) => {
            direct::send(cluster, Method::PATCH, &path_of(&jobs[*n]), patch)
                .await
                .0
        }
        UserAction::EditStatus(n, patch) => {
            let path = format!("{}/status", path_of(&jobs[*n]));
            direct::send(cluster, Method::PATCH, &path, patch).await.0
        }
        UserAction::EditChild(plural, name, patch) => {
            let stored = cluster.get(plural, "default", name);
            let path = stored.map(|object| direct::path_of(&object, plural));
            let path = path.unwrap_or_else(|| direct::path(plural, name));
            direct::send(cluster, Method::PATCH, &path, patch).await.0
        }
        UserAction::DeletePod(name, force) => {
            let options = if *force {
                json!({"gracePeriodSeconds": 0})
            } else {
                json!({})
            };
            direct::send(cluster, Method::DELETE, &direct::path("pods", name), &options)
                .await
                .0
        }
        UserAction::DeleteOthers(plural, beginning) => {
            let mut code = 404;
            for object in cluster.list(plural, None) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                if name.starts_with(beginning) {
                    let path = direct::path_of(&object, plural);
                    code = direct::send(cluster, Method::DELETE, &path, &json!({})).await.0;
                }
            }
            code
        }
        UserAction::Quota(pods) => set_quota(cluster, *pods).await,
        UserAction::Foreign(plural, name) => {
            let meta = json!({"name": name, "labels": {"made-by": "somebody-else"}});
            let object = job::foreign(plural, &meta);
            direct::send(cluster, Method::POST, &direct::path(plural, ""), &object)
                .await
                .0
        }
    }
}

async fn set_quota(cluster: &Cluster, pods: Option<u64>) -> u16 {
    let path = |name| direct::path("resourcequotas", name);
    let deleted = direct::send(cluster, Method::DELETE, &path("q"), &json!({}))
        .await
        .0;
    let Some(pods) = pods else { return deleted };
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": {"pods": pods.to_string()}}});
    direct::send(cluster, Method::POST, &path(""), &quota).await.0
}

/// Deletes what blocks jobs: a quota, and the children that have no controller.
pub async fn delete_blockers(cluster: &Cluster) {
    set_quota(cluster, None).await;
    for plural in job::CHILDREN {
        for object in cluster.list(plural, None) {
            if job::controller(&*object).is_none() {
                let path = direct::path_of(&object, plural);
                direct::send(cluster, Method::DELETE, &path, &json!({"gracePeriodSeconds": 0})).await;
            }
        }
    }
}
