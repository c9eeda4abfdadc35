//! What the containers of a pod do next, decided from their states (pure).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::time::Instant;

use super::config::RestartBackoff;

/// A container that has run this long without a restart starts its back-off anew.
const BACKOFF_RESET: Duration = Duration::from_secs(600);

/// A pod's `restartPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

impl RestartPolicy {
    pub(super) fn of(pod: &Pod) -> Self {
        match pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()) {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Runs to its end before the next one starts.
    Init,
    /// An init container with `restartPolicy: Always`: runs beside the others and ends after them.
    Sidecar,
    Main,
}

/// When a waiting container may start, its turn permitting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Now,
    At(Instant),
    /// Not as this pod is written.
    Never,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) exit_code: i32,
    pub(super) signal: Option<i32>,
    pub(super) reason: String,
    pub(super) message: Option<String>,
    pub(super) started: Option<Timestamp>,
    pub(super) finished: Timestamp,
    pub(super) pid: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Waiting {
        reason: &'static str,
        message: Option<String>,
        start: Start,
    },
    Running {
        pid: u32,
        started: Timestamp,
    },
    Ended(Ended),
}

/// One container of a pod.
#[derive(Clone, Debug)]
pub(super) struct ContainerRecord {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) kind: Kind,
    pub(super) state: State,
    pub(super) last: Option<Ended>,
    pub(super) restarts: i32,
    /// Restarts since it last ran well: the back-off's exponent.
    streak: u32,
}

impl ContainerRecord {
    fn new(container: &Container, kind: Kind, reason: &'static str) -> Self {
        Self {
            name: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
            kind,
            state: State::Waiting {
                reason,
                message: None,
                start: Start::Now,
            },
            last: None,
            restarts: 0,
            streak: 0,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    pub(super) fn started(&mut self, pid: u32, now: Timestamp) {
        self.restarts += i32::from(self.last.is_some());
        self.state = State::Running { pid, started: now };
    }

    /// Takes the end of a run in: for good, or waiting for the next.
    pub(super) fn ended(
        &mut self,
        ended: Ended,
        restart: bool,
        pod: &str,
        backoff: &RestartBackoff,
        now: Instant,
    ) {
        if matches!(self.state, State::Waiting { .. }) {
            // It never became a process; the attempt counts all the same.
            self.restarts += i32::from(self.last.is_some());
        }
        if !restart {
            self.state = State::Ended(ended);
            return;
        }
        let ran = ended
            .started
            .and_then(|started| Duration::try_from(ended.finished.duration_since(started)).ok());
        if ran.is_some_and(|ran| ran >= BACKOFF_RESET) {
            self.streak = 0;
        }
        let delay = backoff.delay(self.streak);
        self.streak += 1;
        let message = format!(
            "back-off {}s restarting failed container={} pod={pod}",
            delay.as_secs(),
            self.name
        );
        self.state = State::Waiting {
            reason: "CrashLoopBackOff",
            message: Some(message),
            start: if delay.is_zero() {
                Start::Now
            } else {
                Start::At(now + delay)
            },
        };
        self.last = Some(ended);
    }
}

/// All containers of a pod, init containers first, none started.
pub(super) fn containers(pod: &Pod) -> Vec<ContainerRecord> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let init = spec.init_containers.iter().flatten().map(|container| {
        let sidecar = container.restart_policy.as_deref() == Some("Always");
        ContainerRecord::new(
            container,
            if sidecar { Kind::Sidecar } else { Kind::Init },
            "PodInitializing",
        )
    });
    let waiting = if spec.init_containers.iter().flatten().next().is_some() {
        "PodInitializing"
    } else {
        "ContainerCreating"
    };
    let main = spec
        .containers
        .iter()
        .map(|container| ContainerRecord::new(container, Kind::Main, waiting));
    init.chain(main).collect()
}

/// Whether a container that ended starts again in place.
pub(super) fn restarts(policy: RestartPolicy, kind: Kind, exit_code: i32) -> bool {
    match (kind, policy) {
        (Kind::Sidecar, _) => true,
        (_, RestartPolicy::Never) => false,
        (Kind::Main, RestartPolicy::Always) => true,
        (Kind::Init, RestartPolicy::Always) | (_, RestartPolicy::OnFailure) => exit_code != 0,
    }
}

/// The pod's final phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Succeeded,
    Failed,
}

/// What is to be done now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// The containers to start, by position.
    pub(super) start: Vec<usize>,
    /// The sidecars to end because the others have.
    pub(super) stop: Vec<usize>,
    /// When to look again, if nothing happens before.
    pub(super) wake: Option<Instant>,
    /// Set when nothing runs any more and nothing will.
    pub(super) outcome: Option<Outcome>,
}

/// Decides the next step. With `stopping` nothing is started any more.
pub(super) fn step(containers: &[ContainerRecord], stopping: bool, now: Instant) -> Step {
    let mut step = Step::default();
    let done = |container: &ContainerRecord| matches!(container.state, State::Ended(_));
    let succeeded =
        |container: &ContainerRecord| matches!(&container.state, State::Ended(e) if e.exit_code == 0);
    let init_failed = containers
        .iter()
        .any(|c| c.kind == Kind::Init && done(c) && !succeeded(c));
    let mains_done = containers.iter().filter(|c| c.kind == Kind::Main).all(done);

    if stopping || init_failed || mains_done {
        let running = containers
            .iter()
            .enumerate()
            .filter(|(_, container)| container.is_running());
        if !stopping {
            step.stop = running.clone().map(|(at, _)| at).collect();
        }
        if running.count() == 0 {
            let good = containers.iter().filter(|c| c.kind == Kind::Main).all(succeeded);
            step.outcome = Some(if good && !init_failed {
                Outcome::Succeeded
            } else {
                Outcome::Failed
            });
        }
        return step;
    }

    for (at, container) in containers.iter().enumerate() {
        if let State::Waiting { start, .. } = container.state {
            match start {
                Start::Now => step.start.push(at),
                Start::At(due) if due <= now => step.start.push(at),
                Start::At(due) => step.wake = Some(step.wake.map_or(due, |wake| wake.min(due))),
                Start::Never => {}
            }
        }
        let passed = match container.kind {
            Kind::Init => succeeded(container),
            // One that came up once does not hold up the rest when it crashes.
            Kind::Sidecar => container.is_running() || container.last.is_some(),
            Kind::Main => true,
        };
        if !passed {
            break;
        }
    }
    step
}

/// Whether all init containers have done their part.
pub(super) fn initialized(containers: &[ContainerRecord]) -> bool {
    containers.iter().all(|container| match container.kind {
        Kind::Init => matches!(&container.state, State::Ended(ended) if ended.exit_code == 0),
        Kind::Sidecar => !matches!(container.state, State::Waiting { .. }) || container.last.is_some(),
        Kind::Main => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ended(exit_code: i32) -> Ended {
        Ended {
            exit_code,
            signal: None,
            reason: String::new(),
            message: None,
            started: Some(Timestamp::UNIX_EPOCH),
            finished: Timestamp::UNIX_EPOCH,
            pid: Some(1),
        }
    }

    /// Containers from words: kind letter (i, s, m) and state (w waiting, n never, r running, or an exit code).
    fn records(words: &str) -> Vec<ContainerRecord> {
        let waiting = |start| State::Waiting {
            reason: "x",
            message: None,
            start,
        };
        let record = |word: &str| {
            let kind = match &word[..1] {
                "i" => Kind::Init,
                "s" => Kind::Sidecar,
                _ => Kind::Main,
            };
            let mut record = ContainerRecord::new(&Container::default(), kind, "x");
            record.state = match &word[1..] {
                "w" => waiting(Start::Now),
                "n" => waiting(Start::Never),
                "r" => State::Running {
                    pid: 1,
                    started: Timestamp::UNIX_EPOCH,
                },
                code => State::Ended(ended(code.parse().unwrap())),
            };
            record
        };
        words.split_whitespace().map(record).collect()
    }

    #[test]
    fn the_next_step() {
        type Case<'a> = (&'a str, bool, &'a [usize], &'a [usize], Option<Outcome>);
        let cases: &[Case<'_>] = &[
            ("mw mw", false, &[0, 1], &[], None),
            ("iw iw mw", false, &[0], &[], None),
            ("i0 iw mw", false, &[1], &[], None),
            ("ir mw", false, &[], &[], None),
            ("i0 mw", false, &[1], &[], None),
            ("sw iw mw", false, &[0], &[], None),
            ("sr iw mw", false, &[1], &[], None),
            ("i1 mw", false, &[], &[], Some(Outcome::Failed)),
            ("sr i1 mw", false, &[], &[0], None),
            ("sr m0", false, &[], &[0], None),
            ("s137 m0", false, &[], &[], Some(Outcome::Succeeded)),
            ("m0 mr", false, &[], &[], None),
            ("m0 m0", false, &[], &[], Some(Outcome::Succeeded)),
            ("m0 m3", false, &[], &[], Some(Outcome::Failed)),
            ("mn mw", false, &[1], &[], None),
            ("mn m0", false, &[], &[], None),
            ("mr mw", true, &[], &[], None),
            ("m143 mw", true, &[], &[], Some(Outcome::Failed)),
            ("m0", true, &[], &[], Some(Outcome::Succeeded)),
        ];
        for &(words, stopping, start, stop, outcome) in cases {
            let step = step(&records(words), stopping, Instant::now());
            assert_eq!(
                (&*step.start, &*step.stop, step.outcome),
                (start, stop, outcome),
                "{words}"
            );
        }
    }

    #[test]
    fn who_is_restarted() {
        use {Kind::*, RestartPolicy::*};
        for (policy, kind, code, expected) in [
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
                restarts(policy, kind, code),
                expected,
                "{policy:?} {kind:?} {code}"
            );
        }
    }

    #[test]
    fn restarts_are_counted_and_back_off() {
        let now = Instant::now();
        let mut record = records("mw").remove(0);
        let mut delays = Vec::new();
        for round in 0..8 {
            record.started(7, Timestamp::UNIX_EPOCH);
            assert_eq!(record.restarts, round);
            record.ended(ended(1), true, "pod", &RestartBackoff::default(), now);
            delays.push(match record.state {
                State::Waiting {
                    reason: "CrashLoopBackOff",
                    start: Start::Now,
                    ..
                } => 0,
                State::Waiting {
                    start: Start::At(due),
                    ..
                } => (due - now).as_secs(),
                _ => panic!("not waiting"),
            });
        }
        assert_eq!(delays, [0, 10, 20, 40, 80, 160, 300, 300]);
        let mut long = ended(1);
        long.finished = Timestamp::UNIX_EPOCH + Duration::from_secs(600);
        record.ended(long, true, "pod", &RestartBackoff::default(), now);
        assert!(matches!(
            record.state,
            State::Waiting {
                start: Start::Now,
                ..
            }
        ));
        assert_eq!(step(&[record], false, now).start, [0]);
    }

    #[test]
    fn a_restart_waits_for_its_time() {
        let now = Instant::now();
        let due = now + Duration::from_secs(10);
        let mut waiting = records("mw mr");
        waiting[0].state = State::Waiting {
            reason: "CrashLoopBackOff",
            message: None,
            start: Start::At(due),
        };
        assert_eq!(
            step(&waiting, false, now),
            Step {
                wake: Some(due),
                ..Step::default()
            }
        );
        assert_eq!(step(&waiting, false, due).start, [0]);
    }

    #[test]
    fn containers_of_a_pod() {
        let pod: Pod = serde_json::from_value(json!({"spec": {
            "initContainers": [{"name": "a", "image": "i"}, {"name": "b", "restartPolicy": "Always"}],
            "containers": [{"name": "c"}],
        }}))
        .unwrap();
        let kinds: Vec<_> = containers(&pod)
            .into_iter()
            .map(|record| (record.name, record.kind))
            .collect();
        assert_eq!(
            kinds,
            [
                ("a".into(), Kind::Init),
                ("b".into(), Kind::Sidecar),
                ("c".into(), Kind::Main)
            ]
        );
        assert!(!initialized(&records("i0 sw mw")));
        assert!(initialized(&records("i0 sr mw")));
    }
}
