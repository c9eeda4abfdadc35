//! `training-operator diff --cluster`.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::Api;
use training_job::TrainingJob;
use training_job::api::ConditionType;
use training_job_mpi::MPIJob;
use training_job_testbed::cluster::{ControlPlane, repository, wait_for_all};
use training_operator_testing::operator::start;
use training_operator_testing::program::{Run, run, run_with_input};

const FILE: &str = "examples/mxnet/train.yaml";

#[tokio::test]
async fn a_running_job_is_compared_with_its_manifest() {
    let cluster = ControlPlane::of_default_kinds().await;
    let namespace = cluster.namespace("diff").await;
    let kubeconfig = cluster.kubeconfig_in(&namespace);
    let job = std::fs::read_to_string(repository().join(FILE)).unwrap();
    let diff = |job: &str| -> Run {
        let arguments = [
            "diff",
            "--cluster",
            "-",
            "--kubeconfig",
            kubeconfig.to_str().unwrap(),
        ];
        run_with_input(&arguments, job.as_bytes())
    };

    let absent = diff(&job);
    assert_eq!(absent.code, Some(1), "{absent:?}");
    assert!(
        absent.stdout.ends_with("0 changed, 10 added, 0 removed.\n"),
        "{absent:?}"
    );

    let unserved = "the cluster does not serve mpijobs.kubeflow.org; install its definition";
    let of_absent_kind = std::fs::read_to_string(repository().join("examples/mpi/train.yaml")).unwrap();
    let absent = diff(&of_absent_kind);
    assert_eq!(absent.code, Some(1), "{absent:?}");
    assert!(absent.stderr.contains(unserved), "{absent:?}");

    let _operator = start(cluster, &["--namespace", &namespace]).await;
    let create = ["create", "--namespace", &namespace, "--filename", FILE];
    cluster.kubectl(&create).await.success();
    let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    wait_for_all(pods, "", |pods| pods.len() == 5).await;

    let same = diff(&job);
    assert_eq!((same.code, same.stdout.as_str()), (Some(0), ""), "{same:?}");

    let new_image = diff(&job.replace("mxnet-train:1.9.1", "mxnet-train:2.0.0"));
    assert_eq!(new_image.code, Some(1));
    assert!(
        new_image
            .stdout
            .contains("-    image: example.com/mxnet-train:1.9.1\n"),
        "{new_image:?}"
    );
    assert!(
        new_image
            .stdout
            .contains("+    image: example.com/mxnet-train:2.0.0\n"),
        "{new_image:?}"
    );
    assert!(
        new_image.stdout.ends_with("5 changed, 0 added, 0 removed.\n"),
        "{new_image:?}"
    );

    let limit = diff(&job.replace("backoffLimit: 3", "backoffLimit: 1"));
    assert_eq!(limit.code, Some(1));
    assert!(limit.stdout.contains("\n  backoffLimit: 3 → 1\n"), "{limit:?}");
    assert!(
        limit.stdout.ends_with("0 changed, 0 added, 0 removed.\n"),
        "{limit:?}"
    );

    let explain = |job: &str| {
        let arguments = [
            "explain",
            "--cluster",
            job,
            "--kubeconfig",
            kubeconfig.to_str().unwrap(),
        ];
        run(&arguments)
    };
    let of_file = run(&["explain", FILE]).stdout;
    let of_file = of_file.replace("MXJob spirals", &format!("MXJob {namespace}/spirals"));
    for job in ["mxjobs/spirals", "spirals"] {
        let stored = explain(job);
        assert_eq!((stored.code, stored.stderr.as_str()), (Some(0), ""));
        assert_eq!(stored.stdout, of_file);
    }
    for (job, error) in [
        ("mxjob/a/b", "must be NAME or KIND/NAME"),
        (
            "deployment/spirals",
            "unknown kind \"deployment\"; use one of MXJob, ",
        ),
        ("mxjob/other", "no MXJob \"other\" in namespace "),
        ("pytorchjob/spirals", "no PyTorchJob \"spirals\" in namespace "),
        ("pytorchjob/spirals", "; did you mean MXJob/spirals?"),
        ("mpijob/other", unserved),
    ] {
        let missing = explain(job);
        assert_eq!(missing.code, Some(2));
        assert!(missing.stderr.contains(error), "{missing:?}");
    }

    // The pod counts, not the job's spec, because only some fields of a pod can be changed.
    let image = [
        "set",
        "image",
        "--namespace",
        &namespace,
        "pod/spirals-worker-1",
        "mxnet=other",
    ];
    cluster.kubectl(&image).await.success();
    let edited = diff(&job);
    assert!(edited.stdout.contains("-    image: other\n"), "{edited:?}");
    assert!(
        edited.stdout.ends_with("1 changed, 0 added, 0 removed.\n"),
        "{edited:?}"
    );
}

/// A PodGroup, a service account with its Role, and the image of a remote shell depend on the operator's flags.
#[tokio::test]
async fn a_running_job_is_compared_with_the_flags_of_its_operator() {
    const FILE: &str = "examples/mpi/train.yaml";
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    cluster.install_pod_groups("scheduling.x-k8s.io").await;
    let namespace = cluster.namespace("diff-flags").await;
    let kubeconfig = cluster.kubeconfig_in(&namespace);
    let flags = [
        "--gang-scheduler-name=gangs",
        "--mpi-remote-shell-image=example.com/shell:2",
    ];
    let own = ["--namespace", &namespace, "--enable-scheme=MPIJob"];
    let _operator = start(cluster, &[&own[..], &flags].concat()).await;
    let create = ["create", "--namespace", &namespace, "--filename", FILE];
    cluster.kubectl(&create).await.success();
    let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    let workers = wait_for_all(pods, "", |pods| pods.len() == 2).await;
    let kubelet = cluster.kubelet(&namespace).await;
    for worker in workers {
        kubelet.runs(&worker.metadata.name.unwrap()).await;
    }
    let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    wait_for_all(pods, "", |pods| pods.len() == 3).await;
    // The operator may still have to patch the list of hosts and the group.
    let lists_all = |map: Option<&ConfigMap>| {
        let script = map.and_then(|map| map.data.as_ref()?.get("discover_hosts.sh"));
        script.is_some_and(|script| script.contains("moons-worker-0") && script.contains("moons-worker-1"))
    };
    cluster.wait(&namespace, "moons-config", lists_all).await;
    kubelet.runs("moons-launcher").await;
    let runs = |job: Option<&MPIJob>| {
        let status = job.and_then(TrainingJob::status);
        status.is_some_and(|status| status.is(ConditionType::Running))
    };
    cluster.wait(&namespace, "moons", runs).await;

    let diff = [
        "diff",
        "--cluster",
        FILE,
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
    ];
    let same = run(&[&diff[..], &flags].concat());
    assert_eq!((same.code, same.stdout.as_str()), (Some(0), ""), "{same:?}");
    let other = run(&diff).stdout;
    assert!(
        other.contains("+    image: kubeflow/kubectl-delivery:latest\n"),
        "{other}"
    );
}

#[test]
fn an_unreachable_cluster_is_named() {
    let missing = run(&["diff", "--cluster", FILE, "--kubeconfig", "/nonexistent"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("--kubeconfig"), "{missing:?}");
    let sides = run(&["diff", "--cluster", FILE, FILE]);
    assert_eq!(sides.code, Some(2));
    assert!(
        sides.stderr.contains("with --cluster, exactly one side"),
        "{sides:?}"
    );
    let one = run(&["diff", FILE]);
    assert_eq!(one.code, Some(2));
    assert!(one.stderr.contains("two sides must be given"), "{one:?}");
}
