//! Files and what they become: what is printed and told is in snapshots.

use std::fs;

use crate::program::{Run, empty_directory, root, run, run_with_input};

const CASES: &str = "operator/tests/convert/cases";

fn case(name: &str) -> String {
    fs::read_to_string(root().join(CASES).join(name)).unwrap()
}

fn convert(name: &str, flags: &[&str]) -> Run {
    let file = format!("{CASES}/{name}");
    run(&[&["convert", &*file], flags].concat())
}

/// What is told, and what is printed.
fn story(run: &Run) -> String {
    format!("exit code {}\n{}\n{}", run.code.unwrap(), run.stderr, run.stdout)
}

#[test]
fn each_shape_becomes_todays_and_stays_so() {
    for name in [
        "v1alpha1.yaml",
        "v1beta1.yaml",
        "several.yaml",
        "ancestors.yaml",
        "list.json",
    ] {
        let converted = convert(name, &[]);
        assert_eq!(converted.code, Some(0), "{name}: {}", converted.stderr);
        insta::with_settings!({snapshot_suffix => name}, {
            insta::assert_snapshot!(story(&converted));
        });
        let again = run_with_input(&["convert", "-"], converted.stdout.as_bytes());
        assert_eq!((again.code, &*again.stderr), (Some(0), ""), "{name}");
        assert_eq!(again.stdout, converted.stdout, "{name}");
        let checked = convert(name, &["--check"]);
        assert_eq!((checked.code, &*checked.stdout), (Some(1), ""), "{name}");
        assert_eq!(checked.stderr, converted.stderr, "{name}");
        let checked = run_with_input(&["convert", "--check", "-"], converted.stdout.as_bytes());
        assert_eq!((checked.code, &*checked.stdout), (Some(0), ""), "{name}");
    }
}

#[test]
fn what_today_has_not_is_left_out_only_when_asked() {
    let refused = convert("lossy.yaml", &[]);
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""));
    let lossy = convert("lossy.yaml", &["--lossy"]);
    assert_eq!(lossy.code, Some(0));
    insta::assert_snapshot!(format!("{}\n{}", story(&refused), story(&lossy)));
}

#[test]
fn a_job_that_may_mean_anything_is_refused() {
    let refused = convert("wrong.yaml", &["--lossy"]);
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""));
    insta::assert_snapshot!(refused.stderr);
}

#[test]
fn bad_yaml_and_files_that_are_not_there_are_told_of() {
    let bad = run_with_input(&["convert", "-"], b"a: 1\n---\nb: 1\nb: 2\n");
    assert_eq!((bad.code, &*bad.stdout), (Some(2), ""));
    assert_eq!(
        bad.stderr,
        "<stdin>:4:1: b is here twice, first in line 2; keep one\n"
    );
    let gone = run(&["convert", "no/such.yaml"]);
    assert_eq!(
        (gone.code, &*gone.stderr),
        (Some(2), "no/such.yaml: there is no such file\n")
    );
}

#[test]
fn files_are_written_in_place_if_they_change() {
    let directory = empty_directory("convert-in-place");
    for name in ["several.yaml", "wrong.yaml"] {
        fs::write(directory.join(name), case(name)).unwrap();
    }
    fs::write(
        directory.join("crlf.yaml"),
        case("v1beta1.yaml").replace('\n', "\r\n"),
    )
    .unwrap();
    let converted = run(&["convert", "--in-place", directory.to_str().unwrap()]);
    assert_eq!(
        (converted.code, &*converted.stdout),
        (Some(1), ""),
        "for the wrong one"
    );
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    assert_eq!(read("several.yaml"), convert("several.yaml", &[]).stdout);
    assert_eq!(read("wrong.yaml"), case("wrong.yaml"));
    assert_eq!(
        read("crlf.yaml"),
        convert("v1beta1.yaml", &[]).stdout.replace('\n', "\r\n")
    );
    assert_eq!(
        fs::read_dir(&directory).unwrap().count(),
        3,
        "nothing else is left"
    );
}

#[test]
fn validate_and_render_name_the_command_for_what_is_not_served() {
    let file = format!("{CASES}/v1alpha1.yaml");
    for command in ["validate", "render"] {
        let run = run(&[command, &file]);
        let told = format!(
            "{file}:2:1: apiVersion: MXJob of kubeflow.org/v1alpha1 is not served any more; \
                            convert it by: training-operator convert {file}"
        );
        let all = format!("{}{}", run.stderr, run.stdout);
        assert!(all.contains(&told), "{command}: {all}");
    }
}
