//! Generates jobs as users may write them: mostly valid, and invalid in every way that a file can be.
//!
//! Strategies are boxed, because nested ones outgrow the stack of a test.

use proptest::collection::{btree_map, vec};
use proptest::option::{of, weighted};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Generates any job. Some of them cannot be parsed.
pub(crate) fn conceivable() -> BoxedStrategy<Value> {
    let specs = prop_oneof![
        40 => roles(),
        1 => prop_oneof![Just(Value::Null), Just(json!([])), Just(json!("Worker"))],
    ];
    (name(), specs, of(run_policy()))
        .prop_map(|(name, specs, policy)| {
            let mut spec = json!({"replicaSpecs": specs});
            if let Some(policy) = policy {
                spec["runPolicy"] = policy;
            }
            job(&name, spec)
        })
        .boxed()
}

/// Generates a valid job with a few replicas.
pub(crate) fn valid() -> BoxedStrategy<Value> {
    let policy = prop_oneof![Just("Never"), Just("OnFailure"), Just("Always"), Just("ExitCode")];
    (0..2, 0..3, 1..4, policy, scope())
        .prop_map(|(scheduler, server, worker, policy, run)| {
            let role = |n: i32| json!({"replicas": n, "restartPolicy": policy, "template": template("toy", json!([]), json!([]))});
            let specs = json!({"Scheduler": role(scheduler), "Server": role(server), "Worker": role(worker)});
            job("job", json!({"runPolicy": run, "replicaSpecs": specs}))
        })
        .boxed()
}

fn scope() -> BoxedStrategy<Value> {
    (
        of(prop_oneof![Just("Replica"), Just("Role"), Just("Job")]),
        of(0..4),
        any::<bool>(),
    )
        .prop_map(|(scope, limit, none)| {
            let mut policy = json!({"suspend": false});
            if let Some(scope) = scope {
                policy["restartScope"] = json!(scope);
            }
            if let Some(limit) = limit {
                policy["backoffLimit"] = json!(limit);
            }
            if none {
                policy["cleanPodPolicy"] = json!("None");
            }
            policy
        })
        .boxed()
}

fn job(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "kubeflow.org/v1", "kind": "ToyJob", "metadata": {"name": name, "namespace": "team"}, "spec": spec})
}

fn name() -> BoxedStrategy<String> {
    prop_oneof![30 => Just("job".to_owned()),
1 => "[a-z0-9.-]{0,70}", 1 => ".{0,20}", 1 => "[a-z]{45,63}"]
    .boxed()
}

/// Generates roles. Most sets contain a role that decides the job.
fn roles() -> BoxedStrategy<Value> {
    (btree_map(role_name(), role(), 0..4), weighted(0.9, role()))
        .prop_map(|(mut roles, worker)| {
            if let Some(worker) = worker {
                roles.retain(|key, _| !key.eq_ignore_ascii_case("Worker"));
                roles.insert("Worker".to_owned(), worker);
            }
            if let Some(replicas) = roles.get_mut("Scheduler").and_then(|r| r.get_mut("replicas"))
                && replicas.as_i64().is_some_and(|n| (2..4).contains(&n))
            {
                *replicas = json!(1);
            }
            json!(roles)
        })
        .boxed()
}

fn role_name() -> BoxedStrategy<String> {
    let known = prop_oneof![
        3 => Just("Worker"), 2 => Just("Scheduler"), 2 => Just("Server"),
    ];
    prop_oneof![
            60 => known.clone().prop_map(str::to_owned),
    2 => known.prop_map(str::to_lowercase),
            1 => ".{0,8}",
        ]
    .boxed()
}

fn role() -> BoxedStrategy<Value> {
    let replicas = prop_oneof![
        250 => 0..4_i32,
        1 => Just(-1), 1 => Just(9_999), 1 => Just(10_001), 1 => Just(i32::MAX), 1 => Just(i32::MIN),
    ];
    let some = (
        weighted(0.8, replicas),
        weighted(
            0.8,
            word(&["Never", "OnFailure", "Always", "ExitCode", "", "never"]),
        ),
        any_template(),
    );
    let some = some.prop_map(|(replicas, policy, template)| {
        let mut role = json!({"template": template});
        if let Some(replicas) = replicas {
            role["replicas"] = json!(replicas);
        }
        if let Some(policy) = policy {
            role["restartPolicy"] = policy;
        }
        role
    });
    prop_oneof![150 => some, 1 => Just(Value::Null), 1 => Just(json!({}))].boxed()
}

fn any_template() -> BoxedStrategy<Value> {
    let container = prop_oneof![150 => Just("toy".to_owned()), 1 => ".{0,6}"];
    let port = (
        weighted(
            0.7,
            prop_oneof![60 => "[a-z]{1,4}", 30 => Just("toy-port".to_owned()), 1 => ".{0,16}"],
        ),
        prop_oneof![90 => 1..65_536, 1 => -1..1],
        of(Just("UDP")),
    );
    let port = port.prop_map(
        |(name, number, protocol)| json!({"name": name, "containerPort": number, "protocol": protocol}),
    );
    let env = (
        prop_oneof![80 => "[A-Z_]{1,6}",
40 => Just("TOY_ROLE".to_owned()), 1 => ".{0,6}"],
        of(".{0,6}"),
    );
    let env = env.prop_map(|(name, value)| json!({"name": name, "value": value}));
    let full = (
        container,
        vec(port, 0..3),
        vec(env, 0..4),
        weighted(0.03, (".{0,6}", ".{0,6}")),
    );
    let full = full.prop_map(|(name, ports, env, label)| {
        let mut template = template(&name, json!(ports), json!(env));
        if let Some((key, value)) = label {
            template["metadata"] =
                json!({"labels": {key.clone(): value.clone()}, "annotations": {key: value}});
        }
        template
    });
    prop_oneof![150 => full, 1 => Just(json!({})), 1 => Just(json!({"spec": {"containers": []}}))].boxed()
}

fn template(container: &str, ports: Value, env: Value) -> Value {
    json!({"spec": {"containers": [{"name": container, "image": "example.com/toy:1", "ports": ports, "env": env}]}})
}

fn run_policy() -> BoxedStrategy<Value> {
    let number = || prop_oneof![60 => 0..100_i64, 1 => Just(-1), 1 => Just(i64::from(i32::MAX))];
    let deadline = prop_oneof![3 => number(), 1 => Just(i64::MAX)];
    (
        weighted(0.3, word(&["All", "Running", "None", "", "Most"])),
        weighted(0.3, number()),
        weighted(0.3, deadline),
        weighted(0.4, number()),
        weighted(0.2, any::<bool>()),
        weighted(0.3, word(&["Replica", "Role", "Job", "", "Pod"])),
    )
        .prop_map(|(clean, ttl, deadline, limit, suspend, scope)| {
            let mut policy = json!({});
            let fields = [
                ("cleanPodPolicy", clean),
                ("ttlSecondsAfterFinished", ttl.map(Value::from)),
                ("activeDeadlineSeconds", deadline.map(Value::from)),
                ("backoffLimit", limit.map(Value::from)),
                ("suspend", suspend.map(Value::from)),
                ("restartScope", scope),
            ];
            for (field, value) in fields {
                if let Some(value) = value {
                    policy[field] = value;
                }
            }
            policy
        })
        .boxed()
}

/// Generates one of these words. The last word is wrong, and rare.
fn word(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    let last = words.len() - 1;
    prop_oneof![80 => 0..last, 1 => Just(last)]
        .prop_map(|n| json!(words[n]))
        .boxed()
}
