//! The output of `convert` passes `validate`, or an error explains why there is no output. A second conversion
//! changes nothing.

use std::fs;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use training_operator_testing::program::{empty_directory, run};

/// A field's value: mostly valid, sometimes a mistake or an artifact of an export.
fn odd(sound: Vec<Value>) -> impl Strategy<Value = Value> {
    prop_oneof![
        18 => prop::sample::select(sound),
        1 => Just(Value::Null),
        1 => prop::sample::select(vec![json!(""), json!(-1), json!({}), json!([])]),
    ]
}

/// A mapping of a random selection of these fields.
fn fields(all: Vec<(&'static str, Vec<Value>)>) -> impl Strategy<Value = Map<String, Value>> {
    let each: Vec<_> = all
        .into_iter()
        .map(|(key, sound)| prop::option::weighted(0.1, odd(sound)).prop_map(move |value| (key, value)))
        .collect();
    each.prop_map(|all| {
        let there = all
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        there.collect()
    })
}

/// Returns two mappings as one.
fn joined(mut first: Map<String, Value>, second: Map<String, Value>) -> Value {
    first.extend(second);
    first.into()
}

fn policies() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        (
            "cleanPodPolicy",
            vec![
                json!("All"),
                json!("None"),
                json!("Running"),
                json!("Always"),
                json!("Never"),
            ],
        ),
        ("cleanupPodPolicy", vec![json!("All")]),
        ("ttlSecondsAfterFinished", vec![json!(60)]),
        ("ttlSecondsAfterFinishing", vec![json!(60)]),
        ("activeDeadlineSeconds", vec![json!(600)]),
        ("backoffLimit", vec![json!(3)]),
        (
            "schedulingPolicy",
            vec![json!({"minAvailable": 1}), json!({"priorityClassName": "high"})],
        ),
        (
            "runPolicy",
            vec![json!({"cleanPodPolicy": "All"}), json!({"backoffLimit": 1})],
        ),
        ("RunPolicy", vec![json!({"cleanPodPolicy": "All"})]),
        ("schedulerName", vec![json!("volcano")]),
    ]
}

/// Returns fields of one kind or another. Most are not fields of the job's kind.
fn specials() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("jobMode", vec![json!("dist"), json!("local"), json!("MXTrain")]),
        (
            "terminationPolicy",
            vec![json!({"chief": {"replicaName": "MASTER", "replicaIndex": 0}})],
        ),
        ("RuntimeId", vec![json!("x7k2")]),
        ("slotsPerWorker", vec![json!(2)]),
        ("gpus", vec![json!(2), json!(16)]),
        ("processingUnits", vec![json!(4)]),
        ("replicas", vec![json!(2)]),
        ("mpiImplementation", vec![json!("OpenMPI"), json!("Intel")]),
        ("mpiDistribution", vec![json!("OpenMPI"), json!("MPICH")]),
        ("sshAuthMountPath", vec![json!("/root/.ssh")]),
        ("launcherOnMaster", vec![json!(true), json!(false)]),
        ("intranet", vec![json!("Host"), json!("PodIP"), json!("Service")]),
        ("withGloo", vec![json!(0), json!(1)]),
        ("elastic", vec![json!(1)]),
        ("cronPolicy", vec![json!({"schedule": "0 * * * *"})]),
        ("tfImage", vec![json!("example.com/train:1")]),
    ]
}

fn template() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 8] = [
        "mxnet",
        "tensorflow",
        "pytorch",
        "mpi",
        "xgboost",
        "xgboostjob",
        "paddle",
        "main",
    ];
    let name = prop::sample::select(&NAMES[..]);
    let restart = prop::option::of(prop::sample::select(&["Never", "OnFailure", "Always"][..]));
    let extra = fields(vec![
        ("metadata", vec![json!({"creationTimestamp": null})]),
        ("kind", vec![json!("Pod")]),
    ]);
    (name, restart, extra).prop_map(|(name, restart, mut extra)| {
        let mut spec = json!({"containers": [{"name": name, "image": "example.com/train:1", "command": ["mpirun", "train"]}]});
        if let Some(restart) = restart {
            spec["restartPolicy"] = json!(restart);
        }
        extra.insert("spec".to_owned(), spec);
        extra.into()
    })
}

fn role() -> impl Strategy<Value = Value> {
    let all = vec![
        ("replicas", vec![json!(1), json!(2)]),
        (
            "restartPolicy",
            vec![
                json!("Never"),
                json!("OnFailure"),
                json!("Always"),
                json!("ExitCode"),
            ],
        ),
        ("label", vec![json!("2080ti")]),
        ("PsRootPort", vec![json!(9000)]),
        ("tfPort", vec![json!(2300)]),
        ("masterPort", vec![json!(23_500)]),
    ];
    (fields(all), template()).prop_map(|(mut role, template)| {
        role.insert("template".to_owned(), template);
        role.into()
    })
}

/// The kinds, with the fields of their roles, and the field of the types and the roles' names in a list.
const KINDS: [(&str, &str, &str, [&str; 2]); 6] = [
    (
        "MXJob",
        "mxReplicaSpecs",
        "mxReplicaType",
        ["Scheduler", "Worker"],
    ),
    ("TFJob", "tfReplicaSpecs", "tfReplicaType", ["Master", "Worker"]),
    (
        "PyTorchJob",
        "pytorchReplicaSpecs",
        "replicaType",
        ["Master", "Worker"],
    ),
    ("MPIJob", "mpiReplicaSpecs", "replicaType", ["Launcher", "Worker"]),
    (
        "XGBoostJob",
        "xgbReplicaSpecs",
        "replicaType",
        ["Master", "Worker"],
    ),
    (
        "PaddleJob",
        "paddleReplicaSpecs",
        "replicaType",
        ["Master", "Worker"],
    ),
];

/// Returns the name of the framework's container of a kind.
fn container_of(kind: &str) -> String {
    kind.trim_end_matches("Job")
        .to_lowercase()
        .replace("tf", "tensorflow")
        .replace("mx", "mxnet")
}

const VERSIONS: [&str; 10] = [
    "kubeflow.org/v1alpha1",
    "kubeflow.org/v1alpha2",
    "kubeflow.org/v1beta1",
    "kubeflow.org/v1beta2",
    "kubeflow.org/v2beta1",
    "kubeflow.org/v1",
    "xgboostjob.kubeflow.org/v1",
    "batch.paddlepaddle.org/v1",
    "tensorflow.org/v1alpha1",
    "training.kubedl.io/v1alpha1",
];

/// A job of any version, in any of the four shapes: roles in a mapping, in a list, in fields of their own, or one
/// template.
fn job() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(&KINDS[..]);
    let version = prop::sample::select(&VERSIONS[..]);
    let metadata = fields(vec![
        ("clusterName", vec![json!("")]),
        ("creationTimestamp", vec![json!("2019-01-01T00:00:00Z")]),
        ("uid", vec![json!("0b5c")]),
        ("annotations", vec![json!({"a": null, "kubedl.io/x": "y"})]),
    ]);
    let spec = (fields(policies()), fields(specials()));
    (
        kind,
        version,
        0..4,
        metadata,
        spec,
        role(),
        role(),
        prop::bool::weighted(0.9),
    )
        .prop_map(
            |(
                (kind, specs, type_of, roles),
                version,
                shape,
                mut metadata,
                (policies, specials),
                mut one,
                mut two,
                is_named,
            )| {
                metadata.insert("name".to_owned(), json!("job"));
                for role in [&mut one, &mut two].into_iter().filter(|_| is_named) {
                    role["template"]["spec"]["containers"][0]["name"] = json!(container_of(kind));
                }
                let mut spec = joined(policies, specials);
                match shape {
                    0 => spec[specs] = json!({roles[0]: one, roles[1]: two}),
                    1 => {
                        let listed = [one, two].into_iter().zip(roles).map(|(mut role, name)| {
                            role[type_of] = json!(name.to_uppercase());
                            role
                        });
                        spec["replicaSpecs"] = listed.collect();
                    }
                    2 => {
                        spec["ps"] = one;
                        spec["worker"] = two;
                    }
                    _ => spec["template"] = one["template"].clone(),
                }
                json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
            },
        )
}

proptest! {
    // Each case is a directory of jobs, because each start of the program reads the definitions of all kinds.
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn converted_jobs_are_valid_or_have_a_reason(
        mut jobs in prop::collection::vec(job(), 24..48),
        lossy in any::<bool>(),
    ) {
        // Two jobs of one name in one namespace are an error.
        for (n, job) in jobs.iter_mut().enumerate() {
            job["metadata"]["namespace"] = format!("n{n}").into();
        }
        let directory = empty_directory("convert-always-valid");
        let all = directory.to_str().unwrap();
        let files: Vec<_> = (0..jobs.len()).map(|n| directory.join(format!("{n}.yaml"))).collect();
        for (file, job) in files.iter().zip(&jobs) {
            fs::write(file, serde_saphyr::to_string(job).unwrap()).unwrap();
        }
        let flags: &[&str] = if lossy { &["--lossy"] } else { &[] };
        let converted = run(&[&["convert", "--in-place", all], flags].concat());
        prop_assert!(matches!(converted.code, Some(0 | 1)), "{}", converted.stderr);
        let mut has_refused = false;
        for (file, job) in files.iter().zip(&jobs) {
            let begin = format!("{}:", file.display());
            let is_error = |line: &str| !line.contains(": note: ") && !line.contains(": warning: ");
            let is_refused = converted.stderr.lines().any(|line| line.starts_with(&begin) && is_error(line));
            let text = fs::read_to_string(file).unwrap();
            let is_todays = text.contains("apiVersion: kubeflow.org/v1\n");
            if is_refused || !is_todays {
                // This includes kinds that no operator had under this version. `validate` reports them.
                prop_assert_eq!(text, serde_saphyr::to_string(job).unwrap());
                fs::remove_file(file).unwrap();
            }
            has_refused |= is_refused;
        }
        prop_assert_eq!(converted.code, Some(i32::from(has_refused)), "{}", converted.stderr);
        if fs::read_dir(&directory).unwrap().next().is_some() {
            let validated = run(&["validate", all]);
            prop_assert_eq!(validated.code, Some(0), "{}", validated.stderr);
            let again = run(&[&["convert", "--check", all], flags].concat());
            prop_assert_eq!((again.code, &*again.stderr), (Some(0), ""));
        }
    }
}
