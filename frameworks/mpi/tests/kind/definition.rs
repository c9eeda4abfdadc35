//! Names and warnings of MPIJobs.

use serde_json::json;
use training_job::{Settings, render, validate};
use training_job_mpi::MPIJob;
use training_job_testbed::PlanHarness;

/// These jobs have no services, so that a name is that of an object, as long as a label value may be.
#[test]
fn a_name_is_that_of_an_object_of_at_most_63_characters() {
    let parts = "use at most 63 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part, \
                 such as my-job";
    for (name, error) in [
        ("a".repeat(63).as_str(), String::new()),
        (
            &"a".repeat(64),
            "metadata.name: must be at most 63 characters (has 64); use a shorter name".to_owned(),
        ),
        ("a.b", String::new()),
        ("4-nodes", String::new()),
        (
            "My_Job",
            format!("metadata.name: must be a valid name of an object (is \"My_Job\"); {parts}"),
        ),
        (
            "a..b",
            format!("metadata.name: must be a valid name of an object (is \"a..b\"); {parts}"),
        ),
    ] {
        let mut w = PlanHarness::<MPIJob>::with("Launcher=1:Never Worker=2:Never", "");
        w.edit(|job| job.metadata.name = Some(name.to_owned()));
        let errors = validate(&w.job, &Settings::default()).err().unwrap_or_default();
        assert_eq!(errors.to_string(), error);
    }
}

#[test]
fn a_launcher_that_uses_ssh_gets_a_warning_for_each_use() {
    let at = "spec.mpiReplicaSpecs.Launcher.template.spec";
    for (container, paths) in [
        (json!({"command": ["mpirun", "train", "sshd_config"]}), vec![]),
        (
            json!({"command": ["sh", "-c"], "args": ["until ssh $h true; do sleep 1; done; mpirun --mca plm_rsh_agent ssh a"]}),
            vec!["command", "command"],
        ),
        (json!({"args": ["ssh", "a", "true"]}), vec!["args"]),
        (
            json!({"env": [{"name": "I_MPI_HYDRA_BOOTSTRAP", "value": "ssh"}]}),
            vec!["env"],
        ),
        (
            json!({"env": [{"name": "OMPI_MCA_plm_rsh_agent", "value": "ssh"}]}),
            vec!["env[0]"],
        ),
    ] {
        let mut w = PlanHarness::<MPIJob>::with("Launcher=1:Never Worker=2:Never", "");
        w.edit(|job| {
            let launcher = job
                .spec
                .mpi_replica_specs
                .get_mut("Launcher")
                .unwrap()
                .as_mut()
                .unwrap();
            let first = &mut launcher.template.spec.as_mut().unwrap().containers[0];
            first.command = serde_json::from_value(container["command"].clone()).unwrap();
            first.args = serde_json::from_value(container["args"].clone()).unwrap();
            first.env = serde_json::from_value(container["env"].clone()).unwrap();
        });
        let valid = validate(&w.job, &Settings::default()).unwrap();
        let found = render::warnings(&valid);
        let found: Vec<&str> = found.iter().map(|warning| &*warning.path).collect();
        let expected: Vec<String> = paths
            .iter()
            .map(|path| format!("{at}.containers[0].{path}"))
            .collect();
        assert_eq!(found, expected, "{container}");
    }
}
