//! The output of simulated pods. Each prints steps at an interval of its own, until it hangs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use jiff::{SignedDuration, Timestamp};
use kube_memory::{Action, Cluster, Subresource, SubresourceRequest, SubresourceResponse, failure_response};
use parking_lot::Mutex;
use serde_json::Value;

use crate::random::Random;
use crate::world::START_SECOND;
use crate::world::history::History;
use crate::world::pod;

/// The greatest number of lines of a log before it is rotated.
const LINES_OF_A_FILE: u64 = 7;

/// The time from which all nodes answer, in milliseconds. No run has faults afterwards.
const ALL_NODES_ANSWER: u64 = 120_000;

/// The containers that run or have run, by the UIDs of their pods: the time of the start, and the number of restarts.
#[derive(Clone, Default)]
pub(crate) struct Outputs {
    runs: Arc<Mutex<BTreeMap<String, Run>>>,
}

/// A run of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    pod: String,
    attempt: u32,
    restarts: i64,
    /// In milliseconds since the start of the simulation.
    began: u64,
    /// True if an operator has read its log.
    is_read: bool,
}

/// The habits of a container.
struct Printer {
    /// Milliseconds between two lines.
    interval: u64,
    /// Milliseconds after which it hangs.
    hangs_after: u64,
    /// Milliseconds for which it prints other lines after that.
    noise: u64,
    /// Seconds by which the clock of its node is ahead.
    ahead: i64,
    /// Milliseconds after which that clock goes back by an hour.
    goes_back_after: Option<u64>,
}

impl Run {
    fn printer(&self) -> Printer {
        let seed = u64::from(self.attempt) << 8 | self.restarts.cast_unsigned();
        let mut random = Random::about(seed, &self.pod, 27);
        Printer {
            interval: *random.pick(&[1_000, 2_000, 5_000, 9_000, 14_000]),
            hangs_after: 1_000 * random.between(0, 60),
            noise: *random.pick(&[0, 30_000]),
            ahead: random.between(0, 600).cast_signed() - 300,
            goes_back_after: random.chance(200).then(|| 1_000 * random.between(5, 30)),
        }
    }
}

impl Outputs {
    /// Serves the logs of the cluster's pods.
    pub(crate) fn serve(cluster: &Cluster, history: &History) -> Self {
        let outputs = Self::default();
        let (runs, clock) = (outputs.runs.clone(), history.clone());
        cluster.on_change(move |_, change| {
            let object = change.object();
            if change.plural() != "pods"
                || change.action() == Action::Deleted
                || pod::phase(&**object) != "Running"
            {
                return;
            }
            let main = &object["status"]["containerStatuses"][0];
            let run = Run {
                pod: change.name().to_owned(),
                attempt: pod::attempt(&**object),
                restarts: main["restartCount"].as_i64().unwrap_or(0),
                began: clock.now(),
                is_read: false,
            };
            let uid = object.meta("uid").and_then(Value::as_str).unwrap_or_default();
            let mut runs = runs.lock();
            if runs.get(uid).is_none_or(|known| known.restarts != run.restarts) {
                runs.insert(uid.to_owned(), run);
            }
        });
        let (served, clock) = (outputs.clone(), history.clone());
        let log = Subresource::new("pods", "log", "Pod", &["get"], move |request| {
            let answer = served.answer(&request, clock.now());
            async move { answer }
        });
        cluster.serve_subresource(log);
        outputs
    }

    /// Returns for how many milliseconds a pod has printed no step, or with `any` no line.
    pub(crate) fn silent_for(&self, uid: &str, any: bool, now: u64) -> Option<u64> {
        self.runs.lock().get(uid).map(|run| run.silent_for(any, now))
    }

    /// Returns for how many milliseconds all pods whose logs were read have printed nothing. `None` if no log was read.
    pub(crate) fn all_silent_for(&self, now: u64) -> Option<u64> {
        let runs = self.runs.lock();
        let read = runs.values().filter(|run| run.is_read);
        read.map(|run| run.silent_for(true, now)).min()
    }

    fn answer(&self, request: &SubresourceRequest, now: u64) -> SubresourceResponse {
        let uid = request
            .object
            .meta("uid")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let run = self.runs.lock().get_mut(uid).map(|run| {
            run.is_read = true;
            run.clone()
        });
        let Some(run) = run else {
            return failure_response(400, "BadRequest", "the container is waiting to start");
        };
        // Now and then a node does not answer.
        if now < ALL_NODES_ANSWER && Random::about(now / 20_000, &run.pod, 28).chance(100) {
            return failure_response(500, "InternalError", "dial tcp: no route to host");
        }
        let query = request.parts.uri.query().unwrap_or_default();
        let since = query.split('&').find_map(|pair| pair.strip_prefix("sinceTime="));
        let since = since.and_then(|time| time.replace("%3A", ":").parse::<Timestamp>().ok());
        let text: String = run
            .lines(now)
            .filter(|(time, _)| since.is_none_or(|since| *time >= since))
            .map(|(time, text)| format!("{time:.9} {text}\n"))
            .collect();
        Response::new(Full::new(Bytes::from(text)).boxed_unsync())
    }
}

impl Run {
    fn silent_for(&self, any: bool, now: u64) -> u64 {
        let printer = self.printer();
        let until = printer.hangs_after + if any { printer.noise } else { 0 };
        let printing = (now - self.began).min(until);
        now - (self.began + printing / printer.interval * printer.interval)
    }

    /// Returns the lines in the present file of the log, with their times by the clock of the node.
    fn lines(&self, now: u64) -> impl Iterator<Item = (Timestamp, String)> {
        let printer = self.printer();
        let printed = (now - self.began).min(printer.hangs_after + printer.noise) / printer.interval;
        let first = printed / LINES_OF_A_FILE * LINES_OF_A_FILE;
        (first..=printed).map(move |n| {
            let after = n * printer.interval;
            let hour = if printer.goes_back_after.is_some_and(|at| after >= at) {
                3_600
            } else {
                0
            };
            let start = Timestamp::from_second(START_SECOND).unwrap_or_default();
            let at = start
                + SignedDuration::from_millis((self.began + after).cast_signed())
                + SignedDuration::from_secs(printer.ahead - hour);
            let text = match after <= printer.hangs_after {
                true => format!("step {n}"),
                false => "waiting".to_owned(),
            };
            (at, text)
        })
    }
}
