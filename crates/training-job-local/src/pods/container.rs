//! The container that a request is for.

use serde_json::Value;

fn names<'a>(pod: &'a Value, field: &str) -> Vec<&'a str> {
    let containers = pod["spec"][field].as_array().into_iter().flatten();
    containers
        .filter_map(|container| container["name"].as_str())
        .collect()
}

/// Returns the container of a request: the named one, or the only one.
///
/// # Errors
/// The message for a missing or unknown name, in the API server's words.
pub(super) fn choose(pod: &Value, requested: Option<&str>) -> Result<String, String> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let (main, init) = (names(pod, "containers"), names(pod, "initContainers"));
    match (requested, main.as_slice()) {
        (Some(requested), _) if main.iter().chain(&init).any(|name| *name == requested) => {
            Ok(requested.to_owned())
        }
        (Some(requested), _) => Err(format!("container {requested} is not valid for pod {name}")),
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => {
            let mut message = format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                main.join(" ")
            );
            if !init.is_empty() {
                message.push_str(&format!(" or one of the init containers: [{}]", init.join(" ")));
            }
            Err(message)
        }
    }
}

/// Returns the message for a container without output, in a kubelet's words, or `None` if the run has ended: it wrote
/// nothing, and an earlier node ran it.
pub(super) fn no_output(pod: &Value, container: &str, previous: bool) -> Option<String> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let all = ["containerStatuses", "initContainerStatuses"];
    let mut statuses = all
        .iter()
        .flat_map(|field| pod["status"][field].as_array().into_iter().flatten());
    let status = statuses.find(|status| status["name"] == container);
    let state = if previous { "lastState" } else { "state" };
    if status.is_some_and(|status| status[state]["terminated"].is_object()) {
        return None;
    }
    if previous {
        return Some(format!(
            "previous terminated container {container:?} in pod {name:?} not found"
        ));
    }
    let waiting = status.and_then(|status| status["state"]["waiting"]["reason"].as_str());
    Some(match waiting {
        Some(reason) => format!("container {container:?} in pod {name:?} is waiting to start: {reason}"),
        None => format!("container {container:?} in pod {name:?} is not available"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_is_chosen_or_the_choices_are_named() {
        let one = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main"}]}});
        assert_eq!(choose(&one, None), Ok("main".to_owned()));
        assert_eq!(
            choose(&one, Some("x")),
            Err("container x is not valid for pod p".to_owned())
        );
        let two = json!({"metadata": {"name": "p"}, "spec": {
            "containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "c"}],
        }});
        let problem = "a container name must be specified for pod p, choose one of: [a b] \
                       or one of the init containers: [c]";
        assert_eq!(choose(&two, None), Err(problem.to_owned()));
        assert_eq!(choose(&two, Some("c")), Ok("c".to_owned()));
    }

    #[test]
    fn a_container_without_output_waits_or_has_not_run_before() {
        let pod = json!({"metadata": {"name": "p"}, "status": {"containerStatuses": [
            {"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}},
            {"name": "b", "state": {"terminated": {"exitCode": 0}}},
        ]}});
        let waiting = "container \"a\" in pod \"p\" is waiting to start: ContainerCreating";
        assert_eq!(no_output(&pod, "a", false).as_deref(), Some(waiting));
        let previous = "previous terminated container \"a\" in pod \"p\" not found";
        assert_eq!(no_output(&pod, "a", true).as_deref(), Some(previous));
        assert_eq!(no_output(&pod, "b", false), None);
    }
}
