//! Faults of pods and their nodes. [`kubelet`](crate::world::kubelet) simulates them.

use training_job_testbed::step_job::{AGAIN, LOST_CONTROLLER};

use crate::random::Random;

/// The fate of a pod once it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodFate {
    /// The pod runs until it is deleted.
    Runs,
    /// The pod succeeds after this many seconds.
    Succeeds(u64),
    /// The pod succeeds the second number of seconds after so many pods of its job run, like a process that waits for the
    /// others.
    SucceedsWith(usize, u64),
    /// The pod exits with this code after this many seconds.
    Fails(i32, u64),
    /// The pod never starts.
    Pends,
    /// The pod is evicted after this many seconds: it fails, without a status of its containers.
    Evicted(u64),
    /// The pod is preempted after this many seconds: it gets a condition, exits with 143 and is deleted.
    Preempted(u64),
    /// The pod's node is lost after the first number of seconds: the pod is deleted. It is removed the second number
    /// of seconds later.
    NodeLost(u64, u64),
    /// The pod's container exits with this code after the first number of seconds, and the kubelet restarts it. The
    /// pod succeeds the second number of seconds later.
    RestartsInPlace(i32, u64, u64),
    /// The pod succeeds before its running phase is observed.
    AtOnce,
    /// The pod is reported as running, pending, and running again before it succeeds after this many seconds.
    Flickers(u64),
    /// The pod's main container succeeds after this many seconds, and another container exits with 1.
    SidecarFails(u64),
    /// The pod runs until it is deleted, and its container ends then. It either ends before the pod is gone, with its
    /// own exit code, or exits with 0 just before the deletion, which is reported afterwards.
    EndsWhenDeleted(LastEnd),
    /// The pod is the target of a disruption after this many seconds and is deleted. Its container then exits with
    /// this code.
    Drained(i32, u64),
    /// The pod is the target of a disruption after this many seconds, and its container exits with this code. The pod
    /// is not deleted.
    ShutDown(i32, u64),
    /// A sidecar container is restarted twice after this many seconds. The pod succeeds as many seconds later.
    SidecarRestarts(u64),
    /// The pod's main container exits with this code after this many seconds, and another container keeps running.
    SidecarStays(i32, u64),
    /// The pod's main container exits with this code after the first number of seconds, and another container finishes
    /// its work the second number of seconds later.
    SidecarWorks(i32, u64, u64),
    /// An init container fails the first number of times, and is restarted each time. The pod succeeds after the
    /// second number of seconds.
    InitFails(u64, u64),
}

/// The end of the container of a pod that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastEnd {
    /// The container exits with this code, a second after the deletion was requested.
    After(i32),
    /// The container exits with 0, a second before the deletion was requested.
    Before,
}

impl PodFate {
    /// Draws the fate of the `number`-th pod (from 0) of this name. `fault_rate` is the number of pods with a fault,
    /// per thousand. The fourth and later pods of a name have none. `version` is the seed version.
    pub fn draw(seed: u64, version: u32, name: &str, number: u64, fault_rate: u64) -> Self {
        let mut random = Random::about(seed, name, number);
        let decides_outcome = ["scheduler", "master", "chief", "tuner-", "launcher", "step-"]
            .iter()
            .any(|role| name.contains(role));
        let seconds = if random.chance(100) {
            8
        } else {
            random.between(1, 40)
        };
        if random.chance(fault_rate) && number < 3 {
            let code = match name.contains("step-") {
                // The kind answers two of them itself.
                true => *random.pick(&[AGAIN, AGAIN, LOST_CONTROLLER, LOST_CONTROLLER, 1, 137]),
                false => *random.pick(&[1, 2, 126, 127, 128, 130, 137, 138, 139, 143, 255]),
            };
            let (fates, last) = match version {
                ..8 => (11, 0),
                8..10 => (18, *random.pick(&[0, 0, 1, 137, 143, code])),
                _ => (19, *random.pick(&[0, 0, 1, 137, 143, code])),
            };
            return match random.below(fates) {
                0..=2 => Self::Fails(code, seconds),
                3 => Self::Evicted(seconds),
                4 => Self::Preempted(seconds),
                5 => Self::NodeLost(seconds, random.between(1, 90)),
                6 => Self::RestartsInPlace(code, seconds, random.between(1, 30)),
                7 => Self::AtOnce,
                8 => Self::Flickers(seconds),
                9 => Self::SidecarFails(seconds),
                10 => Self::Pends,
                11 if last == 137 => Self::EndsWhenDeleted(LastEnd::Before),
                11 | 12 => Self::EndsWhenDeleted(LastEnd::After(last)),
                13 => Self::Drained(last, seconds),
                14 => Self::ShutDown(last, seconds),
                15 => Self::SidecarRestarts(seconds),
                16 => Self::SidecarStays(last, seconds),
                17 => Self::InitFails(random.between(1, 6), seconds),
                _ => Self::SidecarWorks(last, seconds, random.between(1, 500)),
            };
        }
        // Daemons of StepJobs, which are replaced when they end.
        let is_daemon = ["-database-", "-controller-", "-nodes-"]
            .iter()
            .any(|role| name.contains(role));
        match random.below(10) {
            _ if is_daemon => Self::Runs,
            0..=2 if !decides_outcome => Self::Runs,
            0 => Self::Runs,
            _ => Self::Succeeds(seconds + 3 * u64::from(decides_outcome)),
        }
    }
}
