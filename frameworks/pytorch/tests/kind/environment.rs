//! The environment variables in cases without recordings. `compat.rs` covers the recorded cases.

use std::collections::BTreeMap;

use training_job::{Settings, render, validate};
use training_job_pytorch::PyTorchJob;
use training_job_testbed::PlanHarness;

/// Returns the variables of each pod's first container, in order.
fn environments(roles: &str, fields: &str) -> Vec<Vec<(String, String)>> {
    of(&PlanHarness::<PyTorchJob>::with(roles, fields).job)
}

fn of(job: &PyTorchJob) -> Vec<Vec<(String, String)>> {
    let valid = validate(job, &Settings::default()).unwrap_or_else(|e| unreachable!("{e}"));
    let pods = render::all(&valid).pods;
    let first = pods
        .iter()
        .filter_map(|pod| pod.spec.as_ref()?.containers.first());
    first
        .map(|container| {
            let variables = container.env.iter().flatten();
            variables
                .map(|v| (v.name.clone(), v.value.clone().unwrap_or_default()))
                .collect()
        })
        .collect()
}

fn names(environment: &[(String, String)]) -> Vec<&str> {
    environment.iter().map(|(name, _)| name.as_str()).collect()
}

/// The Go operator gave such workers no rendezvous address.
#[test]
fn workers_without_a_master_meet_at_the_first() {
    let all = environments("Worker=3", "nprocPerNode: '4'");
    assert_eq!(
        names(&all[1]),
        [
            "PYTHONUNBUFFERED",
            "PET_NPROC_PER_NODE",
            "PET_NNODES",
            "MASTER_PORT",
            "PET_MASTER_PORT",
            "MASTER_ADDR",
            "PET_MASTER_ADDR",
            "WORLD_SIZE",
            "RANK",
            "PET_NODE_RANK",
        ]
    );
    for (index, environment) in all.iter().enumerate() {
        let value = |name: &str| {
            environment
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, v)| v.as_str())
        };
        let index = index.to_string();
        for (name, expected) in [
            ("MASTER_PORT", "23456"),
            ("PET_MASTER_PORT", "23456"),
            ("MASTER_ADDR", "job-worker-0"),
            ("PET_MASTER_ADDR", "job-worker-0"),
            // The rank counts pods, the size counts processes. torchrun replaces both.
            ("WORLD_SIZE", "12"),
            ("RANK", &index),
            ("PET_NODE_RANK", &index),
            ("PET_NNODES", "3"),
        ] {
            assert_eq!(value(name), Some(expected), "{name}");
        }
    }
}

/// A variable of one container applies to the whole pod, because the others belong to the same program.
#[test]
fn variables_of_such_a_job_itself_are_unchanged() {
    let mut job = PlanHarness::<PyTorchJob>::with("Worker=2", "").job;
    let spec = job
        .spec
        .pytorch_replica_specs
        .get_mut("Worker")
        .and_then(Option::as_mut);
    let pod = spec.and_then(|spec| spec.template.spec.as_mut());
    for container in pod.into_iter().flat_map(|pod| &mut pod.containers) {
        container.env = Some(vec![
            training_job::api::variable("MASTER_ADDR", "elsewhere"),
            training_job::api::variable("RANK", "7"),
        ]);
    }
    for environment in of(&job) {
        let set: BTreeMap<_, _> = environment.into_iter().collect();
        assert_eq!((&*set["MASTER_ADDR"], &*set["RANK"]), ("elsewhere", "7"));
        assert_eq!(&*set["PET_MASTER_ADDR"], "job-worker-0");
        assert_eq!(&*set["WORLD_SIZE"], "2");
    }
    // With a master the operator's variables take precedence, as under the Go operator.
    let mut with_master = PlanHarness::<PyTorchJob>::with("Master=1 Worker=2", "").job;
    let worker = job.spec.pytorch_replica_specs.remove("Worker");
    with_master
        .spec
        .pytorch_replica_specs
        .insert("Worker".to_owned(), worker.flatten());
    let set: BTreeMap<_, _> = of(&with_master).remove(1).into_iter().collect();
    assert_eq!((&*set["MASTER_ADDR"], &*set["RANK"]), ("job-master-0", "1"));
}

#[test]
fn elastic_workers_get_only_a_rendezvous() {
    let policy = "elasticPolicy: {minReplicas: 2, rdzvHost: etcd, rdzvPort: 2379, rdzvBackend: etcd, rdzvId: '', \
                  maxRestarts: 0, nProcPerNode: 2, rdzvConf: [{key: k}, {value: v}], standalone: true}";
    let environment = environments("Worker=3", policy).remove(2);
    let expected = [
        ("PYTHONUNBUFFERED", "1"),
        ("PET_RDZV_ENDPOINT", "etcd:2379"),
        ("PET_RDZV_BACKEND", "etcd"),
        ("PET_NNODES", "2:2"),
        ("PET_MAX_RESTARTS", "0"),
        ("PET_NPROC_PER_NODE", "2"),
        ("PET_RDZV_ID", ""),
        ("PET_RDZV_CONF", "k=,=v"),
        ("PET_STANDALONE", ""),
    ];
    assert_eq!(
        environment,
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

/// The Go operator crashed on an empty list of settings.
#[test]
fn bounds_follow_from_one_another_and_no_settings_are_none() {
    for (policy, nodes) in [
        ("elasticPolicy: {rdzvConf: [], standalone: false}", "3:3"),
        ("elasticPolicy: {minReplicas: 2}", "2:2"),
        ("elasticPolicy: {maxReplicas: 5}", "5:5"),
        (
            "elasticPolicy: {minReplicas: 1, maxReplicas: 5, rdzvBackend: ''}",
            "1:5",
        ),
    ] {
        let environment = environments("Worker=3", policy).remove(0);
        assert_eq!(
            names(&environment),
            [
                "PYTHONUNBUFFERED",
                "PET_NPROC_PER_NODE",
                "PET_RDZV_ENDPOINT",
                "PET_RDZV_BACKEND",
                "PET_NNODES"
            ]
        );
        assert_eq!(environment[2].1, "job-worker-0:23456");
        assert_eq!(environment[3].1, "c10d");
        assert_eq!(environment[4].1, nodes);
    }
}
