//! Resource quantities, as far as environment variables refer to them.

use k8s_openapi::api::core::v1::{Container, ResourceFieldSelector};

use kube_schema::quantity::amount;

/// The machine's resources: the value for a container without a limit, as on a real node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    pub(super) cpus: f64,
    pub(super) memory_bytes: f64,
}

impl Machine {
    /// Reads this machine's resources. Memory is 0 if the kernel does not report it.
    pub(super) fn this() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let kib = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
            line.split_whitespace().nth(1)?.parse::<f64>().ok()
        });
        Self {
            cpus: cpus as f64,
            memory_bytes: kib.unwrap_or(0.0) * 1024.0,
        }
    }
}

/// Returns the value of a `resourceFieldRef`, rounded up to whole units of its divisor, or `None` for a resource that
/// is unknown for both the container and the machine.
pub(super) fn field_value(
    container: &Container,
    selector: &ResourceFieldSelector,
    machine: &Machine,
) -> Option<String> {
    let (list, resource) = selector.resource.split_once('.')?;
    let resources = container.resources.as_ref();
    let limits = resources.and_then(|resources| resources.limits.as_ref());
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    let declared = match list {
        "limits" => limits.and_then(|limits| limits.get(resource)),
        "requests" => requests
            .and_then(|requests| requests.get(resource))
            .or_else(|| limits.and_then(|l| l.get(resource))),
        _ => return None,
    };
    let value = match (declared, list, resource) {
        (Some(quantity), ..) => amount(&quantity.0)?,
        (None, "limits", "cpu") => machine.cpus,
        (None, "limits", "memory") => machine.memory_bytes,
        (None, "requests", "cpu" | "memory") => 0.0,
        _ => return None,
    };
    let divisor = selector
        .divisor
        .as_ref()
        .and_then(|divisor| amount(&divisor.0))
        .filter(|divisor| *divisor > 0.0)
        .unwrap_or(1.0);
    Some(format!("{:.0}", (value / divisor).ceil()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
    use serde_json::json;

    #[test]
    fn limits_and_requests_become_whole_numbers() {
        let container: Container = serde_json::from_value(json!({
            "name": "c",
            "resources": {
                "limits": {"cpu": "1500m", "memory": "1Gi", "example.com/gpu": "2"},
                "requests": {"cpu": "100m", "memory": "12e6"},
            },
        }))
        .unwrap();
        let bare = Container::default();
        let machine = Machine {
            cpus: 8.0,
            memory_bytes: 1e9,
        };
        for (container, resource, divisor, expected) in [
            (&container, "limits.cpu", None, Some("2")),
            (&container, "limits.cpu", Some("1m"), Some("1500")),
            (&container, "limits.memory", None, Some("1073741824")),
            (&container, "limits.memory", Some("1Mi"), Some("1024")),
            (&container, "requests.memory", None, Some("12000000")),
            (&container, "limits.example.com/gpu", None, Some("2")),
            (&container, "requests.example.com/gpu", None, Some("2")),
            (&container, "limits.cpu", Some("0"), Some("2")),
            (&bare, "limits.cpu", None, Some("8")),
            (&bare, "limits.memory", None, Some("1000000000")),
            (&bare, "requests.cpu", None, Some("0")),
            (&bare, "limits.example.com/gpu", None, None),
            (&bare, "nonsense", None, None),
        ] {
            let selector = ResourceFieldSelector {
                resource: resource.into(),
                divisor: divisor.map(|divisor| Quantity(divisor.into())),
                ..ResourceFieldSelector::default()
            };
            assert_eq!(
                field_value(container, &selector, &machine).as_deref(),
                expected,
                "{resource} {divisor:?}"
            );
        }
    }
}
