//! docs/maintainers/performance.md must match docs/maintainers/performance.json, the figures of a whole run of `make
//! bench`.

// Tests fail by panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../benches/load/table.rs"]
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use table::Results;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn page(results: &Results) -> String {
    let (cores, in_flight) = (results.cores, results.in_flight);
    format!(
        "# Performance

What this operator costs, and how soon it does what is to be done, beside the Kubeflow training operator v1.8.1 and a
plain writer. [Its source](../../operator/benches/load) is a benchmark of this repository.

    make bench                  # all of it, and this page: an hour and a half
    make bench QUICK=1          # less of each, once, and no page: under five minutes
    make bench-load JOBS=300    # a burst of one's own

Each contender in turn does the same work on a real API server with an etcd of its own, started anew for it, all on
one machine of {cores} cores. *Go, unlimited* is the Go operator as a small program of ours builds it: its client's limit
of 20 calls a second taken off, and 8 jobs looked after at once. *Plain writer* makes the same services and pods with no
more than {in_flight} calls in flight, writes two statuses a job when it is told to, and knows and watches nothing
else: whatever creates these objects costs at least that. A driver creates the jobs, plays the kubelets (a pod runs as
soon as it is seen, and ends after the time said) and watches jobs as a user would: Running and Succeeded count from
when the condition comes in its watch. Calls are the API server's own count, from its audit log, and stand for one job
where jobs are run to their end; bytes and connections are counted by a relay between contender and API server,
encrypted as they are; CPU and memory are what Linux says of the processes. A figure is the middle of the rounds, with
the least and the most of them. Between machines, figures differ; what they are of another's in the same run, which the
last columns say, differs less.

Written from [performance.json](performance.json), which `make bench` writes.

{}",
        table::tables(results)
    )
}

#[test]
fn the_page_is_that_of_its_figures() {
    let docs = root().join("docs/maintainers");
    let results = fs::read_to_string(docs.join("performance.json")).unwrap();
    let page = page(&serde_json::from_str(&results).unwrap());
    let page = format!("{}\n", page.trim_end());
    let file = docs.join("performance.md");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&file, &page).unwrap();
    } else {
        let there = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            there == page,
            "docs/maintainers/performance.md is stale; run: make docs"
        );
    }
}
