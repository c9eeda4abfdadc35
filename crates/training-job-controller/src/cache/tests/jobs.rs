use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::super::super::tests::toy::{ASKED, job, stored, with_workers};
use super::super::super::validate::Validated;
use super::super::jobs::{Jobs, Reread};
use super::super::list_epoch::ListEpoch;
use super::super::stored_job::{RawJob, StoredJob};
use kube_follow::Version;
use training_job::job::Settings;
use training_job::plan::observed::Observed;

fn listed(jobs: impl IntoIterator<Item = StoredJob>) -> Jobs {
    let mut all = Jobs::default();
    all.list_started();
    for job in jobs {
        all.listed(job);
    }
    all.list_done();
    all
}

/// Returns the cached job and the current epoch, as kept for a request.
fn question(jobs: &Jobs) -> (Arc<StoredJob>, ListEpoch) {
    let was = jobs.get(&("ns".to_owned(), "job".to_owned())).unwrap();
    (was, jobs.epoch())
}

/// Returns the cached job as `uid@version`.
fn held(jobs: &Jobs) -> Option<String> {
    let job = jobs.get(&("ns".to_owned(), "job".to_owned()))?;
    let meta = job.meta();
    Some(format!(
        "{}@{}",
        meta.uid.as_deref()?,
        meta.resource_version.as_deref()?
    ))
}

/// Passes the response to a call that was sent in the current epoch.
fn answer(jobs: &mut Jobs, job: StoredJob) {
    let epoch = jobs.epoch();
    jobs.answered(job, epoch);
}

#[test]
fn the_newest_state_is_held() {
    let mut jobs = listed([job("a", 5)]);
    answer(&mut jobs, job("a", 9));
    assert_eq!(jobs.applied(job("a", 7)), None);
    assert_eq!(held(&jobs).unwrap(), "a@9");
    jobs.applied(job("a", 10));
    assert_eq!(held(&jobs).unwrap(), "a@10");
}

#[test]
fn a_namesake_replaces_the_job_and_the_replacement_is_reported() {
    let mut jobs = listed([job("a", 5)]);
    assert_eq!(jobs.applied(job("b", 9)).as_deref(), Some("a"));
    assert_eq!(held(&jobs).unwrap(), "b@9");
    answer(&mut jobs, job("a", 12));
    assert_eq!(held(&jobs).unwrap(), "b@9", "an answer about its predecessor");
}

#[test]
fn an_object_that_the_watch_reports_deleted_is_gone() {
    // Versions may have gone back after a restore, so the UID decides.
    let mut jobs = listed([job("a", 5)]);
    assert_eq!(jobs.deleted(job("a", 3).meta()), "a");
    assert_eq!(held(&jobs), None);
    // The deleted namesake is newer than the cached job, so no job of that name exists.
    let mut jobs = listed([job("a", 5)]);
    assert_eq!(jobs.deleted(job("b", 8).meta()), "b");
    assert_eq!(held(&jobs), None);
    // A response arrived before the watch event.
    let mut jobs = listed([job("b", 5)]);
    assert_eq!(jobs.deleted(job("a", 4).meta()), "a");
    assert_eq!(held(&jobs).unwrap(), "b@5");
}

#[test]
fn a_response_does_not_restore_a_deleted_object() {
    let mut jobs = listed([job("a", 5)]);
    assert_eq!(jobs.deleted(job("a", 8).meta()), "a");
    answer(&mut jobs, job("a", 9));
    assert_eq!(held(&jobs), None);
}

#[test]
fn a_response_to_a_request_from_before_a_list_does_not_keep_an_unlisted_object() {
    let mut jobs = listed([job("a", 5)]);
    jobs.list_started();
    answer(&mut jobs, job("a", 9));
    jobs.list_page(Version::parse("12"));
    let gone = jobs.list_done();
    assert_eq!(gone.len(), 1);
    assert_eq!(held(&jobs), None);
}

#[test]
fn a_list_does_not_revert_a_response_that_arrived_since_it_began() {
    let mut jobs = listed([job("a", 5)]);
    jobs.list_started();
    answer(&mut jobs, job("a", 9));
    jobs.listed(job("a", 5));
    jobs.list_done();
    assert_eq!(held(&jobs).unwrap(), "a@9");
}

#[test]
fn a_list_that_begins_after_a_response_overrules_it() {
    // The request came before the list, and the response after a restore from a backup without the change.
    let mut jobs = listed([job("a", 5)]);
    jobs.list_started();
    answer(&mut jobs, job("a", 9));
    jobs.list_page(Version::parse("1005"));
    jobs.listed(job("a", 5));
    jobs.list_done();
    assert_eq!(held(&jobs).unwrap(), "a@5");
}

#[test]
fn the_watch_takes_precedence_over_older_responses() {
    // The response is late, and before the list a backup without the change was restored.
    let mut jobs = listed([job("a", 5)]);
    jobs.list_started();
    let epoch = jobs.epoch();
    jobs.list_page(Version::parse("1005"));
    jobs.listed(job("a", 5));
    jobs.list_done();
    assert!(jobs.answered(job("a", 9), epoch));
    assert_eq!(held(&jobs).unwrap(), "a@5");
    assert!(jobs.answered(job("a", 1006), epoch));
    assert_eq!(held(&jobs).unwrap(), "a@1006");
}

#[test]
fn a_list_after_a_restored_backup_wins_over_newer_versions() {
    let mut jobs = listed([job("a", 90)]);
    jobs.list_started();
    jobs.listed(job("a", 40));
    jobs.list_done();
    assert_eq!(held(&jobs).unwrap(), "a@40");
}

#[test]
fn an_undecodable_object_is_cached_as_well() {
    let odd =
        json!({"metadata": {"name": "job", "uid": "a"}, "spec": {"specs": 1}, "status": {"restartCount": 2}});
    match stored(&odd) {
        StoredJob::Unreadable {
            meta, status, error, ..
        } => {
            assert_eq!((meta.uid.as_deref(), status.restart_count), (Some("a"), 2));
            assert_eq!(
                error, "spec.specs: must be an object (is 1)",
                "in the words of validation"
            );
        }
        StoredJob::Job { job, .. } => panic!("{job:?}"),
    }
}

#[test]
fn a_response_that_a_list_overtook_cannot_be_ordered() {
    // The server was restored from a backup meanwhile, or the list was read before the write.
    let mut jobs = listed([job("a", 5)]);
    let epoch = jobs.epoch();
    assert!(jobs.answered(job("a", 6), epoch), "nothing has overtaken it");
    jobs.list_started();
    assert!(!jobs.answered(job("a", 9), epoch));
    jobs.listed(job("a", 5));
    jobs.list_done();
    assert!(!jobs.answered(job("a", 9), epoch));
    assert_eq!(held(&jobs).unwrap(), "a@5");
}

/// Reads the cached job again, with this result of the server. Returns what the cache makes of it.
fn ask(jobs: &mut Jobs, job: Option<StoredJob>, version: u64) -> String {
    let (was, epoch) = question(jobs);
    found(jobs.reread(&was, epoch, job, Version::parse(&version.to_string())))
}

fn found(found: Reread) -> String {
    match found {
        Reread::Current(job) => format!("held: {}", Version::from_meta(job.meta()) == Version::parse("9")),
        Reread::Gone(uid) => format!("gone: {}", uid.as_deref().unwrap_or("nothing new")),
        Reread::Stale => "overtaken".to_owned(),
    }
}

#[test]
fn an_object_that_a_response_reports_gone_does_not_return_with_older_events() {
    let mut jobs = listed([job("b", 5)]);
    assert_eq!(ask(&mut jobs, None, 4), "held: false", "an older state");
    assert_eq!(ask(&mut jobs, None, 20), "gone: b");
    jobs.deleted(job("a", 4).meta());
    jobs.applied(job("b", 9));
    assert_eq!(
        held(&jobs),
        None,
        "the end of its predecessor is news of no worth, too"
    );
    jobs.deleted(job("b", 12).meta());
    jobs.applied(job("c", 15));
    assert_eq!(held(&jobs), None, "it was gone by then, too");
    jobs.applied(job("d", 25));
    assert_eq!(held(&jobs).unwrap(), "d@25");
}

#[test]
fn an_object_that_a_response_reports_gone_is_compared_with_a_list_in_progress() {
    for (page, expected) in [("12", None), ("30", Some("b@8"))] {
        let mut jobs = listed([job("a", 5)]);
        jobs.list_started();
        assert_eq!(ask(&mut jobs, None, 20), "gone: a");
        jobs.list_page(Version::parse(page));
        jobs.listed(job("b", 8));
        assert!(jobs.list_done().is_empty());
        assert_eq!(held(&jobs).as_deref(), expected, "made at {page}");
    }
}

#[test]
fn a_tombstone_is_removed_when_the_watch_has_passed_it() {
    let mut jobs = listed([job("a", 5)]);
    ask(&mut jobs, None, 20);
    jobs.bookmark(Version::parse("20"));
    // A list would reveal that versions have gone back.
    jobs.applied(job("b", 9));
    assert_eq!(held(&jobs).unwrap(), "b@9");
}

#[test]
fn a_response_updates_the_cache_ahead_of_the_watch() {
    let mut jobs = listed([job("a", 5)]);
    assert_eq!(ask(&mut jobs, Some(job("a", 9)), 20), "held: true");
    assert_eq!(held(&jobs).unwrap(), "a@9");
    assert_eq!(
        ask(&mut jobs, Some(job("a", 7)), 20),
        "held: true",
        "the older state says nothing"
    );
}

#[test]
fn a_namesake_in_a_response_replaces_the_job() {
    let mut jobs = listed([job("a", 5)]);
    let (was, epoch) = question(&jobs);
    assert_eq!(ask(&mut jobs, Some(job("b", 20)), 20), "gone: a");
    jobs.applied(job("a", 9));
    assert_eq!(held(&jobs).unwrap(), "b@20");
    let late = jobs.reread(&was, epoch, Some(job("a", 30)), Version::parse("30"));
    assert_eq!(found(late), "gone: nothing new", "of what is not held any more");
    assert_eq!(held(&jobs).unwrap(), "b@20");
}

#[test]
fn a_read_from_before_a_list_must_be_repeated() {
    let mut jobs = listed([job("a", 5)]);
    let (was, epoch) = question(&jobs);
    jobs.list_started();
    assert_eq!(
        found(jobs.reread(&was, epoch, None, Version::parse("9"))),
        "overtaken"
    );
    assert_eq!(held(&jobs).unwrap(), "a@5");
}

#[test]
fn a_value_that_is_not_an_object_is_not_a_job() {
    for text in ["[]", r#"[{"name": "job"}, {}, {}]"#, "5", "null", "{"] {
        assert!(serde_json::from_str::<RawJob>(text).is_err(), "{text}");
    }
}

#[test]
fn a_job_with_any_spec_keeps_its_name() {
    for spec in [json!({}), json!(null), json!(5), json!([])] {
        let job = stored(&json!({"spec": spec, "metadata": {"name": "job"}}));
        assert_eq!(job.meta().name.as_deref(), Some("job"), "{spec}");
    }
    let job = stored(&json!({"metadata": {"name": "job"}}));
    assert_eq!(job.meta().name.as_deref(), Some("job"));
}

/// Returns how often a plan for the cached job validates the whole job, and whether the plan is refused.
fn planned(jobs: &Jobs) -> (u32, bool) {
    let (held, _) = question(jobs);
    let before = ASKED.get();
    let validated = Validated::of(&held, &Settings::default());
    let plan = validated.plan(&held, &held.status(), &Observed::default(), Timestamp::UNIX_EPOCH);
    (ASKED.get() - before, plan.refused)
}

#[test]
fn a_job_is_validated_as_a_whole_again_when_its_author_has_changed_it() {
    let version = |version: u64, meta: serde_json::Value, image: &str| -> StoredJob {
        let mut job = with_workers(1);
        job["metadata"]["resourceVersion"] = json!(version.to_string());
        job["spec"]["specs"]["Worker"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        job["status"] = json!({"restartCount": version});
        for (key, value) in meta.as_object().into_iter().flatten() {
            job["metadata"][key] = value.clone();
        }
        stored(&job)
    };
    let mut jobs = Jobs::default();
    let mut told = Vec::new();
    let broken = json!({"annotations": {"broken": ""}, "generation": 1});
    for job in [
        version(1, json!({"generation": 1}), "i"),
        version(2, json!({"generation": 1, "finalizers": ["f"]}), "i"),
        version(3, broken.clone(), "i"),
        version(4, broken, "i"),
        version(5, json!({"generation": 1}), "i"),
        version(6, json!({"generation": 2}), "j"),
        version(7, json!({"generation": 2, "labels": {"l": "v"}}), "j"),
        // A server that does not count generations.
        version(8, json!({"labels": {"l": "v"}}), "j"),
        version(9, json!({"labels": {"l": "v"}}), "j"),
        version(10, json!({"generation": 3}), "j"),
        version(11, json!({"generation": 3, "uid": "b"}), "j"),
    ] {
        jobs.applied(job);
        let ((first, refused), (second, again)) = (planned(&jobs), planned(&jobs));
        assert_eq!(again, refused);
        told.push((first + second, refused));
    }
    let expected = [
        (1, false),
        (0, false),
        // Errors are reported by every plan.
        (2, true),
        (2, true),
        (1, false),
        (1, false),
        (1, false),
        (1, false),
        (1, false),
        (1, false),
        (1, false),
    ];
    assert_eq!(told, expected);

    // After a list, versions and generations may come from a restored backup.
    let again = || version(12, json!({"generation": 4}), "j");
    jobs.applied(again());
    assert_eq!(planned(&jobs), (1, false));
    answer(&mut jobs, again());
    assert_eq!(planned(&jobs), (0, false));
    jobs.list_started();
    jobs.listed(again());
    jobs.list_done();
    assert_eq!(planned(&jobs), (1, false));
}
