//! Tests of the contract, with a kind that uses every hook that the other kinds do not use.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod board;
mod checks;
mod definitions;
mod groups;
mod life;
mod objects;
mod shape;
mod steps;

use serde_json::{Value, json};

use training_job_testbed::ListJob;

/// Returns a job with these members, by type and number of replicas.
fn object(members: &[(&str, i32)]) -> Value {
    let member = |(type_, replicas): &(&str, i32)| {
        json!({
            "memberType": type_,
            "replicas": replicas,
            "template": {"spec": {"containers": [{"name": "main"}]}},
        })
    };
    json!({
        "apiVersion": "example.com/v1",
        "kind": "ListJob",
        "metadata": {"name": "job", "namespace": "default", "uid": "uid"},
        "spec": {"image": "example.com/list:1", "members": members.iter().map(member).collect::<Vec<_>>()},
    })
}

fn job(members: &[(&str, i32)]) -> ListJob {
    serde_json::from_value(object(members)).unwrap()
}
