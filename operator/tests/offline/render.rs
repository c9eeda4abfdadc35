//! `training-operator render`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use training_operator_testing::program::{root, run, run_with_input};

const SINGLE: &str = "operator/tests/cases/single-worker.yaml";
const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";

fn case(name: &str) -> String {
    std::fs::read_to_string(root().join("operator/tests/cases").join(name)).unwrap()
}

#[test]
fn a_job_becomes_its_service_and_its_pod() {
    let run = run(&["render", SINGLE]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&run.stdout).unwrap();
    let titles: Vec<_> = objects
        .iter()
        .map(|o| {
            (
                o["kind"].as_str().unwrap(),
                o["metadata"]["name"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        titles,
        [("Service", "single-worker-0"), ("Pod", "single-worker-0")]
    );
    assert!(run.stdout.starts_with("---\n# Service single-worker-0\n"));
}

/// The source of the launcher's remote shell affects nothing else, so running launchers are kept.
#[test]
fn the_operators_own_program_is_the_remote_shell_if_its_image_is_named() {
    let render = |flags: &[&str]| -> Vec<Value> {
        let run = run(&[&["render", "examples/mpi/train.yaml"], flags].concat());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        serde_saphyr::from_multiple(&run.stdout).unwrap()
    };
    let plain = render(&["--mpi-kubectl-delivery-image=example.com/kubectl:2"]);
    let mut own = render(&["--mpi-remote-shell-image=example.com/training-operator:1"]);
    let find = |objects: &[Value], kind: &str, name: &str| {
        let is = |object: &Value| object["kind"] == kind && object["metadata"]["name"] == name;
        objects.iter().position(is).unwrap()
    };

    let launcher = find(&plain, "Pod", "moons-launcher");
    let init = |objects: &[Value]| objects[launcher]["spec"]["initContainers"].clone();
    assert_eq!(init(&plain)[0]["image"], "example.com/kubectl:2");
    assert_eq!(init(&own)[0]["image"], "example.com/training-operator:1");
    assert_eq!(
        init(&own)[0]["args"],
        json!(["remote-shell", "install", "/opt/kube"])
    );
    assert_eq!(init(&own).as_array().unwrap().len(), 1);

    let role = find(&plain, "Role", "moons-launcher");
    let exec = |objects: &[Value]| objects[role]["rules"][1].clone();
    assert_eq!(exec(&plain)["verbs"], json!(["create"]));
    assert_eq!(exec(&own)["verbs"], json!(["create", "get"]));
    assert_eq!(
        exec(&own)["resourceNames"],
        json!(["moons-worker-0", "moons-worker-1"])
    );

    own[launcher]["spec"]["initContainers"] = init(&plain);
    own[role]["rules"][1] = exec(&plain);
    assert_eq!(own, plain);
}

#[test]
fn standard_input_reads_as_a_file_does() {
    let from_file = run(&["render", SINGLE]);
    let from_stdin = run_with_input(&["render", "-"], case("single-worker.yaml").as_bytes());
    assert_eq!(from_stdin.code, Some(0));
    assert_eq!(from_stdin.stdout, from_file.stdout);
}

#[test]
fn a_directory_is_read_in_order_of_names() {
    let whole = run(&["render", "operator/tests/cases"]);
    assert_eq!((whole.code, whole.stderr.as_str()), (Some(0), ""));
    let mut files: Vec<_> = std::fs::read_dir(root().join("operator/tests/cases"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    let arguments: Vec<_> = std::iter::once("render")
        .chain(files.iter().map(|f| f.to_str().unwrap()))
        .collect();
    assert_eq!(whole.stdout, run(&arguments).stdout);
}

#[test]
fn other_objects_are_passed_by_with_a_note() {
    let text = format!("{CONFIG_MAP}---\n{}---\n", case("single-worker.yaml"));
    let run = run_with_input(&["render", "-"], text.as_bytes());
    assert_eq!(run.code, Some(0));
    assert_eq!(
        run.stderr,
        "<stdin>:1:1: note: ConfigMap settings of v1 is not a training job and is skipped\n"
    );
    assert!(run.stdout.contains("# Pod single-worker-0"));
}

#[test]
fn items_of_a_list_are_jobs() {
    let item: Value = serde_saphyr::from_str(&case("single-worker.yaml")).unwrap();
    for (api_version, kind) in [("v1", "List"), ("kubeflow.org/v1", "MXJobList")] {
        let list = serde_json::json!({"apiVersion": api_version, "kind": kind, "items": [item]});
        let text = serde_json::to_string_pretty(&list).unwrap();
        let run = run_with_input(&["render", "-"], text.as_bytes());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{kind}");
        assert!(run.stdout.contains("# Pod single-worker-0"), "{kind}");
    }
}

/// The output is equal byte for byte in repeated runs, and both formats contain the same objects.
#[test]
fn output_is_stable_in_both_formats() {
    let yaml = run(&["render", "operator/tests/cases"]);
    assert_eq!(yaml.stdout, run(&["render", "operator/tests/cases"]).stdout);
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(&yaml.stdout, options).unwrap();
    let json = run(&["render", "operator/tests/cases", "--output", "json"]);
    let list: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(list["kind"], "List");
    assert_eq!(list["items"], Value::Array(documents));
}

#[test]
fn help_has_examples_and_exit_codes() {
    for command in [
        &["render"][..],
        &["validate"],
        &["snapshot"],
        &["diff"],
        &["explain"],
        &["completions"],
        &["man"],
        &[],
        &["crds"],
        &["local", "run"],
    ] {
        let help = run(&[command, &["--help"]].concat());
        assert_eq!(help.code, Some(0), "{command:?}");
        assert!(
            help.stdout.contains("Examples:") && help.stdout.contains("Exit codes:"),
            "{command:?}"
        );
    }
    assert!(run(&["--version"]).stdout.starts_with("training-operator 0."));
}

const SIDECAR: &str = "operator/tests/cases/sidecar-and-init.yaml";

#[test]
fn a_replica_and_a_part_can_be_chosen() {
    let titles = |arguments: &[&str]| {
        let run = run(&[&["render", SIDECAR][..], arguments].concat());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        let titles = run.stdout.lines().filter_map(|l| l.strip_prefix("# "));
        titles.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        titles(&["--replica", "worker-0"]),
        ["Service sidecar-worker-0", "Pod sidecar-worker-0"]
    );
    assert_eq!(
        titles(&["--replica", "Scheduler-0", "--only", "pods"]),
        ["Pod sidecar-scheduler-0"]
    );
    assert_eq!(
        titles(&["--only", "services"]),
        ["Service sidecar-scheduler-0", "Service sidecar-worker-0"]
    );

    let arguments = [
        "render",
        SIDECAR,
        "--only",
        "env",
        "-o",
        "json",
        "--replica",
        "worker-0",
    ];
    let list: Value = serde_json::from_str(&run(&arguments).stdout).unwrap();
    let containers = &list["items"][0]["spec"]["containers"];
    assert_eq!(containers[1]["name"], "tensorboard");
    assert_eq!(containers[1]["env"][0]["name"], "PORT");
    assert_eq!(containers[0]["env"][0]["name"], "MX_CONFIG");
    assert!(containers[0].get("image").is_none());
}

#[test]
fn a_replica_that_no_job_has_is_an_error() {
    let gone = run(&["render", SIDECAR, "--replica", "worker-3"]);
    assert_eq!((gone.code, gone.stdout.as_str()), (Some(2), ""));
    assert_eq!(
        gone.stderr,
        "training-operator: --replica: no job has the replica worker-3; use one of scheduler-0, worker-0\n"
    );
    let several = run(&["render", SIDECAR, "--replica", "worker"]);
    assert_eq!((several.code, several.stdout.as_str()), (Some(2), ""));
}

/// `explain` prints such names: the role of a launcher, its key in the status, and names of pods.
#[test]
fn a_replica_is_found_by_each_of_its_names() {
    let job = "examples/mpi/train.yaml";
    let all = run(&["render", job, "--only", "pods"]).stdout;
    let titles = all.lines().filter_map(|line| line.strip_prefix("# Pod "));
    let titles: Vec<_> = titles.collect();
    assert_eq!(titles.len(), 3, "{all}");
    for title in titles {
        let replica = title.split_once('-').unwrap().1;
        let mut names = vec![title.to_owned(), replica.to_owned(), replica.to_uppercase()];
        if replica == "launcher" {
            names.push("launcher-0".to_owned());
        }
        for name in names {
            let one = run(&["render", job, "--only", "pods", "--replica", &name]);
            let found: Vec<_> = one.stdout.lines().filter(|line| line.starts_with("# ")).collect();
            assert_eq!(found, [format!("# Pod {title}")], "{name}: {}", one.stderr);
        }
    }
    let gone = run(&["render", job, "--replica", "worker-9"]).stderr;
    assert!(
        gone.ends_with("use one of launcher, worker-0 to worker-1\n"),
        "{gone}"
    );
}

#[test]
fn a_summary_counts_the_requested_resources() {
    let table = run(&[
        "render",
        "operator/tests/cases/rich-template.yaml",
        "examples/mxnet/gpu.yaml",
        "--summary",
    ]);
    assert_eq!((table.code, table.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(table.stdout);

    let json = run(&[
        "render",
        "operator/tests/cases/rich-template.yaml",
        "--summary",
        "-o",
        "json",
    ]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let worker = &json["jobs"][0]["roles"][0];
    assert_eq!(worker["role"], "worker");
    assert_eq!(worker["requests"]["cpu"], "0.5");
    assert_eq!(worker["requests"]["memory"], "4Gi");
    assert_eq!(worker["gpus"].as_u64(), Some(1));
    assert_eq!(worker["ports"], serde_json::json!(["9091/TCP mxjob-port"]));
}

#[test]
fn a_container_that_requests_a_device_gets_the_additions_of_the_file() {
    let config = "operator/tests/accelerators/config.yaml";
    let job = case("single-worker.yaml").replace(
        "- name: mxnet\n",
        "- name: mxnet\n            resources: {limits: {alpha.kubernetes.io/nvidia-gpu: \"1\"}}\n",
    );
    let render = |arguments: &[&str]| {
        let arguments = [&["render", "-", "--only", "pods"], arguments].concat();
        run_with_input(&arguments, job.as_bytes())
    };
    let with = render(&["--controller_config_file", config]);
    assert_eq!(with.code, Some(0), "{}", with.stderr);
    assert!(
        with.stderr
            .starts_with(&format!("{config}:3:1: warning: grpcServerFilePath: ")),
        "{}",
        with.stderr
    );
    let pods: Vec<Value> = serde_saphyr::from_multiple(&with.stdout).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&pods[0]["spec"]).unwrap());
    assert_eq!(render(&["--controller-config-file", config]).stdout, with.stdout);
    let without = render(&[]);
    assert!(!without.stdout.contains("hostPath"), "{}", without.stdout);

    let none = render(&["--controller_config_file", "no/such/file.yaml"]);
    assert_eq!(none.code, Some(2));
    assert!(
        none.stderr.contains("no/such/file.yaml: no such file"),
        "{}",
        none.stderr
    );
    // This file has another format.
    let wrong = render(&["--controller_config_file", SINGLE]);
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), ""));
    let unknown = format!("{SINGLE}:2:1: apiVersion: ");
    assert!(
        wrong.stderr.contains(&unknown)
            && wrong
                .stderr
                .contains("use one of accelerators, grpcServerFilePath"),
        "{}",
        wrong.stderr
    );
}

/// TensorBoard's port belongs to no role.
#[test]
fn a_summary_has_the_replicas_ports_alone() {
    let run = run(&["render", "--summary", "examples/legacy/tfjob.yaml"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout.contains("2222/TCP tf-port") && !run.stdout.contains("tb-port"),
        "{}",
        run.stdout
    );
}

/// The jobs of docs/users/gangs.md are valid. With a gang scheduler their first object is a group.
#[test]
fn the_examples_of_gangs_are_rendered_with_their_group() {
    let page = std::fs::read_to_string(root().join("docs/users/gangs.md")).unwrap();
    let examples = page.split("```yaml\n").skip(1);
    let examples: Vec<&str> = examples.map(|rest| rest.split("```").next().unwrap()).collect();
    let [queued, together] = <[&str; 2]>::try_from(examples).unwrap();
    let render = |job: &str, flags: &[&str]| -> Vec<Value> {
        let run = run_with_input(&[&["render", "-"], flags].concat(), job.as_bytes());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        serde_saphyr::from_multiple(&run.stdout).unwrap()
    };
    let kinds = |objects: &[Value]| -> BTreeSet<String> {
        let kinds = objects.iter().map(|o| o["kind"].as_str().unwrap().to_owned());
        kinds.collect()
    };
    assert!(!kinds(&render(queued, &[])).contains("PodGroup"));
    assert!(!kinds(&render(together, &["--gang-scheduler-name="])).contains("PodGroup"));

    let volcano = render(together, &["--gang-scheduler-name=Volcano"]);
    assert_eq!(volcano[0]["kind"], "PodGroup");
    let spec = json!({
        "minMember": 3,
        "minResources": {"cpu": "4", "nvidia.com/gpu": "1"},
        "priorityClassName": "high",
        "queue": "default",
    });
    assert_eq!(volcano[0]["spec"], spec);
    let coscheduling = render(together, &["--gang-scheduler-name", "mine"]);
    assert_eq!(coscheduling[0]["apiVersion"], "scheduling.x-k8s.io/v1alpha1");
    let pods = coscheduling.iter().filter(|object| object["kind"] == "Pod");
    for pod in pods {
        assert_eq!(pod["spec"]["schedulerName"], "mine");
        let labels = &pod["metadata"]["labels"];
        assert_eq!(labels["scheduling.x-k8s.io/pod-group"], "together");
    }
}
