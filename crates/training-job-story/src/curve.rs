//! Metrics in lines of logs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use training_job::output::{STEP_WORDS, pairs, rounded};

use crate::text::line;

/// Annotation of a job with the metrics to draw, such as `loss, accuracy`. The word before the step may be named as well:
/// `step=update; loss, accuracy`.
pub const CURVES: &str = "training.kubeflow.org/curves";

/// The digits of a point, which are more than a chart shows.
const DIGITS: usize = 7;

/// The maximum number of metrics of a replica.
const MAX_METRICS: usize = 6;

/// The maximum number of points of a curve. A curve with more points keeps every second one.
const MAX_POINTS: usize = 256;

/// The maximum length of a line with metrics, in bytes.
const MAX_LINE_BYTES: usize = 2_000;

/// The values of a metric that a replica printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Curve {
    /// Metric, such as `loss`.
    pub metric: String,
    /// Replica, such as `worker-0`.
    pub replica: String,
    /// Word before the step, such as `epoch`.
    pub step_name: String,
    /// Steps and values, in the order of the log. The step decreases where a replica began again.
    pub points: Vec<(f64, f64)>,
}

/// The lines that contain metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pattern {
    step: Option<String>,
    metrics: Vec<String>,
}

impl Pattern {
    /// Reads the annotation [`CURVES`].
    pub(crate) fn of_annotation(text: &str) -> Self {
        let (step, metrics) = match text.split_once(';') {
            Some((step, metrics)) => (step.trim().strip_prefix("step="), metrics),
            None => (None, text),
        };
        let metrics = metrics
            .split(',')
            .map(str::trim)
            .filter(|metric| !metric.is_empty());
        Self {
            step: step
                .map(|word| word.trim().to_lowercase())
                .filter(|word| !word.is_empty()),
            metrics: metrics.map(str::to_owned).collect(),
        }
    }

    /// Returns the step and the metrics of a line, if it contains both.
    pub(crate) fn read<'a>(&self, text: &'a str) -> Option<Metrics<'a>> {
        if text.len() > MAX_LINE_BYTES {
            return None;
        }
        let pairs = pairs(text);
        let is_step = |word: &str| {
            let word = word.to_lowercase();
            match &self.step {
                Some(step) => word == *step,
                None => STEP_WORDS.contains(&word.as_str()),
            }
        };
        let is_known_step = |word: &str| is_step(word) || STEP_WORDS.contains(&word.to_lowercase().as_str());
        let is_wanted =
            |word: &str| self.metrics.is_empty() || self.metrics.iter().any(|metric| metric == word);
        // With `epoch 2 step 30`, the finer one counts, unless the steps begin again with each epoch.
        let steps: Vec<_> = pairs.iter().filter(|pair| is_step(pair.word)).collect();
        let step = steps.iter().find(|pair| !pair.word.eq_ignore_ascii_case("epoch"));
        let step = step.or(steps.first())?;
        let metrics = pairs
            .iter()
            .filter(|pair| pair.is_assigned && !is_known_step(pair.word) && is_wanted(pair.word));
        let metrics: Vec<_> = metrics.map(|pair| (pair.word, pair.number)).collect();
        (!metrics.is_empty()).then_some(Metrics {
            step_name: step.word,
            step: step.number,
            metrics,
        })
    }
}

/// The metrics of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metrics<'a> {
    /// The word before the step.
    step_name: &'a str,
    step: f64,
    metrics: Vec<(&'a str, f64)>,
}

/// The curves of one replica.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curves {
    metrics: BTreeMap<String, Points>,
}

#[derive(Clone, Debug, Default)]
struct Points {
    step_name: String,
    points: Vec<(f64, f64)>,
    /// The latest point, unless it is in `points`.
    latest: Option<(f64, f64)>,
    /// One of this number of points is kept, as a power of two.
    stride: u32,
    seen: u64,
}

impl Curves {
    pub(crate) fn add(&mut self, pattern: &Pattern, text: &str) {
        let Some(Metrics {
            step_name,
            step,
            metrics,
        }) = pattern.read(text)
        else {
            return;
        };
        for (metric, value) in metrics {
            if self.metrics.len() < MAX_METRICS || self.metrics.contains_key(metric) {
                let points = self.metrics.entry(metric.to_owned()).or_default();
                points.step_name = step_name.to_lowercase();
                points.add((step, value));
            }
        }
    }

    /// Returns the metrics with more than one point.
    pub(crate) fn finish(&self, replica: &str) -> Vec<Curve> {
        let curves = self.metrics.iter().map(|(metric, points)| Curve {
            metric: line(metric),
            replica: replica.to_owned(),
            step_name: line(&points.step_name),
            points: points.points.iter().copied().chain(points.latest).collect(),
        });
        curves.filter(|curve| curve.points.len() > 1).collect()
    }
}

impl Points {
    fn add(&mut self, point: (f64, f64)) {
        let point = (rounded(point.0, DIGITS), rounded(point.1, DIGITS));
        let is_kept = self.seen.is_multiple_of(1 << self.stride);
        self.seen += 1;
        if !is_kept {
            self.latest = Some(point);
            return;
        }
        self.latest = None;
        self.points.push(point);
        if self.points.len() > MAX_POINTS && self.stride < 40 {
            self.stride += 1;
            let mut n = 0;
            self.points.retain(|_| {
                n += 1;
                n % 2 == 1
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(f64, Vec<(&str, f64)>)> {
        let pattern = Pattern::default();
        let found = pattern.read(line)?;
        Some((found.step, found.metrics))
    }

    #[test]
    fn documented_lines_contain_metrics() {
        assert_eq!(
            read("step 120/1000 loss=0.53"),
            Some((120.0, vec![("loss", 0.53)]))
        );
        assert_eq!(
            read("INFO:root:Epoch[3] Batch [20]\tSpeed: 1000.5 samples/sec\taccuracy=0.93"),
            Some((20.0, vec![("Speed", 1000.5), ("accuracy", 0.93)]))
        );
        assert_eq!(
            read("Epoch[0] Train-accuracy=0.5"),
            Some((0.0, vec![("Train-accuracy", 0.5)]))
        );
        assert_eq!(
            read("epoch 2, step 30: loss: 1.5e-3, lr = 0.1"),
            Some((30.0, vec![("loss", 0.0015), ("lr", 0.1)]))
        );
        assert_eq!(read("loss=0.5"), None);
        assert_eq!(read("step 3 done"), None);
        assert_eq!(read("step 3 loss=nan"), None);
        assert_eq!(read("step 3 loss=-"), None);
    }

    #[test]
    fn the_annotation_selects_step_and_metrics() {
        let pattern = Pattern::of_annotation("step=update; loss, val/acc");
        let found = pattern
            .read("update=7 loss=2 lr=0.1 val/acc=0.5")
            .map(|found| (found.step, found.metrics));
        assert_eq!(found, Some((7.0, vec![("loss", 2.0), ("val/acc", 0.5)])));
        assert_eq!(pattern.read("step 7 loss=2"), None);
    }

    #[test]
    fn a_long_curve_keeps_its_first_and_last_point() {
        let mut curves = Curves::default();
        for step in 0..100_000 {
            curves.add(&Pattern::default(), &format!("step {step} loss={step}"));
        }
        let curve = curves.finish("worker-0").remove(0);
        assert!(
            (100..=MAX_POINTS + 1).contains(&curve.points.len()),
            "{}",
            curve.points.len()
        );
        assert_eq!(curve.points.first(), Some(&(0.0, 0.0)));
        assert_eq!(curve.points.last(), Some(&(99_999.0, 99_999.0)));
    }
}
