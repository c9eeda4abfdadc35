//! Faults of pods and their nodes. [`kubelet`](crate::kubelet) plays them.

use crate::random::Random;

/// What becomes of a pod once it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodFate {
    /// It runs until it is deleted.
    Runs,
    /// It succeeds after so many seconds.
    Succeeds(u64),
    /// It exits with this code after so many seconds.
    Fails(i32, u64),
    /// It never starts.
    Pends,
    /// It is evicted after so many seconds: failed, with no status of its containers.
    Evicted(u64),
    /// It is preempted after so many seconds: it gets a condition, exits with 143 and is deleted.
    Preempted(u64),
    /// Its node is lost after so many seconds: it is deleted, and removed so many seconds later.
    NodeLost(u64, u64),
    /// After so many seconds its container exits with this code and the kubelet restarts it; it succeeds so many
    /// seconds later.
    RestartsInPlace(i32, u64, u64),
    /// It has succeeded before anybody saw it run.
    AtOnce,
    /// It is seen running, pending, and running again before it succeeds after so many seconds.
    Flickers(u64),
    /// Its main container succeeds after so many seconds, and another one exits with 1.
    SidecarFails(u64),
}

impl PodFate {
    /// The fate of the `number`-th pod (from 0) of this name. So many of a thousand pods have a fault; from the
    /// fourth pod of a name on, none has.
    pub fn draw(seed: u64, name: &str, number: u64, fault_rate: u64) -> Self {
        let mut random = Random::about(seed, name, number);
        let decides_outcome = ["scheduler", "master", "chief", "tuner-", "launcher"]
            .iter()
            .any(|role| name.contains(role));
        let seconds = if random.chance(100) {
            8
        } else {
            random.between(1, 40)
        };
        if random.chance(fault_rate) && number < 3 {
            let code = *random.pick(&[1, 2, 126, 127, 128, 130, 137, 138, 139, 143, 255]);
            return match random.below(11) {
                0..=2 => Self::Fails(code, seconds),
                3 => Self::Evicted(seconds),
                4 => Self::Preempted(seconds),
                5 => Self::NodeLost(seconds, random.between(1, 90)),
                6 => Self::RestartsInPlace(code, seconds, random.between(1, 30)),
                7 => Self::AtOnce,
                8 => Self::Flickers(seconds),
                9 => Self::SidecarFails(seconds),
                _ => Self::Pends,
            };
        }
        match random.below(10) {
            0..=2 if !decides_outcome => Self::Runs,
            0 => Self::Runs,
            _ => Self::Succeeds(seconds + 3 * u64::from(decides_outcome)),
        }
    }
}
