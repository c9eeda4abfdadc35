//! The processes of a compact job and of a plain one get the same environment.

use std::collections::BTreeMap;
use std::fs;

use serde_json::json;
use training_operator_testing::local_run::manifest::Manifest;
use training_operator_testing::local_run::trial::Trial;

/// Long enough for the common environment of twelve pods to be worth a ConfigMap.
const NAME: &str = "a-job-whose-name-has-more-letters-than-one-wants";
const WORKERS: u32 = 12;

/// Returns the environment of each process by host name. Addresses differ between runs, so they are replaced by host
/// names.
fn environments(layout: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let trial = Trial::new();
    let job = Manifest::shell(NAME, WORKERS, "env -0 > \"$HOSTNAME.env\"");
    let job = job.policy("layout", layout).each_container(|container| {
        let address = json!({"fieldRef": {"fieldPath": "status.podIP"}});
        container["env"] = json!([
            {"name": "ADDRESS", "valueFrom": address},
            {"name": "OWN", "value": "$(ADDRESS) is not $(DMLC_ROLE)"},
        ]);
    });
    let ended = trial.run(&job).end();
    ended.expect_code(0);
    let read = |worker: u32| {
        let host = format!("{NAME}-worker-{worker}");
        let text = fs::read_to_string(trial.dir.join(format!("{host}.env"))).unwrap();
        let variables = text.split_terminator('\0').map(|line| {
            let (name, value) = line.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        });
        (host, variables.collect::<BTreeMap<_, _>>())
    };
    let mut all: BTreeMap<_, _> = (0..WORKERS).map(read).collect();
    let mut addresses: Vec<_> = all
        .iter()
        .map(|(host, of)| (of["ADDRESS"].clone(), host.clone()))
        .collect();
    // 127.64.0.12 is replaced before 127.64.0.1.
    addresses.sort_by_key(|(address, _)| std::cmp::Reverse(address.len()));
    for of in all.values_mut() {
        for value in of.values_mut() {
            for (address, host) in &addresses {
                *value = value.replace(address, host);
            }
        }
        // No container sets these: they come from the shell, or mark the agent's processes.
        of.retain(|name, _| !["PWD", "OLDPWD", "SHLVL", "_", "TRAINING_JOB_POD"].contains(&&**name));
    }
    all
}

#[test]
fn compact_and_plain_jobs_have_the_same_environment_to_the_byte() {
    let compact = environments("Compact");
    assert_eq!(compact, environments("Plain"));
    let last = &compact[&format!("{NAME}-worker-11")];
    assert!(last["MX_CONFIG"].len() > 1_024);
    assert!(
        last["MX_CONFIG"].ends_with("\"task\":{\"type\":\"worker\",\"index\":11}}"),
        "{last:?}"
    );
    let urls = last["MX_CONFIG"]
        .matches(&format!("\"url\":\"{NAME}-worker-"))
        .count();
    assert_eq!(urls, 12, "every name became an address: {last:?}");
}
