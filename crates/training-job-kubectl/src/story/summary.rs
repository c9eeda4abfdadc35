//! A story in the values of one line.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use training_job_story::Story;

/// A finished job as a line of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub(crate) kind: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    pub(crate) uid: String,
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) roles: Vec<RoleSummary>,
    #[serde(default)]
    pub(crate) restarts: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) restart_limit: Option<i64>,
    pub(crate) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) observed_at: Timestamp,
    /// The failure that ended the job, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
}

/// The numbers of a role's replicas, and of those that had ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoleSummary {
    pub(crate) role: String,
    pub(crate) replicas: i64,
    pub(crate) succeeded: i32,
    pub(crate) failed: i32,
}

impl Summary {
    pub(crate) fn of(story: &Story) -> Self {
        let why = story.failure.as_ref().filter(|_| story.state == "Failed");
        Self {
            kind: story.kind.clone(),
            namespace: story.namespace.clone(),
            name: story.name.clone(),
            uid: story.uid.clone(),
            state: story.state.clone(),
            roles: roles(story),
            restarts: story.restarts,
            restart_limit: story.restart_limit,
            created_at: story.created_at,
            started_at: story.started_at,
            finished_at: story.finished_at,
            observed_at: story.observed_at,
            why: why.map(|failure| failure.summary.clone()).unwrap_or_default(),
        }
    }
}

fn roles(story: &Story) -> Vec<RoleSummary> {
    let mut roles: Vec<RoleSummary> = Vec::new();
    for replica in &story.replicas {
        let phase = replica
            .pods
            .last()
            .map(|pod| pod.phase.as_str())
            .unwrap_or_default();
        let (succeeded, failed) = (i32::from(phase == "Succeeded"), i32::from(phase == "Failed"));
        match roles.last_mut().filter(|role| role.role == replica.role) {
            Some(role) => {
                role.replicas += 1;
                role.succeeded += succeeded;
                role.failed += failed;
            }
            None => roles.push(RoleSummary {
                role: replica.role.clone(),
                replicas: 1,
                succeeded,
                failed,
            }),
        }
    }
    roles
}
