//! Users and other writers of a cluster. Their actions are data, so that a failing run can be shrunk.

use http::Method;
use kube_memory::Cluster;
use serde_json::{Value, json};
use training_job::api::labels;

use crate::random::Random;
use crate::scenario::planned_job::PlannedJob;
use crate::world::direct;
use crate::world::job::{self, JobType};

/// An action of a user. The numbers are indexes of jobs.
#[derive(Clone, Debug, PartialEq)]
pub enum UserAction {
    /// Creates a job.
    Create(usize),
    /// Deletes a job with this propagation policy.
    Delete(usize, &'static str),
    /// Deletes a job and creates it again immediately.
    Recreate(usize),
    /// Merges a patch into a job.
    Edit(usize, Value),
    /// Merges a patch into the status of a job.
    EditStatus(usize, Value),
    /// Merges a patch into a child of this plural and name.
    EditChild(&'static str, String, Value),
    /// Deletes a pod, by force if true, otherwise gracefully.
    DeletePod(String, bool),
    /// Deletes the objects of this plural whose names start with this prefix, such as services or ConfigMaps.
    DeleteOthers(&'static str, String),
    /// Limits the number of pods in the namespace, or removes the limit.
    Quota(Option<u64>),
    /// Creates a pod or service that no job controls: its plural and name.
    Foreign(&'static str, String),
}

impl UserAction {
    /// Returns the edit of a queue, in one patch: it admits a job to this zone, or evicts it.
    pub fn queue(number: usize, job: &PlannedJob, zone: Option<&str>) -> Self {
        let template = json!({"spec": {"nodeSelector": {"zone": zone}}});
        let mut patch = json!({
            "metadata": {"labels": {labels::QUEUE_NAME: "queue"}},
            "spec": {"runPolicy": {"suspend": zone.is_none()}},
        });
        let spec = &mut patch["spec"];
        if job.job_type == JobType::Steps {
            spec["controller"]["template"] = template.clone();
            spec["launcher"] = template;
        } else {
            let roles = job::roles(&job.object).into_keys();
            let specs = roles.map(|role| (role, json!({"template": template})));
            spec[job.job_type.replica_specs_field()] = specs.collect();
        }
        Self::Edit(number, patch)
    }

    /// Returns the job of the action, if it names one.
    pub fn job(&self) -> Option<usize> {
        match self {
            Self::Create(n) | Self::Delete(n, _) | Self::Recreate(n) | Self::Edit(n, _) => Some(*n),
            _ => None,
        }
    }
}

/// A type of user action, which a seed enables or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserActionType {
    /// Changes the replicas of a role.
    Scale,
    /// Suspends a job, and usually resumes it later.
    Suspend,
    /// Changes the run policy.
    Policy,
    /// Deletes a pod.
    DeletePod,
    /// Deletes a job.
    DeleteJob,
    /// Deletes a job and creates it again.
    Recreate,
    /// Makes the spec invalid, and later valid again.
    Break,
    /// Changes or removes a label of a child.
    Relabel,
    /// Removes the owner reference of a child.
    Orphan,
    /// Creates an object with the name of a child.
    Foreign,
    /// Changes an annotation of a job.
    Touch,
    /// Overwrites a status.
    EditStatus,
    /// Sets a quota of pods, and removes it later.
    Quota,
    /// Deletes a service, or the ConfigMaps of a job.
    DeleteOthers,
    /// Deletes or empties an object that a job has beside pods and services.
    SpoilObject,
    /// Evicts a job from its queue, and later admits it to another zone.
    Queue,
    /// Deletes the group of a job, or raises its minimum beyond the number of pods.
    SpoilGroup,
    /// Removes labels, owner references or both from some of a job's children, of any kind. In half of the cases the
    /// job is suspended meanwhile.
    Vandalize,
    /// Writes random values into fields of a status.
    SpoilStatus,
}

/// The target of an action.
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
    /// Draws one of these jobs, and a role, a pod and a service of it. `jobs` must not be empty.
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

    /// Draws a plural of pods or services, and returns it with the name of the pod or service.
    fn child(self, random: &mut Random) -> (&'static str, String) {
        match draw_plural(random) {
            "pods" => ("pods", self.pod),
            plural => (plural, self.service),
        }
    }

    /// Draws any object that the job may have, except those that are named after their content.
    fn any_child(&self, random: &mut Random) -> Option<(&'static str, String)> {
        let plural = *random.pick(self.children());
        let name = match plural {
            "pods" => Some(self.pod.clone()),
            "services" => Some(self.service.clone()),
            plural => job::object_name(&self.job.object, plural),
        };
        Some((plural, name?))
    }

    /// Returns the plurals of the children that its kind may have.
    fn children(&self) -> &'static [&'static str] {
        match self.job.job_type {
            JobType::Steps => &job::CHILDREN,
            _ => job::CHILDREN_WITHOUT_STEPS,
        }
    }

    fn edit_run_policy(&self, policy: Value) -> UserAction {
        UserAction::Edit(self.number, json!({"spec": {"runPolicy": policy}}))
    }

    fn scale(&self, replicas: i64) -> UserAction {
        let mut patch = json!({"spec": {}});
        let spec = &mut patch["spec"];
        if self.job.job_type != JobType::Steps {
            let field = self.job.job_type.replica_specs_field();
            spec[field] = json!({self.role.clone(): {"replicas": replicas}});
        } else if let Some((list, number)) = job::list_of(&self.role) {
            // A patch replaces a list as a whole.
            spec[list] = self.job.object["spec"][list].clone();
            let mut items = spec[list].as_array_mut().into_iter().flatten();
            if let Some(item) = items.find(|item| item["name"] == *self.role) {
                item[number] = json!(replicas);
            }
        } else {
            spec[self.role.to_lowercase()] = json!({"replicas": replicas});
        }
        UserAction::Edit(self.number, patch)
    }
}

impl UserActionType {
    /// Draws the actions to carry out, with their times: `at`, or `later` for an action that reverts the first.
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
                // The draws are part of the seed version.
                let plural = *random.pick(match target.job.job_type {
                    JobType::Steps => &job::CHILDREN[8..],
                    _ => &job::CHILDREN[2..7],
                });
                let name = job::object_name(&target.job.object, plural).unwrap_or_default();
                let emptied = match plural {
                    "configmaps" | "secrets" => json!({"data": null}),
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
            Self::Vandalize => {
                let mut actions: Vec<_> = (0..random.between(1, 4))
                    .filter_map(|_| {
                        let child = target.any_child(random)?;
                        Some((at + random.between(0, 2_000), vandalize(random, child)))
                    })
                    .collect();
                if random.chance(500) {
                    let suspend = |yes: bool| target.edit_run_policy(json!({"suspend": yes}));
                    actions.extend([(at, suspend(true)), (later, suspend(false))]);
                }
                actions
            }
            Self::SpoilStatus => {
                let fields = random.between(1, 3);
                let edit = |_| UserAction::EditStatus(number, json!({"status": spoiled_field(random)}));
                (0..fields).map(edit).map(|edit| (at, edit)).collect()
            }
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

/// Draws a status to write over the operator's status.
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

fn vandalize(random: &mut Random, (plural, name): (&'static str, String)) -> UserAction {
    let patches = [
        json!({"labels": null}),
        json!({"ownerReferences": null}),
        json!({"labels": null, "ownerReferences": null}),
    ];
    let patch = json!({"metadata": random.pick(&patches)});
    UserAction::EditChild(plural, name, patch)
}

/// Draws one field of a status with an extreme value of its type, or with a value of another type.
fn spoiled_field(random: &mut Random) -> Value {
    let path = *random.pick(&[
        "conditions/0/lastTransitionTime",
        "conditions/0/type",
        "conditions/0/status",
        "replicaStatuses/Worker/active",
        "replicaStatuses/Nobody/succeeded",
        "startTime",
        "completionTime",
        "lastReconcileTime",
        "restartCount",
        "failure/time",
        "failure/exitCode",
        "failureHistory/0/time",
        "recovery/job",
        "recovery/roles/Worker",
        "recovery/replicas/worker-0",
        "recovery/inPlace/worker-0",
        "recovery/started/Worker",
        "recovery/completed/Worker",
        "recovery/restarted/0",
        "recovery/backoff/job/failures",
        "recovery/backoff/job/until",
    ]);
    let values = [
        json!("9999-12-31T23:59:59Z"),
        json!("0001-01-01T00:00:00Z"),
        json!("0-4294967295"),
        json!("Succeeded"),
        json!("True"),
        json!(""),
        json!(-1),
        json!(5),
        json!(i32::MAX),
        json!(i32::MIN),
        json!(i64::MAX),
        json!(true),
        json!([]),
        json!({}),
    ];
    let value = random.pick(&values).clone();
    path.rsplit('/').fold(value, |inner, step| match step {
        "0" => json!([inner]),
        step => json!({ step: inner }),
    })
}

/// Carries out an action, and returns the status code of the last response.
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

/// Limits the pods of the namespace, or removes the limit. Returns the status code of the last call.
pub async fn set_quota(cluster: &Cluster, pods: Option<u64>) -> u16 {
    let path = |name| direct::path("resourcequotas", name);
    let deleted = direct::send(cluster, Method::DELETE, &path("q"), &json!({}))
        .await
        .0;
    let Some(pods) = pods else { return deleted };
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": {"pods": pods.to_string()}}});
    direct::send(cluster, Method::POST, &path(""), &quota).await.0
}

/// Deletes the objects that block jobs: the quota, and the children without a controller.
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
