//! The environment of a local process, and its differences from the pod's.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};

use super::host_names::HostNames;
use super::launch::quoted;
use super::references::Text;

/// A variable's value in the pod's container, and its value in the local process.
#[derive(Clone, Debug)]
struct Variable {
    name: String,
    pod: Option<Text>,
    local: Option<String>,
    /// The reason that the two differ; empty if they are equal.
    why: String,
    secret: bool,
}

/// The environment variables of one container, in the order of the pod's specification.
///
/// Each variable holds its value in a cluster and its value in the local process, so that every change can be shown
/// with its reason.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: Vec<Variable>,
    replaced: Option<Replaced>,
    entrance: Option<String>,
}

/// The shell script that runs in place of a container's command, and its reason.
#[derive(Clone, Debug)]
pub(super) struct Replaced {
    pub(super) script: String,
    pub(super) why: String,
}

/// Runs until it is asked to end.
const IDLE: &str = "trap 'exit 143' TERM; while :; do sleep 3600 & wait; done";

impl Environment {
    /// Returns the process's value of `name`, or `None` if the process does not get the variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(name).and_then(|variable| variable.local.as_deref())
    }

    /// Returns the value of `name` in a cluster, or `None` if it has none or the value would come from the image.
    #[must_use]
    pub fn in_pod(&self, name: &str) -> Option<&str> {
        self.find(name)
            .and_then(|variable| variable.pod.as_ref())
            .map(Text::as_str)
    }

    /// Sets `name` to `value` for the process. `why` is shown to the user if the pod has another value.
    pub fn set(&mut self, name: &str, value: impl Into<String>, why: &str) {
        let variable = self.entry(name);
        variable.local = Some(value.into());
        why.clone_into(&mut variable.why);
    }

    /// Replaces the port of each address in `name`, such as `127.64.0.2:2222`. The address is the whole value, or
    /// stands in quotes in it. The new port is derived from the address. This is for programs that listen at all
    /// addresses of the machine and would receive each other's connections.
    pub fn give_own_ports(&mut self, name: &str) {
        let Some(value) = self.get(name) else { return };
        let parts = value.split('"').map(|part| {
            let address = part.parse::<SocketAddrV4>();
            address.map_or_else(|_| part.to_owned(), |a| own_port(*a.ip()).to_string())
        });
        let local = parts.collect::<Vec<_>>().join("\"");
        if local != value {
            self.set(name, local, "so that each replica has a port of its own");
        }
    }

    /// Replaces the port in `name` by the port derived from the address in `address`. It equals the port that
    /// [`give_own_ports`](Self::give_own_ports) sets where address and port are in one value. All pods with the same
    /// address therefore get the same port, and jobs with different addresses get different ports.
    pub fn give_own_port(&mut self, name: &str, address: &str) {
        let Some(address) = self.get(address).and_then(|value| value.parse().ok()) else {
            return;
        };
        let local = own_port(address).port().to_string();
        if self.get(name).is_some_and(|value| value != local) {
            self.set(name, local, "so that each job has a port of its own");
        }
    }

    /// Removes `name` from the process's environment. `why` is shown to the user if the pod has the variable.
    pub fn remove(&mut self, name: &str, why: &str) {
        let variable = self.entry(name);
        variable.local = None;
        why.clone_into(&mut variable.why);
    }

    /// Makes the container succeed without running its command: for init containers that fetch or await something
    /// that exists only in a cluster. `why` is shown to the user.
    pub fn skip_container(&mut self, why: &str) {
        self.replace_command(":", why);
    }

    /// Makes the container run until it is stopped, without running its command: for a server by which others would start
    /// programs in the pod. The exec program of the node starts them here ([`LocalPod::exec`](super::LocalPod::exec)). `why` is
    /// shown to the user, and is the container's output.
    pub fn idle_container(&mut self, why: &str) {
        self.replace_command(&format!("echo {} >&2; {IDLE}", quoted(why)), why);
    }

    /// Runs a shell script in place of the container's command. `why` is shown to the user.
    pub fn replace_command(&mut self, script: &str, why: &str) {
        self.replaced = Some(Replaced {
            script: script.to_owned(),
            why: why.to_owned(),
        });
    }

    /// Lets the exec program of the node ([`LocalPod::exec`](super::LocalPod::exec)) give the commands of other pods to this
    /// shell script, as `$1`, which brings them into the pod by a server of the pod. The server runs them with
    /// [`LocalPod::enter`](super::LocalPod::enter).
    pub fn enter_by(&mut self, script: &str) {
        self.entrance = Some(script.to_owned());
    }

    /// Returns the process's variables, name and value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables
            .iter()
            .filter_map(|variable| Some((variable.name.as_str(), variable.local.as_deref()?)))
    }

    /// Returns the variables whose value here differs from the pod's. Values from Secrets are not shown.
    #[must_use]
    pub fn differences(&self) -> Vec<Difference> {
        let differing =
            |variable: &&Variable| variable.pod.as_ref().map(Text::as_str) != variable.local.as_deref();
        let shown = |variable: &Variable, value: &str| {
            if variable.secret {
                "(from a Secret)".to_owned()
            } else {
                value.to_owned()
            }
        };
        self.variables
            .iter()
            .filter(differing)
            .map(|variable| Difference {
                part: PodPart::Variable,
                name: variable.name.clone(),
                pod: variable.pod.as_ref().map(|text| shown(variable, text.as_str())),
                local: variable.local.as_ref().map(|value| shown(variable, value)),
                why: variable.why.clone(),
            })
            .collect()
    }

    /// Declares a variable of the pod's specification. A later variable of the same name replaces the earlier.
    pub(super) fn declare(&mut self, name: &str, value: Text, secret: bool) {
        let variable = self.entry(name);
        variable.local = Some(value.as_str().to_owned());
        variable.pod = Some(value);
        variable.secret = secret;
        variable.why.clear();
    }

    /// Returns the value of `$(name)` in a later value of the pod's specification.
    pub(super) fn declared(&self, name: &str) -> Option<Text> {
        self.find(name)?.pod.clone()
    }

    /// Returns the value of `$(name)` in the command of the local process. A value that was changed for the process
    /// is final.
    pub(super) fn reference(&self, name: &str) -> Option<Text> {
        let variable = self.find(name)?;
        let pod = variable.pod.as_ref()?;
        let local = variable.local.as_ref()?;
        Some(if pod.as_str() == local {
            pod.clone()
        } else {
            Text::kept(local.clone())
        })
    }

    /// Sets `name` to `value` for the process only if the pod's specification does not declare it.
    pub(super) fn default_to(&mut self, name: &str, value: impl Into<String>, why: &str) {
        if self.find(name).is_none() {
            self.set(name, value, why);
        }
    }

    /// Replaces names of pods and services in all values.
    pub(super) fn replace_names(&mut self, names: &HostNames) {
        for variable in &mut self.variables {
            let Some(replaced) = variable.pod.as_ref().and_then(|text| names.replace_in(text)) else {
                continue;
            };
            variable.local = Some(replaced);
            NAMES_ARE_ADDRESSES.clone_into(&mut variable.why);
        }
    }

    /// Replaces paths of mounts by the paths of the files here. `replace` returns `None` for a value without paths.
    pub(super) fn replace_paths(&mut self, replace: impl Fn(&str) -> Option<String>) {
        for variable in &mut self.variables {
            let value = variable.local.as_deref();
            if let Some(replaced) = value.and_then(&replace) {
                variable.local = Some(replaced);
                FILES_ARE_ELSEWHERE.clone_into(&mut variable.why);
            }
        }
    }

    /// Returns the replacement of the container's command, if it has one.
    pub(super) fn replaced(&self) -> Option<&Replaced> {
        self.replaced.as_ref()
    }

    /// Returns the script that brings commands of other pods into the pod, if it has one.
    pub(super) fn entrance(&self) -> Option<&str> {
        self.entrance.as_deref()
    }

    fn find(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|variable| variable.name == name)
    }

    fn entry(&mut self, name: &str) -> &mut Variable {
        let at = self
            .variables
            .iter()
            .position(|variable| variable.name == name)
            .unwrap_or_else(|| {
                self.variables.push(Variable {
                    name: name.to_owned(),
                    pod: None,
                    local: None,
                    why: String::new(),
                    secret: false,
                });
                self.variables.len() - 1
            });
        &mut self.variables[at]
    }
}

/// Returns the address with a port derived from it, below the range from which the kernel picks free ports.
fn own_port(address: Ipv4Addr) -> SocketAddrV4 {
    let port = 10_000 + address.to_bits() % 20_000;
    SocketAddrV4::new(address, u16::try_from(port).unwrap_or(u16::MAX))
}

/// The reason of a difference for a name that was replaced by an address.
pub(super) const NAMES_ARE_ADDRESSES: &str = "there is no cluster DNS here: names are loopback addresses";

/// The reason of a difference for a path that was replaced.
pub(super) const FILES_ARE_ELSEWHERE: &str =
    "volumes are not mounted; files of ConfigMaps and Secrets are in the pod's folder";

/// The part of a pod that a [`Difference`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodPart {
    /// An environment variable.
    Variable,
    /// The command or one of its arguments.
    Argument,
    /// A field of the pod's specification that is changed or has no effect here.
    Setting,
}

/// A difference between a pod here and the same pod in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The part of the pod.
    pub part: PodPart,
    /// The variable's name, or the field's path in the container or pod.
    pub name: String,
    /// The value in the pod; `None` if it has no value there, or the value would come from the image.
    pub pod: Option<String>,
    /// The value here; `None` if it has no effect here.
    pub local: Option<String>,
    /// The reason, in a few words.
    pub why: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        write!(
            f,
            "{}: {} → {} ({})",
            self.name,
            value(&self.pod),
            value(&self.local),
            self.why
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_both_values_and_the_reason() {
        let mut env = Environment::default();
        env.declare("SAME", Text::plain("1"), false);
        env.declare("URI", Text::plain("job:9091"), false);
        env.declare("MODE", Text::plain("1"), false);
        env.declare("TOKEN", Text::plain("job"), true);
        env.declare("GONE", Text::plain("x"), false);
        env.default_to("SAME", "other", "not used");
        env.default_to("HOME", "/home/me", "this machine's");
        env.replace_names(&HostNames {
            namespace: "ns".into(),
            addresses: [("job".to_owned(), std::net::Ipv4Addr::new(127, 64, 0, 2))].into(),
            domain: None,
        });
        env.set("MODE", "0", "binds its own address");
        env.remove("GONE", "no such thing here");

        let shown: Vec<String> = env.differences().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "URI: job:9091 → 127.64.0.2:9091 (there is no cluster DNS here: names are loopback addresses)",
                "MODE: 1 → 0 (binds its own address)",
                "TOKEN: (from a Secret) → (from a Secret) (there is no cluster DNS here: names are loopback addresses)",
                "GONE: x → - (no such thing here)",
                "HOME: - → /home/me (this machine's)",
            ]
        );
        assert_eq!(
            env.iter().collect::<Vec<_>>(),
            [
                ("SAME", "1"),
                ("URI", "127.64.0.2:9091"),
                ("MODE", "0"),
                ("TOKEN", "127.64.0.2"),
                ("HOME", "/home/me")
            ]
        );
        assert_eq!(env.in_pod("URI"), Some("job:9091"));
        assert_eq!(env.get("GONE"), None);
    }

    #[test]
    fn a_variable_set_to_the_value_of_the_pod_is_not_a_difference() {
        let mut env = Environment::default();
        env.declare("A", Text::plain("1"), false);
        env.set("A", "2", "x");
        env.set("A", "1", "y");
        assert_eq!(env.differences(), []);
    }

    #[test]
    fn each_address_has_a_port_of_its_own() {
        let local = |value: &str| {
            let mut env = Environment::default();
            env.declare("CONFIG", Text::plain(value), false);
            env.give_own_ports("CONFIG");
            env.get("CONFIG").unwrap_or_default().to_owned()
        };
        assert_eq!(
            local(r#"{"cluster":{"worker":["127.64.0.2:2222","127.64.0.3:2222"]},"task":{"index":0}}"#),
            r#"{"cluster":{"worker":["127.64.0.2:10738","127.64.0.3:10739"]},"task":{"index":0}}"#
        );
        assert_eq!(local("127.64.0.2:2222"), "127.64.0.2:10738");
        for without in [r#"{"task":{"type":"worker"}}"#, "job-0:2222", "127.64.0.2"] {
            assert_eq!(local(without), without);
        }
    }

    #[test]
    fn a_port_alone_is_that_of_its_address() {
        let local = |address: Option<&str>, port: Option<&str>| {
            let mut env = Environment::default();
            for (name, value) in [("ADDRESS", address), ("PORT", port)] {
                if let Some(value) = value {
                    env.declare(name, Text::plain(value), false);
                }
            }
            env.give_own_port("PORT", "ADDRESS");
            env.get("PORT").map(str::to_owned)
        };
        // The same ports as in values with address and port.
        assert_eq!(local(Some("127.64.0.2"), Some("2222")).as_deref(), Some("10738"));
        assert_eq!(local(Some("127.64.0.3"), Some("2222")).as_deref(), Some("10739"));
        assert_eq!(local(Some("example.org"), Some("2222")).as_deref(), Some("2222"));
        assert_eq!(local(None, Some("2222")).as_deref(), Some("2222"));
        assert_eq!(local(Some("127.64.0.2"), None), None, "none is made up");
    }
}
