//! Stories of jobs in several states, and their pages.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod fixtures;

use fixtures::{HOSTILE, STATES, at, hostile, large, story};
use proptest::prelude::*;
use training_job_story::{MAX_BYTES, PodHistory, Story, html};

#[test]
fn a_running_job() {
    insta::assert_snapshot!(story("running").json());
}

#[test]
fn a_failed_job() {
    insta::assert_snapshot!(story("failed").json());
}

#[test]
fn a_succeeded_job() {
    insta::assert_snapshot!(story("succeeded").json());
}

#[test]
fn a_suspended_job() {
    insta::assert_snapshot!(story("suspended").json());
}

#[test]
fn a_story_is_read_back_from_its_json() {
    for state in STATES {
        let story = story(state);
        assert_eq!(Story::from_json(&story.json()), Ok(story));
    }
    let mut newer = story("running");
    newer.version += 1;
    assert!(
        Story::from_json(&newer.json())
            .unwrap_err()
            .contains("not supported")
    );
    assert!(Story::from_json("{}").unwrap_err().contains("not a story"));
}

#[test]
fn a_large_job_has_a_page_of_less_than_two_megabytes() {
    let story = large(1_000);
    assert_eq!(story.replicas.len(), 1_000);
    assert!(serde_json::to_vec(&story).unwrap().len() <= MAX_BYTES);
    assert!(story.omitted.lines > 0 && story.omitted.events > 0);
    let page = html(&story);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    let larger = large(3_000);
    assert_eq!(larger.replicas.len() + larger.omitted.replicas, 3_000);
    assert!(html(&larger).len() < 2_000_000);
    // Replicas that have failed are kept before others.
    let is_kept = |index: i32| larger.replicas.iter().any(|replica| replica.index == index);
    assert!(is_kept(7) && is_kept(2_957));
}

#[test]
fn a_replaced_pod_is_known_from_the_failure_and_the_events() {
    let story = story("failed");
    let pods = &story.replicas[1].pods;
    assert_eq!(pods.len(), 2);
    assert!(pods[0].is_inferred && !pods[1].is_inferred);
    assert_eq!((pods[0].created_at, pods[0].gone_at), (Some(at(1)), Some(at(60))));
    assert!(html(&story).contains("(from events)"));
}

/// The clean-up at the end of a job deletes its pods, often before anybody looks.
#[test]
fn deleted_pods_are_known_from_the_events() {
    let story = story("deleted");
    let times = |pod: &PodHistory| (pod.created_at, pod.gone_at);
    let pods: Vec<_> = story.replicas.iter().map(|replica| &replica.pods[..]).collect();
    let [[master], [worker], []] = pods[..] else {
        panic!("{pods:#?}")
    };
    assert_eq!(&*master.name, "train-master-0");
    assert_eq!(&*worker.name, "train-worker-0");
    assert_eq!(times(master), (Some(at(1)), Some(at(90))));
    assert_eq!(times(worker), times(master));
    let existed = "existed; its states are not known, +1.0 s to +1 min 30 s";
    assert_eq!(html(&story).matches(existed).count(), 2);
}

#[test]
fn a_page_lists_the_events_of_a_job() {
    let page = html(&story("failed"));
    for text in [
        "worker-1: exit 3",
        "ValueError: no data",
        "1 of 1 allowed (backoffLimit)",
        "(+2 min 00 s)",
        "2026-03-01 10:00:00 UTC",
        "loss by step: from 0.1 to 3",
        "<code>cleanPodPolicy</code></td><td><span class=\"mono\">Running</span></td><td><span class=\"soft\">default",
        "<code>worker.replicas</code></td><td><span class=\"mono\">2</span></td><td>set",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert!(html(&story("running")).contains("0/3 nodes have enough nvidia.com/gpu"));
    assert!(!html(&story("failed")).contains("secret"));
}

/// Returns the tags of a page without their attributes, and the text outside of tags and the style sheet.
fn tags(page: &str) -> (Vec<String>, String) {
    let (mut tags, mut texts) = (Vec::new(), String::new());
    let mut rest = page;
    while let Some((text, after)) = rest.split_once('<') {
        texts += text;
        let mut quoted = false;
        let end = after.find(|c| {
            quoted ^= c == '"';
            c == '>' && !quoted
        });
        let (tag, after) = after.split_at(end.unwrap());
        tags.push(tag.split([' ', '>']).next().unwrap().to_owned());
        rest = &after[1..];
        if tag == "style" {
            rest = &rest[rest.find("</style").unwrap()..];
        }
    }
    (tags, texts + rest)
}

/// The elements that are not closed.
const VOID: [&str; 2] = ["meta", "!DOCTYPE"];

fn check_page(page: &str) {
    let (tags, texts) = tags(page);
    let mut open: Vec<&str> = Vec::new();
    for tag in &tags {
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{page}"),
            None if VOID.contains(&tag.as_str()) => {}
            None => open.push(tag),
        }
        let name = tag.trim_start_matches('/');
        assert!(
            !["script", "img", "link", "iframe", "b"].contains(&name),
            "{page}"
        );
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(!texts.contains('>'), "{texts}");
    let hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || c == '\u{202e}';
    assert!(!page.contains(hidden), "a control character");
}

#[test]
fn pages_are_well_formed_and_load_nothing() {
    for state in STATES {
        let page = html(&story(state));
        check_page(&page);
        for part in ["src=", "http://", "https://", "url(", "@import"] {
            assert!(state == "hostile" || !page.contains(part), "{state}: {part}");
        }
    }
    assert!(html(&hostile(HOSTILE)).contains("&lt;script&gt;"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_text_becomes_markup(text in "(?s)(.|<script>|</?pre>|\"|'|&|<|>|=[0-9]){0,40}") {
        let story = hostile(&text);
        check_page(&html(&story));
        prop_assert_eq!(Story::from_json(&story.json()), Ok(story));
    }

    #[test]
    fn lines_of_logs_never_panic(lines in prop::collection::vec("(?s)(step|epoch|loss|[ =:\\[\\]]|[-+.eE0-9]|.){0,60}", 0..20)) {
        let page = lines.iter().fold(String::new(), |page, line| page + line + "\n");
        check_page(&html(&hostile(&page)));
    }
}
