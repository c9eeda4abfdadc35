//! The output of the pods of `local node` and `local cluster`.

use std::io::Write as _;

use local_node::NodeEvent;
use training_job_program::program;

use crate::local::processes;

/// Prints an event of a pod after the pod's name, with its namespace if the node may have pods of several namespaces.
/// Differences between a process and its container are printed only if `with_differences`.
pub(super) fn print_event(event: &NodeEvent, with_namespace: bool, with_differences: bool) {
    let full = |namespace: &str, pod: &str| match with_namespace {
        false => pod.to_owned(),
        true => format!("{namespace}/{pod}"),
    };
    match event {
        NodeEvent::Log(log) => {
            let writer = processes::writer(&full(&log.namespace, &log.pod), log);
            print(&format!("{writer} | {}", log.text));
        }
        NodeEvent::Phase(phase) => print(&format!("{} * {phase}", full(&phase.namespace, &phase.pod))),
        NodeEvent::LogLost(lost) => print(&format!("{} * {lost}", full(&lost.namespace, &lost.pod))),
        NodeEvent::Prepared(prepared) if with_differences => {
            for line in processes::differences(prepared) {
                print(&format!("{} ? {line}", full(&prepared.namespace, &prepared.pod)));
            }
        }
        _ => {}
    }
}

/// Prints a line of the program itself.
pub(super) fn note(text: &str) {
    print(&format!("{}: {text}", program().name));
}

/// Prints a line. Errors are ignored, because the pods continue without a reader.
fn print(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
