//! Reports the resources that the operator may not read, and the statuses that it may not write, in one log line for all
//! of them.
//!
//! Each resource has a watch of its own, and an operator without a role is denied all of them at the same time. A line for
//! each resource and retry would hide the one cause.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Time for which denied resources are collected before they are logged.
const COLLECT: Duration = Duration::from_secs(1);

pub(super) struct MissingPermissions {
    remedy: String,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// The verbs and the server's message for each resource that is denied now.
    denied: BTreeMap<String, (&'static str, String)>,
    /// True if all of them have been logged.
    is_logged: bool,
}

impl MissingPermissions {
    /// Creates an empty collection. Log lines end with `remedy`.
    pub(super) fn new(remedy: String) -> Self {
        Self {
            remedy,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Records that the server denied these verbs on the resource with this message.
    pub(super) fn add(&self, verbs: &'static str, resource: &str, message: &str) {
        let mut state = self.state.lock();
        let denied = (verbs, message.to_owned());
        let old = state.denied.insert(resource.to_owned(), denied);
        if old.is_none() {
            state.is_logged = false;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Logs that the server denied a list of objects that only some jobs have. Other jobs do not need them.
    pub(super) fn note_optional(&self, resource: &str, problem: &str) {
        tracing::info!(
            resource,
            problem,
            "jobs that have such objects will wait for the permission; {}",
            self.remedy
        );
    }

    /// Returns true if something is denied now.
    pub(super) fn any(&self) -> bool {
        !self.state.lock().denied.is_empty()
    }

    /// Records that the resource was listed or written.
    pub(super) fn remove(&self, resource: &str) {
        let mut state = self.state.lock();
        if state.denied.remove(resource).is_some() && state.denied.is_empty() {
            tracing::info!("all permissions are there now");
        }
    }

    /// Logs the denied resources whenever there are more of them.
    pub(super) async fn run(&self) {
        loop {
            self.changed.notified().await;
            sleep(COLLECT).await;
            self.log();
        }
    }

    fn log(&self) {
        let mut state = self.state.lock();
        let Some((_, problem)) = state.denied.values().next() else {
            return;
        };
        if !state.is_logged {
            let resources: Vec<&str> = state.denied.keys().map(String::as_str).collect();
            let verbs: BTreeSet<&str> = state.denied.values().map(|(verbs, _)| *verbs).collect();
            let verbs: Vec<&str> = verbs.into_iter().collect();
            tracing::error!(
                verbs = verbs.join(","),
                resources = resources.join(","),
                problem,
                "permissions are missing, so jobs are not handled; {}",
                self.remedy
            );
            state.is_logged = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::log::Log;

    /// Logs for some time, as the operator does.
    async fn wait(missing: &MissingPermissions) {
        let run = tokio::time::timeout(COLLECT * 3, missing.run());
        assert!(run.await.is_err(), "it runs forever");
    }

    #[tokio::test(start_paused = true)]
    async fn all_denied_resources_are_logged_once_until_there_are_more() {
        let (log, _guard) = Log::start();
        let missing = MissingPermissions::new("apply the role".to_owned());
        let deny = |resources: &[&str]| {
            resources
                .iter()
                .for_each(|r| missing.add("list,watch", r, "forbidden"))
        };
        deny(&["services", "pods"]);
        wait(&missing).await;
        deny(&["pods", "services"]);
        wait(&missing).await;
        missing.add("patch", "toyjobs.example.com/status", "forbidden");
        wait(&missing).await;
        for resource in ["pods", "services", "toyjobs.example.com/status"] {
            missing.remove(resource);
        }
        wait(&missing).await;

        let lines = log.lines();
        let resources: Vec<_> = lines.iter().map(|line| line["resources"].as_str()).collect();
        let all = "pods,services,toyjobs.example.com/status";
        assert_eq!(resources, [Some("pods,services"), Some(all), None]);
        assert_eq!(
            lines[0]["message"],
            "permissions are missing, so jobs are not handled; apply the role"
        );
        assert_eq!(lines[0]["verbs"], "list,watch");
        assert_eq!(lines[0]["problem"], "forbidden");
        assert_eq!(lines[1]["verbs"], "list,watch,patch");
        assert_eq!(lines[2]["message"], "all permissions are there now");
    }
}
