//! The end of a container's log as its termination message. It applies to the framework's container if the template
//! does not configure the message.

use crate::harness::PlanHarness;

/// Returns the policy and the path of the termination message of each container.
fn messages(containers: &str) -> Vec<(Option<String>, Option<String>)> {
    let mut w = PlanHarness::from_yaml(&format!(
        "metadata: {{name: job}}\nspec: {{replicaSpecs: {{Worker: {{template: {{spec: {{containers: {containers}}}}}}}}}}}"
    ));
    w.reconcile();
    let containers = w.pods["job-worker-0"]
        .spec
        .clone()
        .unwrap()
        .containers
        .into_iter();
    containers
        .map(|c| (c.termination_message_policy, c.termination_message_path))
        .collect()
}

#[test]
fn the_main_container_leaves_the_end_of_its_log_unless_it_sets_a_message_policy() {
    let logs = || Some("FallbackToLogsOnError".to_owned());
    for (fields, policy, path) in [
        ("", logs(), None),
        (", terminationMessagePolicy: File", Some("File".to_owned()), None),
        (
            ", terminationMessagePath: /words",
            None,
            Some("/words".to_owned()),
        ),
    ] {
        let containers = format!("[{{name: side, image: b}}, {{name: toy, image: a{fields}}}]");
        assert_eq!(messages(&containers), [(None, None), (policy, path)], "{fields}");
    }
}
