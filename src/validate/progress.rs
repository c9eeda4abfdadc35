//! Checks the progress policy of a job, and applies its defaults.

use std::time::Duration;

use super::Policy;
use crate::api::{MIN_STALLED_AFTER_SECONDS, ProgressPolicy, StallAction, WatchedReplicas};
use crate::job::{Complaint, FieldErrors, Role};
use crate::output::Pattern;

pub(crate) const WITHOUT_LIMIT: Complaint = Complaint {
    problem: "requires stalledAfterSeconds",
    remedy: "set stalledAfterSeconds or remove the field",
};
pub(crate) const RESTART_WITHOUT_RESTARTS: Complaint = Complaint {
    problem: "must not be Restart if the job may not restart, because a stalled job would fail",
    remedy: "use Fail, or raise backoffLimit and failurePolicy.maxRestarts",
};

/// The maximum number of replicas whose output is read.
pub const MAX_WATCHED: u32 = 100;

/// A progress policy with its defaults applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The time without progress after which the job is stalled; unset if it never is.
    pub stalled_after: Option<Duration>,
    /// The same from the start of a container to its first progress.
    pub stalled_at_start_after: Option<Duration>,
    /// The pattern of lines that show progress.
    pub pattern: Option<Pattern>,
    /// True if the output of all replicas is read.
    pub watches_all: bool,
    /// The action when the job is stalled; never `Other`.
    pub on_stall: StallAction,
}

impl Progress {
    /// Returns the time between two reads of a replica's output: a tenth of the shorter limit, from 15 s to 5 min.
    pub fn interval(&self) -> Duration {
        let most = Duration::from_secs(300);
        let least = Duration::from_secs(MIN_STALLED_AFTER_SECONDS.unsigned_abs().into());
        let shorter = self.stalled_after.min(self.stalled_at_start_after);
        shorter.map_or(most, |limit| (limit / 10).clamp(least, most))
    }

    /// Returns true if only a new step is progress.
    pub fn counts_steps(&self) -> bool {
        self.pattern.as_ref().is_some_and(Pattern::has_step)
    }

    /// Returns the time without progress after which the job is stalled, for a container that has made progress or not.
    pub fn limit(&self, has_begun: bool) -> Option<Duration> {
        if has_begun {
            self.stalled_after
        } else {
            self.stalled_at_start_after
        }
    }
}

/// Checks the policy at `path`, and returns it with its defaults.
pub(super) fn check(
    path: &str,
    wanted: &ProgressPolicy,
    policy: &Policy,
    errors: &mut FieldErrors,
) -> Progress {
    let at = |field: &str| format!("{path}.{field}");
    for (field, seconds) in [
        ("stalledAfterSeconds", wanted.stalled_after_seconds),
        ("startSeconds", wanted.start_seconds),
    ] {
        errors.check_range(at(field), seconds, i64::from(MIN_STALLED_AFTER_SECONDS)..);
    }
    errors.check_word(at("watch"), wanted.watch.as_ref());
    errors.check_word(at("onStall"), wanted.on_stall.as_ref());
    let on_stall = wanted
        .on_stall
        .clone()
        .filter(|action| !matches!(action, StallAction::Other(_)));
    let on_stall = on_stall.unwrap_or(StallAction::Report);
    if wanted.stalled_after_seconds.is_none() {
        let fields = [
            ("startSeconds", wanted.start_seconds.is_some()),
            ("onStall", on_stall != StallAction::Report),
        ];
        for (field, _) in fields.into_iter().filter(|(_, is_set)| *is_set) {
            errors.push_complaint(at(field), &WITHOUT_LIMIT);
        }
    }
    let may_restart = policy.backoff_limit != Some(0) && policy.failure.max_restarts != Some(0);
    if on_stall == StallAction::Restart && !may_restart {
        errors.push_complaint(at("onStall"), &RESTART_WITHOUT_RESTARTS);
    }
    let pattern = wanted.pattern.as_deref().filter(|pattern| !pattern.is_empty());
    let pattern = pattern.and_then(|pattern| match Pattern::new(pattern) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            errors.push(at("pattern"), error.to_string(), error.remedy());
            None
        }
    });
    let duration = |seconds: i32| Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    Progress {
        stalled_after: wanted.stalled_after_seconds.map(duration),
        stalled_at_start_after: wanted
            .start_seconds
            .or(wanted.stalled_after_seconds)
            .map(duration),
        pattern,
        watches_all: wanted.watch == Some(WatchedReplicas::All),
        on_stall,
    }
}

/// Checks that the job has few enough replicas if all of them are watched.
pub(super) fn check_watched(path: &str, progress: &Progress, roles: &[Role<'_>], errors: &mut FieldErrors) {
    let total = roles
        .iter()
        .map(|role| role.replicas)
        .fold(0, u32::saturating_add);
    if progress.watches_all && total > MAX_WATCHED {
        errors.push(
            format!("{path}.watch"),
            format!("must not be All in a job with more than {MAX_WATCHED} replicas (has {total})"),
            "use Deciding",
        );
    }
}
