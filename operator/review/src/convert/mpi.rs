//! Converts the MPIJobs of four operators: with one pod template (`v1alpha1`), with roles (`v1alpha2`, KubeDL), and
//! with roles that connect by SSH (`v2beta1`).

use kube_manifest::{Content, Node, Position};

use super::log::Log;
use super::mapped::{self, KUBEDL_MPI, MPI, keep_policy, keep_restart};
use super::policies::{RUN_POLICY_FIELDS, keep_clean_up, move_fields, remove_unused};
use super::tree::{below, child, entry, for_each_role, has, items, put, scalar, take, text};
use super::{ssh, template};

pub(super) const KIND: &str = "MPIJob";

const OPERATOR: &str = "mpi-operator";

const SPECS: &str = MPI.specs;

/// The default backoff limit of the launcher's batch Job.
const DEFAULT_BACKOFF_LIMIT: i64 = 6;

/// The operator and API version that a job was written for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// `v1alpha1`.
    Alpha1,
    /// `v1alpha2`.
    Alpha2,
    /// `v2beta1`: mpirun connected to the workers by SSH.
    Ssh,
    KubeDl,
    /// `v1`.
    Current,
}

/// Converts an MPIJob to its current form.
pub(super) fn convert(job: &mut Node, origin: Origin, log: &mut Log<'_>) {
    let at = job.at;
    let spec = job.get("spec");
    if spec.is_some_and(|spec| has(spec, "template") && !has(spec, SPECS)) {
        if let Some(spec) = child(job, "spec") {
            template::split(spec, at, log);
            move_fields(spec, &RUN_POLICY_FIELDS, log);
            template::report_unknown(spec, log);
            keep_launcher(spec, at, log);
        }
        return;
    }
    match origin {
        Origin::Current => {
            // The current version has a cleanPodPolicy at the top of the spec, too.
            if let Some(spec) = child(job, "spec") {
                move_fields(spec, &RUN_POLICY_FIELDS[1..], log);
            }
        }
        Origin::KubeDl => {
            mapped::convert(job, &KUBEDL_MPI, true, log);
            if let Some(spec) = child(job, "spec") {
                distribution(spec, "mpiDistribution", log);
            }
        }
        Origin::Alpha1 | Origin::Alpha2 => {
            let Some(spec) = child(job, "spec") else { return };
            mapped::name_roles(spec, &MPI, log);
            move_fields(spec, &RUN_POLICY_FIELDS, log);
            distribution(spec, "mpiDistribution", log);
            keep_clean_up(spec, ("None", OPERATOR), at, log);
            allow_two_policies(spec, log);
            keep_launcher(spec, at, log);
            if let Some(worker) = below(spec, &[SPECS, "Worker"]) {
                keep_restart(worker, &format!("spec.{SPECS}.Worker"), ("Always", OPERATOR), log);
            }
        }
        Origin::Ssh => {
            let name = job
                .get("metadata")
                .and_then(|metadata| metadata.text("name"))
                .map(str::to_owned);
            let Some(spec) = child(job, "spec") else { return };
            let what = "the mpi-operator connected to workers by SSH; in v1, mpirun starts their processes \
                        with exec through the API server, so images need no sshd and pods get no keys";
            log.note(at, "spec", what);
            mapped::name_roles(spec, &MPI, log);
            move_fields(spec, &RUN_POLICY_FIELDS, log);
            remove_fields_of_ssh(spec, log);
            ssh::remove_volumes(spec, name.as_deref(), log);
            ssh::replace_daemons(spec, log);
            ssh::report_uses(spec, log);
            keep_clean_up(spec, ("None", OPERATOR), at, log);
            keep_launcher(spec, at, log);
        }
    }
}

/// Converts a current job to `v2beta1`.
pub(super) fn start_by_ssh(job: &mut Node, log: &mut Log<'_>) {
    let at = job.at;
    if let Some(version) = child(job, "apiVersion") {
        version.content = scalar("kubeflow.org/v2beta1").content;
    }
    log.note(
        at,
        "apiVersion",
        "changed to kubeflow.org/v2beta1: mpirun connects to the workers by SSH, so images need ssh and sshd",
    );
    let Some(spec) = child(job, "spec") else { return };
    move_fields(spec, &RUN_POLICY_FIELDS, log);
    let of_v1 = "v1 operator";
    keep_clean_up(spec, ("Running", of_v1), at, log);
    if spec.text("launcherCreationPolicy").unwrap_or_default().is_empty() {
        put(
            spec,
            entry("launcherCreationPolicy", scalar("WaitForWorkersReady")),
        );
        log.note(
            at,
            "spec.launcherCreationPolicy",
            "set to WaitForWorkersReady, the default of v1",
        );
    }
    let main = take(spec, "mainContainer");
    let main = main.as_ref().and_then(|main| Some((main.at, text(&main.value)?)));
    let mut is_final = false;
    for_each_role(spec, SPECS, |name, role| {
        let path = format!("spec.{SPECS}.{name}");
        let place = role.at;
        keep_restart(role, &path, ("Never", of_v1), log);
        if let Some(policy) = child(role, "restartPolicy")
            && matches!(text(policy), Some("Always" | "ExitCode"))
        {
            let what = "changed to OnFailure, because v2beta1 has only Never and OnFailure";
            log.note(policy.at, &format!("{path}.restartPolicy"), what);
            policy.content = scalar("OnFailure").content;
        }
        is_final |= name == "Launcher" && role.text("restartPolicy") == Some("Never");
        let containers = below(role, &["template", "spec", "containers"]).and_then(items);
        let Some(first) = containers.and_then(|all| all.first_mut()) else {
            return;
        };
        if let Some((at, main)) = main
            && first.text("name") != Some(main)
        {
            let what = format!("v2beta1 starts processes in the first container of {name}");
            log.unsupported(at, "spec.mainContainer", &what, "move the container to the front");
        }
        if name == "Worker" && (has(first, "command") || has(first, "args")) {
            let what = "the worker runs this command in place of sshd; remove it unless it starts sshd";
            log.warn(
                place,
                &format!("{path}.template.spec.containers[0].command"),
                what,
            );
        }
    });
    // Under Never, v2beta1 creates a failed launcher again up to backoffLimit times.
    if is_final && let Some(policy) = child(spec, "runPolicy") {
        put(policy, entry("backoffLimit", scalar(0)));
        let what = "set to 0, because v1 does not restart a launcher with Never";
        log.note(at, "spec.runPolicy.backoffLimit", what);
    }
}

/// Replaces restart policies of the launcher that its batch Job did not support. The Job supported only `Never` and
/// `OnFailure`.
fn allow_two_policies(spec: &mut Node, log: &mut Log<'_>) {
    let Some(launcher) = below(spec, &[SPECS, "Launcher"]) else {
        return;
    };
    let Some(policy) = child(launcher, "restartPolicy") else {
        return;
    };
    if matches!(text(policy), Some("Always" | "ExitCode")) {
        let what = "changed to OnFailure, as the mpi-operator interpreted it";
        log.note(policy.at, &format!("spec.{SPECS}.Launcher.restartPolicy"), what);
        policy.content = scalar("OnFailure").content;
    }
}

/// Writes the former restart policy and backoff limit of the launcher if the job does not set them.
fn keep_launcher(spec: &mut Node, at: Position, log: &mut Log<'_>) {
    let path = format!("spec.{SPECS}.Launcher");
    let Some(launcher) = below(spec, &[SPECS, "Launcher"]) else {
        return;
    };
    let place = launcher.at;
    keep_restart(launcher, &path, ("OnFailure", OPERATOR), log);
    if launcher.text("restartPolicy") == Some("Never") {
        let what = "this operator does not restart a launcher that fails; the mpi-operator restarted it up to backoffLimit \
                    times, as OnFailure does";
        log.note(place, &format!("{path}.restartPolicy"), what);
    } else {
        keep_policy(spec, ("backoffLimit", DEFAULT_BACKOFF_LIMIT), OPERATOR, at, log);
    }
}

/// Removes the MPI implementation if it makes no difference.
fn distribution(spec: &mut Node, key: &str, log: &mut Log<'_>) {
    let Some(named) = take(spec, key) else { return };
    let path = format!("spec.{key}");
    match text(&named.value) {
        Some("OpenMPI" | "") => {
            log.note(
                named.at,
                &path,
                "removed: the hostfile has Open MPI's format, as before",
            );
        }
        word => {
            let what = format!(
                "/etc/mpi/hostfile has Open MPI's format (host slots=n), which {} cannot read",
                word.unwrap_or("another implementation")
            );
            log.unsupported(named.at, &path, &what, "convert the hostfile in the launcher");
        }
    }
}

/// Converts the fields that only `v2beta1` has.
fn remove_fields_of_ssh(spec: &mut Node, log: &mut Log<'_>) {
    remove_unused(spec, "sshAuthMountPath", "spec", "pods get no SSH keys", log);
    distribution(spec, "mpiImplementation", log);
    if let Some(flag) = take(spec, "runLauncherAsWorker") {
        let path = "spec.runLauncherAsWorker";
        if matches!(flag.value.content, Content::Scalar(serde_json::Value::Bool(true))) {
            let what = "the launcher's pod runs no worker processes";
            log.unsupported(flag.at, path, what, "add a worker with the launcher's resources");
        } else {
            log.note(
                flag.at,
                path,
                "removed: the launcher's pod runs no worker processes",
            );
        }
    }
    if spec.text("launcherCreationPolicy").unwrap_or_default().is_empty() {
        let what = "the default is now WaitForWorkersReady instead of AtStartup: the launcher is created once all workers run";
        log.note(spec.at, "spec.launcherCreationPolicy", what);
    }
    if let Some(nested) = child(spec, "runPolicy")
        && nested.text("managedBy") == Some("kubeflow.org/mpi-operator")
    {
        remove_unused(
            nested,
            "managedBy",
            "spec.runPolicy",
            "this operator runs the job",
            log,
        );
    }
}
