use futures::{Stream, StreamExt, pin_mut};
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams, WatchEvent, WatchParams},
    runtime::watcher::{self, watcher},
};

use super::*;

fn shown<K: kube::Resource>(event: &WatchEvent<K>) -> String {
    match event {
        WatchEvent::Added(object) => format!("+{}", object.name_any()),
        WatchEvent::Modified(object) => format!("~{}", object.name_any()),
        WatchEvent::Deleted(object) => format!("-{}", object.name_any()),
        WatchEvent::Bookmark(_) => "bookmark".to_owned(),
        WatchEvent::Error(status) => format!("error {}", status.code),
    }
}

/// Returns the watcher's next event, without the events around a list.
async fn next<K: kube::Resource>(
    stream: &mut (impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Unpin),
) -> String {
    match soon(stream.next()).await.unwrap() {
        Ok(watcher::Event::Init) => "init".to_owned(),
        Ok(watcher::Event::InitApply(object)) => format!("={}", object.name_any()),
        Ok(watcher::Event::InitDone) => "done".to_owned(),
        Ok(watcher::Event::Apply(object)) => format!("+{}", object.name_any()),
        Ok(watcher::Event::Delete(object)) => format!("-{}", object.name_any()),
        Err(_) => "error".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_in_silence_and_the_time_out_ends_the_watch() {
    let cluster = cluster();
    let client = cluster.client("default");
    let wp = WatchParams::default().timeout(150);
    let stream = pods(&client)
        .watch(&wp, &cluster.resource_version().to_string())
        .await
        .unwrap();
    pin_mut!(stream);
    maps(&client)
        .create(&PostParams::default(), &map("elsewhere"))
        .await
        .unwrap();
    let begin = tokio::time::Instant::now();
    let mut marks = Vec::new();
    while let Some(event) = stream.next().await {
        let WatchEvent::Bookmark(mark) = event.unwrap() else {
            panic!("no bookmark")
        };
        assert_eq!(
            mark.metadata.resource_version,
            cluster.resource_version().to_string()
        );
        marks.push(begin.elapsed().as_secs());
    }
    assert_eq!(marks, [60, 120, 150]);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_changes_of_a_full_history_are_gone() {
    let cluster = Cluster::builder().history(2).build();
    let client = cluster.client("default");
    let begin = cluster.resource_version();
    for name in ["a", "b", "c"] {
        create_pod(&client, &pod(name)).await;
    }
    for (version, expected) in [(begin, "error 410"), (begin + 1, "+b")] {
        let stream = pods(&client)
            .watch(&WatchParams::default(), &version.to_string())
            .await
            .unwrap();
        pin_mut!(stream);
        assert_eq!(shown(&soon(stream.next()).await.unwrap().unwrap()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_watcher_of_kube_survives_cuts_and_compaction() {
    let cluster = cluster();
    let client = cluster.client("default");
    create_pod(&client, &pod("a")).await;
    let config = watcher::Config::default().page_size(1);
    let stream = watcher(pods(&client), config);
    pin_mut!(stream);
    for expected in ["init", "=a", "done"] {
        assert_eq!(next(&mut stream).await, expected);
    }
    create_pod(&client, &pod("b")).await;
    assert_eq!(next(&mut stream).await, "+b");
    // A cut is resumed from the last version, without a relist.
    assert_eq!(cluster.cut_watches(Some("configmaps")), 0);
    assert_eq!(cluster.cut_watches(Some("pods")), 1);
    create_pod(&client, &pod("c")).await;
    assert_eq!(next(&mut stream).await, "+c");
    // A watch that was cut cannot be resumed from a compacted version.
    cluster.cut_watches(None);
    pods(&client).delete("a", &DeleteParams::default()).await.unwrap();
    cluster.compact();
    for expected in ["error", "init", "=b", "=c", "done"] {
        assert_eq!(next(&mut stream).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_frozen_watch_is_silent_until_it_thaws() {
    let cluster = cluster();
    let client = cluster.client("default");
    let wp = WatchParams::default().timeout(5);
    let stream = pods(&client)
        .watch(&wp, &cluster.resource_version().to_string())
        .await
        .unwrap();
    pin_mut!(stream);
    assert_eq!(cluster.freeze_watches(Some("pods")), 1);
    create_pod(&client, &pod("a")).await;
    let silence = tokio::time::timeout(Duration::from_secs(3600), stream.next()).await;
    assert!(silence.is_err());
    cluster.thaw_watches(None);
    assert_eq!(shown(&soon(stream.next()).await.unwrap().unwrap()), "+a");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_watch_is_forgotten() {
    let cluster = cluster();
    let client = cluster.client("default");
    let stream = pods(&client).watch(&WatchParams::default(), "0").await.unwrap();
    assert_eq!(cluster.cut_watches(None), 1);
    drop(stream);
    assert_eq!(cluster.cut_watches(None), 0);
}
