//! Reads the restarts, starts and successes that the status records.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::api::Recovery;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::job::{Replica, Role};
use crate::validate::ValidJob;

/// Returns the current attempt of a replica. Pods of earlier attempts are outdated.
pub(super) fn attempt(recovery: &Recovery, replica: &Replica<'_>) -> u32 {
    // Negative numbers are possible because users can edit the status; they count as 0.
    let count = |map: &BTreeMap<String, i32>, key: &str| map.get(key).copied().unwrap_or(0).max(0);
    let of_replica = if recovery.replicas.is_empty() {
        0
    } else {
        count(&recovery.replicas, &replica.key())
    };
    let sum = recovery
        .job
        .max(0)
        .saturating_add(count(&recovery.roles, replica.role.name()))
        .saturating_add(of_replica);
    u32::try_from(sum).unwrap_or(0)
}

/// Returns the number of restarts of the whole job.
pub(super) fn attempt_of_job(recovery: &Recovery) -> u32 {
    u32::try_from(recovery.job).unwrap_or(0)
}

/// Returns true if a pod created for the attempt `made_for` is outdated. A pod slightly ahead of `attempt` is not, because
/// the status may have been lost. A pod far ahead is, because its number must be invalid.
pub(super) fn is_outdated(made_for: u32, attempt: u32) -> bool {
    made_for < attempt || made_for - attempt > 1_000_000
}

/// Seconds before the restart after the second consecutive attempt that failed soon. The first restart is immediate.
const FIRST_PAUSE_SECONDS: i32 = 10;

/// Maximum pause before a restart, in seconds; the same as a kubelet's.
const MAX_PAUSE_SECONDS: i32 = 300;

/// Returns the key of a role in `recovery.backoff`.
pub(super) fn role_key(role: &Role<'_>) -> String {
    match role.definition.source.is_open() {
        true => format!("role {}", role.name()),
        false => role.name().to_owned(),
    }
}

/// The key of the job in `recovery.backoff`. It is distinct, because names of roles begin with a capital letter, keys of
/// roles that users name contain a space, and keys of replicas end with an index.
pub(super) const JOB_KEY: &str = "job";

/// Returns the pause in seconds before a restart after this number of consecutive attempts that failed soon, if any.
pub(super) fn pause_after(failures: i32) -> Option<i32> {
    let times = u32::try_from(failures.saturating_sub(2)).ok()?;
    let pause = FIRST_PAUSE_SECONDS.saturating_mul(2_i32.saturating_pow(times));
    Some(pause.min(MAX_PAUSE_SECONDS))
}

/// Returns the end of the pause before a replica's pod may be created, and the number of attempts that failed soon. Returns
/// None if no pause is in effect. A time beyond the maximum pause is ignored, because clocks change and users can edit a
/// status.
pub(super) fn paused_until(
    recovery: &Recovery,
    replica: &Replica<'_>,
    now: Timestamp,
) -> Option<(Timestamp, i32)> {
    if recovery.backoff.is_empty() {
        return None;
    }
    let keys = [JOB_KEY.to_owned(), role_key(replica.role), replica.key()];
    let pauses = keys.iter().filter_map(|key| recovery.backoff.get(key));
    let pauses = pauses.filter_map(|backoff| Some((backoff.until.as_ref()?.0, backoff.failures)));
    let longest = SignedDuration::from_secs(MAX_PAUSE_SECONDS.into());
    let due = pauses.filter(|(until, _)| *until > now && until.duration_since(now) <= longest);
    due.max()
}

/// The time in which the restarts that count against nothing else are limited.
pub(super) const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// Returns the number of recorded restarts that are younger than `window`.
pub(super) fn within(times: &[Time], window: SignedDuration, now: Timestamp) -> usize {
    times
        .iter()
        .filter(|time| now.duration_since(time.0) < window)
        .count()
}

/// Returns the number of replicas of a role that are recorded as started, counted from index 0.
pub(super) fn started(recovery: &Recovery, role: &Role<'_>) -> u32 {
    let count = recovery.started.get(role.name()).copied().unwrap_or(0);
    u32::try_from(count).unwrap_or(0).min(role.replicas)
}

/// Returns the indexes of the replicas of a role that are recorded as completed.
pub(super) fn completed(recovery: &Recovery, role: &Role<'_>) -> BTreeSet<u32> {
    recovery
        .completed
        .get(role.name())
        .map(|text| parse_indexes(text, role.replicas))
        .unwrap_or_default()
}

/// Returns true if all replicas of a role have succeeded, and need not succeed again after a restart of the job.
pub(super) fn is_done(job: &ValidJob<'_>, recovery: &Recovery, role: &Role<'_>) -> bool {
    // Most kinds have no steps, and the indexes of a large role take longest.
    job.succeeds_once(role)
        && recovery.completed.contains_key(role.name())
        && completed(recovery, role).len() == role.replicas as usize
}

/// Parses the indexes below `bound` in a text such as `0-2,5`. Invalid parts are skipped, because users can edit the status.
/// Ranges are limited to the bound and merged before they are expanded, so that the work is bounded.
pub(super) fn parse_indexes(text: &str, bound: u32) -> BTreeSet<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (
            first.trim().parse::<u32>().ok()?,
            last.trim().parse::<u32>().ok()?,
        );
        Some((first, last.min(bound.checked_sub(1)?)))
    };
    let mut ranges: Vec<(u32, u32)> = text.split(',').filter_map(range).collect();
    ranges.sort_unstable();
    let mut indexes = BTreeSet::new();
    let mut next = 0;
    for (first, last) in ranges {
        indexes.extend(first.max(next)..=last);
        next = next.max(last.saturating_add(1));
    }
    indexes
}

/// Returns the shortest text for a set of indexes, such as `0-2,5`.
pub(super) fn format_indexes(indexes: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &index in indexes {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => ranges.push((index, index)),
        }
    }
    let text = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_sets_round_trip() {
        for text in ["", "0", "0-2", "0-2,5", "1,3,5-7"] {
            assert_eq!(format_indexes(&parse_indexes(text, 100)), text);
        }
    }

    #[test]
    fn a_pod_is_outdated_behind_its_attempt_or_far_ahead_of_it() {
        for (made_for, attempt, outdated) in [
            (0, 0, false),
            (0, 1, true),
            (1, 0, false),
            (1_000_002, 2, false),
            (1_000_003, 2, true),
        ] {
            assert_eq!(is_outdated(made_for, attempt), outdated, "{made_for} {attempt}");
        }
    }

    #[test]
    fn invalid_parts_of_an_index_set_are_skipped_with_bounded_work() {
        assert_eq!(
            format_indexes(&parse_indexes("x,3-1,-,7-4294967295,2", 9)),
            "2,7-8"
        );
        assert!(parse_indexes("0-4294967295", 0).is_empty());
    }
}
