//! `training-operator snapshot`.

use std::fs;
use std::path::Path;

use training_operator_testing::program::{Run, empty_directory, root, run};

fn snapshot(jobs: &Path, directory: &Path, check: bool) -> Run {
    let (jobs, directory) = (jobs.to_str().unwrap(), directory.to_str().unwrap());
    let mut arguments = vec!["snapshot", jobs, "--dir", directory];
    if check {
        arguments.push("--check");
    }
    run(&arguments)
}

fn case(name: &str) -> String {
    fs::read_to_string(root().join("operator/tests/cases").join(name)).unwrap()
}

#[test]
fn snapshots_use_the_settings_of_the_operator() {
    let out = empty_directory("snapshot-gang").join("out");
    let directory = out.to_str().unwrap();
    let gang = [
        "snapshot",
        "examples/mxnet/train.yaml",
        "--dir",
        directory,
        "--gang-scheduler-name=volcano",
    ];
    assert_eq!(run(&gang).code, Some(0));
    let text = fs::read_to_string(out.join("train.yaml")).unwrap();
    assert!(text.contains("# PodGroup spirals\n"), "{text}");
    let without = run(&[&gang[..4], &["--check"]].concat());
    assert_eq!(without.code, Some(1), "{without:?}");
}

#[test]
fn a_check_finds_stale_missing_and_surplus_snapshots() {
    let jobs = empty_directory("snapshot-jobs");
    let out = empty_directory("snapshot-out").join("deep");
    fs::create_dir(jobs.join("team")).unwrap();
    fs::write(jobs.join("a.yaml"), case("single-worker.yaml")).unwrap();
    fs::write(jobs.join("team/b.yml"), case("sidecar-and-init.yaml")).unwrap();

    let missing = snapshot(&jobs, &out, true);
    assert_eq!(missing.code, Some(1));
    assert_eq!(missing.stdout.matches(": missing\n").count(), 2, "{missing:?}");
    assert!(!out.exists(), "a check writes nothing");

    let written = snapshot(&jobs, &out, false);
    assert_eq!(
        (written.code, written.stdout.as_str(), written.stderr.as_str()),
        (Some(0), "", "")
    );
    let text = fs::read_to_string(out.join("team/b.yaml")).unwrap();
    assert!(text.contains("\n# kind: MXJob\n"), "{text}");
    assert!(text.contains("\n# Pod sidecar-worker-0\n"), "{text}");
    assert_eq!(snapshot(&jobs, &out, true).code, Some(0));

    let image = case("single-worker.yaml").replace("image: ", "image: registry.example.com/");
    fs::write(jobs.join("a.yaml"), image).unwrap();
    fs::remove_file(jobs.join("team/b.yml")).unwrap();
    fs::write(out.join("own.yaml"), "kind: Kustomization\n").unwrap();
    let stale = snapshot(&jobs, &out, true);
    assert_eq!(stale.code, Some(1));
    assert!(stale.stdout.contains("a.yaml: stale\n@@ "), "{stale:?}");
    assert!(
        stale.stdout.contains("\n+    image: registry.example.com/"),
        "{stale:?}"
    );
    assert!(stale.stdout.contains("b.yaml: belongs to no job\n"), "{stale:?}");
    assert!(stale.stderr.contains("2 snapshots in "), "{stale:?}");

    assert_eq!(snapshot(&jobs, &out, false).code, Some(0));
    assert_eq!(snapshot(&jobs, &out, true).code, Some(0));
    assert!(!out.join("team/b.yaml").exists());
    assert!(out.join("own.yaml").exists(), "somebody's own file stays");
}

#[test]
fn jobs_of_one_file_get_a_file_each() {
    let jobs = empty_directory("snapshot-several");
    let out = empty_directory("snapshot-several-out");
    let both = format!(
        "{}---\n{}",
        case("single-worker.yaml"),
        case("sidecar-and-init.yaml")
    );
    fs::write(jobs.join("all.yaml"), &both).unwrap();
    assert_eq!(snapshot(&jobs.join("all.yaml"), &out, false).code, Some(0));
    assert!(out.join("all/single.yaml").exists() || out.join("all/single-worker.yaml").exists());
    assert!(out.join("all/sidecar.yaml").exists());

    fs::write(
        jobs.join("all.yaml"),
        format!("{both}---\n{}", case("sidecar-and-init.yaml")),
    )
    .unwrap();
    let twice = snapshot(&jobs.join("all.yaml"), &out, false);
    assert_eq!(twice.code, Some(2));
    assert!(
        twice.stderr.contains("duplicate job: sidecar is also at "),
        "{twice:?}"
    );
}

#[test]
fn foreign_files_are_not_overwritten() {
    let jobs = empty_directory("snapshot-way");
    fs::write(jobs.join("a.yaml"), case("single-worker.yaml")).unwrap();
    let run = snapshot(&jobs, &jobs, false);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("choose another --dir"), "{run:?}");
    assert_eq!(
        fs::read_to_string(jobs.join("a.yaml")).unwrap(),
        case("single-worker.yaml")
    );

    let bad = snapshot(Path::new("operator/tests/bad/no-worker.yaml"), &jobs, true);
    assert_eq!(bad.code, Some(2));
}
