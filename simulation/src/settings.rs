//! What may go wrong in a run: each seed turns some of it on, and much of that.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::call::Call;
use crate::fault::{Fault, Site};
use crate::invariants::Patience;
use crate::kubelet::Fate;
use crate::random::Random;
use crate::stream::Lag;
use crate::users::Habit;

/// Changes whenever a seed means another run than before. Seeds of earlier versions can still be run.
pub const VERSION: u32 = 3;

/// What may go wrong in a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The seed it all comes from.
    pub seed: u64,
    /// How many jobs there are.
    pub jobs: u64,
    /// Whether there are jobs of all kinds.
    pub all_kinds: bool,
    /// For how many seconds users act and faults happen.
    pub span: u64,
    /// Of a thousand calls so many meet one of `faults`.
    pub fault_rate: u64,
    /// What they meet.
    pub faults: Vec<Fault>,
    /// Of a thousand calls so many are slow.
    pub slow_rate: u64,
    /// At how many of a thousand calls the operator dies.
    pub deaths: u64,
    /// How watches lag.
    pub lag: Option<Lag>,
    /// Of a thousand pods so many meet with trouble.
    pub troubles: u64,
    /// What users do.
    pub habits: Vec<Habit>,
    /// How many things they do.
    pub deeds: u64,
    /// Whether a second operator runs beside the first.
    pub two_leaders: bool,
    /// How many jobs an operator works on at once.
    pub concurrency: usize,
}

/// What a call may meet.
static FAULTS: [Fault; 24] = [
    Fault::Refused(401, "Unauthorized"),
    Fault::Refused(403, "Forbidden"),
    Fault::Refused(404, "NotFound"),
    Fault::Refused(409, "Conflict"),
    Fault::Refused(413, "RequestEntityTooLarge"),
    Fault::Refused(422, "Invalid"),
    Fault::Refused(500, "InternalError"),
    Fault::Refused(502, "BadGateway"),
    Fault::Refused(503, "ServiceUnavailable"),
    Fault::Refused(504, "Timeout"),
    Fault::Throttled("2"),
    Fault::Throttled("soon"),
    Fault::Garbled(409, "Conflict"),
    Fault::Garbled(500, "InternalError"),
    Fault::Garbled(504, "Timeout"),
    Fault::Reset,
    Fault::ResetAfter,
    Fault::Lost,
    Fault::Unanswered,
    Fault::Late(35_000),
    Fault::Truncated,
    Fault::Nonsense,
    Fault::Status,
    Fault::Gone,
];

impl Settings {
    /// The settings of a seed.
    pub fn of(seed: u64) -> Self {
        Self::of_version(seed, VERSION)
    }

    /// The settings that a seed meant in a version.
    pub fn of_version(seed: u64, version: u32) -> Self {
        let mut random = Random::about(seed, "settings", u64::from(version));
        let calm = random.chance(100);
        let mut faults: Vec<Fault> = FAULTS.iter().filter(|_| random.chance(300)).cloned().collect();
        if random.chance(60) {
            faults.push(Fault::Stale(random.between(1, 40)));
        }
        let habits = Habit::of_version(version).iter().copied();
        let habits: Vec<Habit> = habits.filter(|_| random.chance(350)).collect();
        let deeds = if habits.is_empty() {
            0
        } else {
            *random.pick(&[0, 2, 4, 8, 16])
        };
        let lag = random.chance(350).then(|| Lag {
            seed,
            most: *random.pick(&[20, 500, 5_000, 30_000]),
            twice: *random.pick(&[0, 100]),
        });
        Self {
            seed,
            jobs: random.between(1, 3),
            all_kinds: random.chance(250),
            span: *random.pick(&[30, 60, 120]),
            fault_rate: if calm {
                0
            } else {
                *random.pick(&[0, 10, 50, 150, 300])
            },
            faults,
            slow_rate: if calm { 0 } else { *random.pick(&[0, 0, 100, 500]) },
            deaths: if calm { 0 } else { *random.pick(&[0, 0, 10, 50]) },
            lag: lag.filter(|_| !calm),
            troubles: *random.pick(&[0, 100, 300]),
            habits,
            deeds,
            two_leaders: random.chance(100) && !calm,
            concurrency: *random.pick(&[1, 2, 16]),
        }
    }

    /// Settings under which nothing goes wrong.
    pub fn calm() -> Self {
        Self {
            seed: 0,
            jobs: 0,
            all_kinds: false,
            span: 0,
            fault_rate: 0,
            faults: Vec::new(),
            slow_rate: 0,
            deaths: 0,
            lag: None,
            troubles: 0,
            habits: Vec::new(),
            deeds: 0,
            two_leaders: false,
            concurrency: 16,
        }
    }

    /// What a call may meet.
    pub fn all_faults() -> &'static [Fault] {
        &FAULTS
    }

    /// How old what operators act on may be.
    pub fn patience(&self) -> Patience {
        let stale = self.faults.iter().any(|f| matches!(f, Fault::Stale(_)));
        let behind = self.lag.as_ref().map_or(0, |lag| lag.most);
        let befalls = |some: &[Habit]| self.habits.iter().any(|h| some.contains(h));
        let good_network =
            (self.fault_rate == 0 || self.faults.is_empty()) && self.slow_rate == 0 && self.lag.is_none();
        let others = if good_network && !befalls(&[Habit::Freeze, Habit::Restore]) {
            // A watch that ends as it begins waits up to 40 s for its next try.
            let watches = if befalls(&[Habit::Cut, Habit::Compact]) {
                60_000
            } else {
                0
            };
            2_000 + watches
        } else {
            // A pass makes up to three rounds of calls, each with its time-out; a watch that is silent is
            // given up after some two minutes.
            3 * 31_000 + 170_000 + behind
        };
        let late = self.faults.iter().any(|f| matches!(f, Fault::Late(_)));
        let restored = self.habits.contains(&Habit::Restore);
        let doubtful = self.two_leaders || stale || late || restored;
        Patience {
            others,
            own: if doubtful { others } else { 0 },
        }
    }

    /// What the pod of this name does, the `number`-th of this name. After some nothing troubles it.
    pub fn fate(&self, name: &str, number: u64) -> Fate {
        let mut random = Random::about(self.seed, name, number);
        let decides = ["scheduler", "master", "chief", "tuner-"]
            .iter()
            .any(|r| name.contains(r));
        let seconds = if random.chance(100) {
            8
        } else {
            random.between(1, 40)
        };
        if random.chance(self.troubles) && number < 3 {
            let code = *random.pick(&[1, 2, 126, 127, 128, 130, 137, 138, 139, 143, 255]);
            return match random.below(11) {
                0..=2 => Fate::Fails(code, seconds),
                3 => Fate::Evicted(seconds),
                4 => Fate::Preempted(seconds),
                5 => Fate::NodeLost(seconds, random.between(1, 90)),
                6 => Fate::RestartsInPlace(code, seconds, random.between(1, 30)),
                7 => Fate::AtOnce,
                8 => Fate::Flickers(seconds),
                9 => Fate::SidecarFails(seconds),
                _ => Fate::Pends,
            };
        }
        match random.below(10) {
            0..=2 if !decides => Fate::Runs,
            0 => Fate::Runs,
            _ => Fate::Succeeds(seconds + 3 * u64::from(decides)),
        }
    }

    /// A script of these fates.
    pub fn script(&self) -> crate::kubelet::Script {
        let settings = self.clone();
        let counts = Mutex::new(BTreeMap::<String, u64>::new());
        Box::new(move |name, _| {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry(name.to_owned()).or_default();
            *count += 1;
            settings.fate(name, *count - 1)
        })
    }
}

/// Draws faults for calls, each from the seed and its own place alone: taking one away leaves the others.
pub struct Drawn {
    settings: Settings,
    counts: BTreeMap<String, u64>,
}

impl Drawn {
    /// The faults of these settings.
    pub fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            counts: BTreeMap::new(),
        }
    }

    /// What becomes of the next call, and where that was.
    pub fn next(&mut self, call: &Call) -> (Site, Option<Fault>) {
        let site = next_site(&mut self.counts, call);
        let settings = &self.settings;
        let mut random = Random::about(settings.seed, &site.calls, site.number);
        let fault = if random.chance(settings.deaths) {
            let death = [Fault::DiesBefore, Fault::DiesAfter];
            Some(random.pick(&death).clone())
        } else if !settings.faults.is_empty() && random.chance(settings.fault_rate) {
            Some(random.pick(&settings.faults).clone())
        } else if random.chance(settings.slow_rate) {
            let most = *random.pick(&[2, 50, 1_000, 10_000]);
            Some(Fault::Slow(random.between(0, most), random.between(0, most)))
        } else {
            None
        };
        let fault = fault.filter(|fault| suits(fault, &site.calls));
        (site, fault)
    }
}

/// The place of the next call of its kind.
pub fn next_site(counts: &mut BTreeMap<String, u64>, call: &Call) -> Site {
    let calls = call.kind();
    let count = counts.entry(calls.clone()).or_default();
    *count += 1;
    Site {
        number: *count - 1,
        calls,
    }
}

/// Whether a call, such as `create pods`, can meet this fault.
pub fn suits(fault: &Fault, calls: &str) -> bool {
    let verb = calls.split(' ').next().unwrap_or_default();
    match fault {
        Fault::Gone => verb == "watch",
        Fault::Stale(_) => verb == "list",
        Fault::Late(_) => !matches!(verb, "list" | "watch" | "get"),
        // A job refused for its fields is not written again until it is edited, as it should be.
        Fault::Refused(422, _) => !calls.ends_with("/status"),
        _ => true,
    }
}
