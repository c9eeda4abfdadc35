//! Decides the next step of a pod's containers from their states (pure).

use tokio::time::Instant;

use super::container::{ContainerRecord, ContainerType, RunState, Start};
use super::restart::{OwnRestart, RestartPolicy};

/// Returns true if a container that ended starts again in place.
pub(super) fn should_restart(
    of_pod: RestartPolicy,
    own: Option<&OwnRestart>,
    type_: ContainerType,
    exit_code: i32,
) -> bool {
    match (type_, own.map_or(of_pod, |own| own.policy)) {
        _ if own.is_some_and(|own| own.has_rule(exit_code)) => true,
        (ContainerType::Sidecar, _) => true,
        (_, RestartPolicy::Never) => false,
        (ContainerType::Main, RestartPolicy::Always) => true,
        (ContainerType::Init, RestartPolicy::Always) | (_, RestartPolicy::OnFailure) => exit_code != 0,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FinalPhase {
    Succeeded,
    Failed,
}

/// The next actions of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// The containers to start, by index.
    pub(super) start: Vec<usize>,
    /// The sidecars to end, because the other containers have ended.
    pub(super) stop: Vec<usize>,
    /// The time of the next step, if nothing happens before.
    pub(super) wake: Option<Instant>,
    /// Set when nothing runs any more and nothing will.
    pub(super) final_phase: Option<FinalPhase>,
}

/// Decides the next step. With `stopping`, no container is started.
pub(super) fn next_step(containers: &[ContainerRecord], stopping: bool, now: Instant) -> Step {
    let mut step = Step::default();
    let done = |container: &ContainerRecord| matches!(container.state, RunState::Terminated(_));
    let succeeded =
        |container: &ContainerRecord| matches!(&container.state, RunState::Terminated(e) if e.exit_code == 0);
    let init_failed = containers
        .iter()
        .any(|c| c.type_ == ContainerType::Init && done(c) && !succeeded(c));
    let mains_done = containers
        .iter()
        .filter(|c| c.type_ == ContainerType::Main)
        .all(done);

    if stopping || init_failed || mains_done {
        let running = containers
            .iter()
            .enumerate()
            .filter(|(_, container)| container.is_running());
        if !stopping {
            step.stop = running.clone().map(|(at, _)| at).collect();
        }
        if running.count() == 0 {
            let good = containers
                .iter()
                .filter(|c| c.type_ == ContainerType::Main)
                .all(succeeded);
            step.final_phase = Some(if good && !init_failed {
                FinalPhase::Succeeded
            } else {
                FinalPhase::Failed
            });
        }
        return step;
    }

    for (at, container) in containers.iter().enumerate() {
        if let RunState::Waiting { start, .. } = container.state {
            match start {
                Start::Now => step.start.push(at),
                Start::At(due) if due <= now => step.start.push(at),
                Start::At(due) => step.wake = Some(step.wake.map_or(due, |wake| wake.min(due))),
                Start::Never => {}
            }
        }
        let passed = match container.type_ {
            ContainerType::Init => succeeded(container),
            // A sidecar that started once does not block the others when it crashes.
            ContainerType::Sidecar => container.is_running() || container.last.is_some(),
            ContainerType::Main => true,
        };
        if !passed {
            break;
        }
    }
    step
}

/// Returns true if all init containers have done their part.
pub(super) fn initialized(containers: &[ContainerRecord]) -> bool {
    containers.iter().all(|container| match container.type_ {
        ContainerType::Init => {
            matches!(&container.state, RunState::Terminated(ended) if ended.exit_code == 0)
        }
        ContainerType::Sidecar => {
            !matches!(container.state, RunState::Waiting { .. }) || container.last.is_some()
        }
        ContainerType::Main => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::container::Termination;
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::Container;
    use serde_json::json;

    fn ended(exit_code: i32) -> Termination {
        Termination {
            exit_code,
            signal: None,
            reason: String::new(),
            message: None,
            started: Some(Timestamp::UNIX_EPOCH),
            finished: Timestamp::UNIX_EPOCH,
            pid: Some(1),
        }
    }

    /// Parses containers from words: type letter (i, s, m) and state (w waiting, n never, r running, or an exit
    /// code).
    fn records(words: &str) -> Vec<ContainerRecord> {
        let waiting = |start| RunState::Waiting {
            reason: "x",
            message: None,
            start,
        };
        let record = |word: &str| {
            let type_ = match &word[..1] {
                "i" => ContainerType::Init,
                "s" => ContainerType::Sidecar,
                _ => ContainerType::Main,
            };
            let mut record = ContainerRecord::new(&Container::default(), type_, "x");
            record.state = match &word[1..] {
                "w" => waiting(Start::Now),
                "n" => waiting(Start::Never),
                "r" => RunState::Running {
                    pid: 1,
                    started: Timestamp::UNIX_EPOCH,
                },
                code => RunState::Terminated(ended(code.parse().unwrap())),
            };
            record
        };
        words.split_whitespace().map(record).collect()
    }

    #[test]
    fn the_next_step() {
        type Case<'a> = (&'a str, bool, &'a [usize], &'a [usize], Option<FinalPhase>);
        let cases: &[Case<'_>] = &[
            ("mw mw", false, &[0, 1], &[], None),
            ("iw iw mw", false, &[0], &[], None),
            ("i0 iw mw", false, &[1], &[], None),
            ("ir mw", false, &[], &[], None),
            ("i0 mw", false, &[1], &[], None),
            ("sw iw mw", false, &[0], &[], None),
            ("sr iw mw", false, &[1], &[], None),
            ("i1 mw", false, &[], &[], Some(FinalPhase::Failed)),
            ("sr i1 mw", false, &[], &[0], None),
            ("sr m0", false, &[], &[0], None),
            ("s137 m0", false, &[], &[], Some(FinalPhase::Succeeded)),
            ("m0 mr", false, &[], &[], None),
            ("m0 m0", false, &[], &[], Some(FinalPhase::Succeeded)),
            ("m0 m3", false, &[], &[], Some(FinalPhase::Failed)),
            ("mn mw", false, &[1], &[], None),
            ("mn m0", false, &[], &[], None),
            ("mr mw", true, &[], &[], None),
            ("m143 mw", true, &[], &[], Some(FinalPhase::Failed)),
            ("m0", true, &[], &[], Some(FinalPhase::Succeeded)),
        ];
        for &(words, stopping, start, stop, final_phase) in cases {
            let step = next_step(&records(words), stopping, Instant::now());
            assert_eq!(&*step.start, start, "{words}");
            assert_eq!(&*step.stop, stop, "{words}");
            assert_eq!(step.final_phase, final_phase, "{words}");
        }
    }

    #[test]
    fn containers_restart_by_the_restart_policy_of_their_pod() {
        use {ContainerType::*, RestartPolicy::*};
        for (policy, type_, code, expected) in [
            (Never, Main, 1, false),
            (OnFailure, Main, 0, false),
            (OnFailure, Main, 137, true),
            (Always, Main, 0, true),
            (Always, Init, 0, false),
            (Always, Init, 1, true),
            (Never, Init, 1, false),
            (Never, Sidecar, 0, true),
        ] {
            assert_eq!(
                should_restart(policy, None, type_, code),
                expected,
                "{policy:?} {type_:?} {code}"
            );
        }
        let own = |operator: &str| {
            let rule = json!({"action": "Restart", "exitCodes": {"operator": operator, "values": [42]}});
            let container = json!({"name": "c", "restartPolicy": "Never", "restartPolicyRules": [rule]});
            OwnRestart::of(&serde_json::from_value(container).unwrap()).unwrap()
        };
        for (operator, code, expected) in [
            ("In", 42, true),
            ("In", 1, false),
            ("NotIn", 42, false),
            ("NotIn", 0, true),
        ] {
            assert_eq!(
                should_restart(Always, Some(&own(operator)), Main, code),
                expected,
                "{operator} {code}"
            );
        }
    }

    #[test]
    fn a_restart_waits_for_its_time() {
        let now = Instant::now();
        let due = now + Duration::from_secs(10);
        let mut waiting = records("mw mr");
        waiting[0].state = RunState::Waiting {
            reason: "CrashLoopBackOff",
            message: None,
            start: Start::At(due),
        };
        assert_eq!(
            next_step(&waiting, false, now),
            Step {
                wake: Some(due),
                ..Step::default()
            }
        );
        assert_eq!(next_step(&waiting, false, due).start, [0]);
    }

    #[test]
    fn a_pod_is_initialized_once_init_containers_have_succeeded_and_sidecars_run() {
        assert!(!initialized(&records("i0 sw mw")));
        assert!(initialized(&records("i0 sr mw")));
    }
}
