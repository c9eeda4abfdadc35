//! A converted job gets the same pods as before.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kube::Resource;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use training_job::validate::manifest;
use training_job::{Kind, Settings, TrainingJob, render, validate};
use training_job_mlkube::MxJob;
use training_job_mxnet::MXJob;
use training_operator_testing::program::run_with_input;

/// Converts jobs by one run of the program. Returns them in the same order.
fn convert(jobs: &[Value]) -> Vec<Value> {
    let text = serde_saphyr::to_string_multiple(jobs).unwrap();
    let converted = run_with_input(&["convert", "-"], text.as_bytes());
    assert_eq!(converted.code, Some(0), "{}\n{text}", converted.stderr);
    let documents = kube_manifest::parse(&converted.stdout).unwrap();
    documents.iter().map(kube_manifest::Node::to_json).collect()
}

fn read(job: &Value) -> MXJob {
    static KIND: LazyLock<Kind> = LazyLock::new(Kind::of::<MXJob>);
    let checked = manifest::check(&KIND, job).unwrap_or_else(|errors| panic!("{errors}\n{job:#}"));
    serde_json::from_value(checked.object).unwrap()
}

/// Returns the specs of a job's pods and services by kind and name.
fn children(job: &Value) -> BTreeMap<String, Value> {
    let mut job = read(job);
    job.meta_mut().uid = Some(render::NO_UID.to_owned());
    let settings = Settings::default();
    let rendered = render::all(&validate(&job, &settings).unwrap());
    let all = rendered.values().unwrap().into_iter();
    all.map(|object| {
        let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
        (name.replace('"', ""), object["spec"].clone())
    })
    .collect()
}

fn some<S: Strategy<Value = Value>>(value: S) -> impl Strategy<Value = Value> {
    prop_oneof![1 => Just(Value::Null), 2 => value]
}

/// Returns an object of these members without null ones.
fn object(members: Vec<(&str, Value)>) -> Value {
    let members = members.into_iter().filter(|(_, value)| !value.is_null());
    members
        .map(|(key, value)| (key.to_owned(), value))
        .collect::<Map<_, _>>()
        .into()
}

fn words() -> impl Strategy<Value = Value> {
    let word = prop_oneof!["[ -~]{1,12}", Just("on".to_owned()), Just("a\n# b\n".to_owned())];
    prop::collection::vec(word, 1..4).prop_map(Value::from)
}

fn variables() -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        Just("PS_VERBOSE"),
        Just("DMLC_ROLE"),
        Just("MY_VARIABLE"),
        Just("no")
    ];
    prop::collection::btree_map(names, "[ -~]{0,8}", 1..4).prop_map(|all| {
        all.into_iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect()
    })
}

fn container(port: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let resources = Just(json!({"limits": {"nvidia.com/gpu": "1", "cpu": "500m"}}));
    let mounts = Just(json!([{"name": "data", "mountPath": "/data"}]));
    (
        some(words()),
        some(words()),
        some(variables()),
        some(resources),
        some(mounts),
        port,
    )
        .prop_map(|(command, args, env, resources, mounts, ports)| {
            object(vec![
                ("name", json!("mxnet")),
                ("image", json!("example.com/mxnet:1")),
                ("command", command),
                ("args", args),
                ("env", env),
                ("resources", resources),
                ("volumeMounts", mounts),
                ("ports", ports),
            ])
        })
}

fn named_port() -> BoxedStrategy<Value> {
    some((1..60_000).prop_map(|port| json!([{"name": "mxjob-port", "containerPort": port}]))).boxed()
}

fn template(port: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let sidecar = Just(json!({"name": "sidecar", "image": "example.com/sidecar:1"}));
    let scheduler = some(Just(json!("of-the-template")));
    (container(port), some(sidecar), scheduler, any::<bool>()).prop_map(
        |(main, sidecar, scheduler, annotated)| {
            let containers: Vec<_> = [main, sidecar].into_iter().filter(|c| !c.is_null()).collect();
            let annotations = json!({"annotations": {"example.com/a": "b"}});
            object(vec![
                ("metadata", if annotated { annotations } else { Value::Null }),
                (
                    "spec",
                    object(vec![
                        ("containers", containers.into()),
                        ("schedulerName", scheduler),
                        ("volumes", json!([{"name": "data", "emptyDir": {}}])),
                    ]),
                ),
            ])
        },
    )
}

fn replicas() -> impl Strategy<Value = Value> {
    some((1..4).prop_map(Value::from))
}

fn policies() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let clean = prop_oneof![Just(json!("All")), Just(json!("Running")), Just(json!("None"))];
    (some(clean), some((0..99).prop_map(Value::from)))
        .prop_map(|(clean, ttl)| vec![("cleanPodPolicy", clean), ("ttlSecondsAfterFinished", ttl)])
}

/// An MXJob of a served version.
fn mapped() -> impl Strategy<Value = Value> {
    let restart = prop_oneof![Just("Never"), Just("OnFailure"), Just("ExitCode")];
    let label = some(Just(json!("2080ti"))).boxed();
    let role = || {
        (replicas(), restart.clone(), label.clone(), template(named_port())).prop_map(
            |(replicas, restart, label, template)| {
                object(vec![
                    ("replicas", replicas),
                    ("restartPolicy", json!(restart)),
                    ("label", label),
                    ("template", template),
                ])
            },
        )
    };
    let version = prop_oneof![Just("v1alpha2"), Just("v1beta1"), Just("v1")];
    let scheduler = some(Just(json!("of-the-job")));
    let backoff = some((0..9).prop_map(Value::from));
    (
        version,
        policies(),
        scheduler,
        backoff,
        any::<bool>(),
        role(),
        role(),
        role(),
    )
        .prop_map(
            |(version, policies, scheduler, backoff, tunes, one, two, three)| {
                let [mut first, second, third] = [one, two, three];
                first["replicas"] = json!(1);
                let (mode, names) = if tunes {
                    ("MXTune", ["TunerTracker", "TunerServer", "Tuner"])
                } else {
                    ("MXTrain", ["Scheduler", "Server", "Worker"])
                };
                let roles = names.into_iter().zip([first, second, third]).collect();
                let mut members = policies;
                members.push(("jobMode", json!(mode)));
                members.push(("schedulerName", scheduler));
                members.push((
                    "backoffLimit",
                    if version == "v1" { backoff } else { Value::Null },
                ));
                members.push(("mxReplicaSpecs", object(roles)));
                json!({"apiVersion": format!("kubeflow.org/{version}"), "kind": "MXJob",
                "metadata": {"name": "job", "namespace": "ns"}, "spec": object(members)})
            },
        )
}

/// An MXJob of `v1alpha1`, which may set the scheduler's port in two places.
fn listed() -> impl Strategy<Value = Value> {
    let root = some((1..60_000).prop_map(Value::from)).boxed();
    let replica = |type_: &'static str| {
        (replicas(), root.clone(), template(named_port())).prop_map(move |(replicas, port, mut template)| {
            template["spec"]["restartPolicy"] = json!("OnFailure");
            object(vec![
                ("mxReplicaType", json!(type_)),
                ("replicas", if type_ == "SCHEDULER" { json!(1) } else { replicas }),
                ("PsRootPort", port),
                ("template", template),
            ])
        })
    };
    let scheduler = some(Just(json!("of-the-job")));
    let replicas = (replica("SCHEDULER"), replica("SERVER"), replica("WORKER"));
    (replicas, scheduler, any::<prop::sample::Index>()).prop_map(|((a, b, c), scheduler, turn)| {
        let mut list = vec![a, b, c];
        list.rotate_left(turn.index(3));
        let spec = object(vec![("replicaSpecs", list.into()), ("schedulerName", scheduler)]);
        json!({"apiVersion": "kubeflow.org/v1alpha1", "kind": "MXJob",
            "metadata": {"name": "job", "namespace": "ns"}, "spec": spec})
    })
}

/// Returns the variables of a container. The last of several with one name counts.
fn variables_of(container: &Value) -> BTreeMap<&str, &str> {
    let all = container["env"].as_array().into_iter().flatten();
    all.map(|v| {
        (
            v["name"].as_str().unwrap(),
            v["value"].as_str().unwrap_or_default(),
        )
    })
    .collect()
}

/// Checks the pods against those of the first version of the stand-alone operator.
fn expect_first_version(job: &Value, children: &BTreeMap<String, Value>) {
    let replicas = job["spec"]["replicaSpecs"].as_array().unwrap();
    let count = |replica: &Value| replica["replicas"].as_u64().unwrap_or(1);
    let of = |type_: &str| replicas.iter().find(|r| r["mxReplicaType"] == type_).unwrap();
    let pods = children.keys().filter(|name| name.starts_with("Pod")).count();
    assert_eq!(pods as u64, replicas.iter().map(count).sum::<u64>());
    let port = of("SCHEDULER")["PsRootPort"].as_u64().unwrap_or(9091).to_string();
    for replica in replicas {
        let role = replica["mxReplicaType"].as_str().unwrap().to_lowercase();
        for index in 0..count(replica) {
            let pod = &children[&format!("Pod job-{role}-{index}")];
            let template = &replica["template"]["spec"];
            let (old, new) = (&template["containers"], &pod["containers"]);
            for (n, old) in old.as_array().unwrap().iter().enumerate() {
                for field in ["name", "image", "command", "args", "resources", "volumeMounts"] {
                    assert_eq!(new[n][field], old[field], "{field}");
                }
                let (old, new) = (variables_of(old), variables_of(&new[n]));
                let own = old.iter().filter(|(name, _)| !name.starts_with("DMLC_"));
                for (name, value) in own {
                    assert_eq!(new.get(name), Some(value), "{name}");
                }
            }
            assert_eq!(pod["volumes"], template["volumes"]);
            // As before, the exit code decides, and the operator restarts.
            assert_eq!(pod["restartPolicy"], "Never");
            let named = [&template["schedulerName"], &job["spec"]["schedulerName"]];
            let named = named
                .into_iter()
                .find(|name| !name.is_null())
                .unwrap_or(&Value::Null);
            assert_eq!(&pod["schedulerName"], named);
            let new = variables_of(&new[0]);
            for (name, value) in [
                ("DMLC_PS_ROOT_PORT", &*port),
                ("DMLC_PS_ROOT_URI", "job-scheduler-0"),
                ("DMLC_NUM_SERVER", &count(of("SERVER")).to_string()),
                ("DMLC_NUM_WORKER", &count(of("WORKER")).to_string()),
                ("DMLC_ROLE", &role),
            ] {
                assert_eq!(new[name], value, "{name}");
            }
        }
    }
}

/// Returns the same job as an MxJob of mlkube.io, without a scheduler's name.
fn ancestor(job: &Value) -> Value {
    let mut job = job.clone();
    job["apiVersion"] = json!("mxnet.mlkube.io/v1beta1");
    job["kind"] = json!("MxJob");
    let spec = job["spec"].as_object_mut().unwrap();
    spec.remove("schedulerName");
    spec.insert("jobMode".to_owned(), json!("dist"));
    spec.insert("RuntimeId".to_owned(), json!("x7f2"));
    job
}

/// Returns the processes of a job's pods by role and index: the fields that the operator does not set, and the
/// configuration that the parameter server reads.
fn processes<J: TrainingJob>(job: &Value) -> BTreeMap<(String, String), Value> {
    let job: J = serde_json::from_value(job.clone()).unwrap();
    let valid = validate(&job, &Settings::default()).unwrap();
    let pods = render::all(&valid).pods.into_iter().map(|pod| {
        let labels = pod.metadata.labels.clone().unwrap();
        let of = |label: &str| labels[&format!("training.kubeflow.org/{label}")].clone();
        let spec = serde_json::to_value(pod.spec).unwrap();
        let containers = spec["containers"].as_array().unwrap().iter().map(|container| {
            let is_main = container["name"] == "mxnet";
            let counts = [
                "DMLC_PS_ROOT_PORT",
                "DMLC_NUM_SERVER",
                "DMLC_NUM_WORKER",
                "DMLC_ROLE",
            ];
            let mut variables = variables_of(container);
            variables.retain(|name, _| {
                let is_the_operators = name.starts_with("DMLC_") || *name == "MX_CONFIG";
                !is_the_operators || is_main && counts.contains(name)
            });
            let fields = ["name", "image", "command", "args", "resources", "volumeMounts"];
            (fields.map(|field| container[field].clone()), json!(variables))
        });
        let containers: Vec<_> = containers.collect();
        let runs =
            json!({"containers": containers, "volumes": spec["volumes"], "restarts": spec["restartPolicy"]});
        ((of("replica-type"), of("replica-index")), runs)
    });
    pods.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn jobs_of_served_versions_get_the_same(jobs in prop::collection::vec(mapped(), 1..12)) {
        for (old, new) in jobs.iter().zip(convert(&jobs)) {
            prop_assert_eq!(&new["apiVersion"], "kubeflow.org/v1");
            prop_assert_eq!(children(old), children(&new), "{:#}\n{:#}", old, new);
            let policy = read(&new).run_policy();
            let before = read(old).run_policy();
            prop_assert_eq!(policy.ttl_seconds_after_finished, before.ttl_seconds_after_finished);
            prop_assert_eq!(policy.backoff_limit, before.backoff_limit);
            let clean = &old["spec"]["cleanPodPolicy"];
            let in_spec = ["ttlSecondsAfterFinished", "backoffLimit"].iter().any(|f| !old["spec"][f].is_null());
            // Under v1, a job is the stand-alone operator's only if a policy is at the top of its spec.
            if clean.is_null() && (old["apiVersion"] != "kubeflow.org/v1" || in_spec) {
                prop_assert_eq!(&new["spec"]["runPolicy"]["cleanPodPolicy"], "All");
            } else {
                prop_assert_eq!(policy.clean_pod_policy, before.clean_pod_policy);
            }
        }
    }

    #[test]
    fn jobs_of_the_first_version_keep_their_environment(jobs in prop::collection::vec(listed(), 1..12)) {
        for (old, new) in jobs.iter().zip(convert(&jobs)) {
            expect_first_version(old, &children(&new));
        }
    }

    #[test]
    fn jobs_of_mlkube_run_the_same_processes(jobs in prop::collection::vec(listed(), 1..12)) {
        let jobs: Vec<Value> = jobs.iter().map(ancestor).collect();
        for (old, new) in jobs.iter().zip(convert(&jobs)) {
            prop_assert_eq!(processes::<MxJob>(old), processes::<MXJob>(&new), "{:#}\n{:#}", old, new);
        }
    }
}
