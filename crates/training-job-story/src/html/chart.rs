//! Metrics as line charts.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::curve::Curve;
use crate::story::Story;

use super::axis::{number, ticks};

/// The maximum number of replicas in one chart.
const MAX_LINES: usize = 8;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 10.0;
const RIGHT: f64 = 14.0;

pub(super) fn charts(story: &Story) -> Markup {
    let mut metrics: BTreeMap<&str, Vec<&Curve>> = BTreeMap::new();
    for curve in story.curves.iter().filter(|curve| bounds(&[curve]).is_some()) {
        metrics.entry(&curve.metric).or_default().push(curve);
    }
    html! {
        @if !metrics.is_empty() {
            section aria-labelledby="curves" {
                h2 #curves { "Metrics" }
                div.charts { @for (metric, curves) in &metrics { (chart(metric, curves)) } }
            }
        }
    }
}

/// The least and the greatest step, and value.
#[derive(Clone, Copy)]
struct Bounds {
    x: (f64, f64),
    y: (f64, f64),
}

fn bounds(curves: &[&Curve]) -> Option<Bounds> {
    let points = || {
        curves
            .iter()
            .flat_map(|curve| &curve.points)
            .filter(|(x, y)| x.is_finite() && y.is_finite())
    };
    let range = |of: fn(&(f64, f64)) -> f64| {
        let least = points().map(of).fold(f64::INFINITY, f64::min);
        let greatest = points().map(of).fold(f64::NEG_INFINITY, f64::max);
        (least, greatest)
    };
    let (x, y) = (range(|point| point.0), range(|point| point.1));
    let is_drawable = |(least, greatest): (f64, f64)| least.is_finite() && (greatest - least).is_finite();
    (is_drawable(x) && is_drawable(y)).then_some(Bounds { x, y })
}

impl Bounds {
    fn at(self, (x, y): (f64, f64)) -> (f64, f64) {
        let part = |value: f64, (least, greatest): (f64, f64)| match greatest > least {
            true => (value - least) / (greatest - least),
            false => 0.5,
        };
        (
            LEFT + part(x, self.x) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - part(y, self.y) * (HEIGHT - BOTTOM - TOP),
        )
    }
}

fn chart(metric: &str, curves: &[&Curve]) -> Markup {
    let shown = curves.get(..MAX_LINES).unwrap_or(curves);
    let (Some(bounds), Some(first)) = (bounds(shown), shown.first()) else {
        return Markup::default();
    };
    let last = first
        .points
        .last()
        .map(|point| number(point.1))
        .unwrap_or_default();
    let label = format!(
        "{metric} by {}: from {} to {}; {} ends at {last}",
        first.step_name,
        number(bounds.y.0),
        number(bounds.y.1),
        first.replica,
    );
    html! {
        figure {
            figcaption { (metric) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label) {
                @for tick in ticks(bounds.y.0, bounds.y.1) {
                    @let (_, y) = bounds.at((bounds.x.0, tick));
                    path.grid d=(format!("M{LEFT} {y:.1}H{}", WIDTH - RIGHT)) {}
                    text.axis x=(LEFT - 6.0) y=(format!("{:.1}", y + 4.0)) text-anchor="end" { (number(tick)) }
                }
                @for tick in ticks(bounds.x.0, bounds.x.1) {
                    @let (x, _) = bounds.at((tick, bounds.y.0));
                    text.axis x=(format!("{x:.1}")) y=(HEIGHT - BOTTOM + 15.0) text-anchor="middle" { (number(tick)) }
                }
                text.axis x=(WIDTH / 2.0) y=(HEIGHT - 4.0) text-anchor="middle" { (first.step_name) }
                @for (n, curve) in shown.iter().enumerate() {
                    path.c.{ "c" (n) } d=(path(curve, bounds)) {}
                }
            }
            ul.legend {
                @for (n, curve) in shown.iter().enumerate() {
                    li { svg viewBox="0 0 12 12" aria-hidden="true" { rect.{ "k" (n) } y="4" width="12" height="4" {} }
                        (curve.replica) " " span.soft { "last " (curve.points.last().map(|point| number(point.1)).unwrap_or_default()) } }
                }
                @if curves.len() > shown.len() { li.soft { "and " (curves.len() - shown.len()) " more replicas" } }
            }
        }
    }
}

/// Returns the path of a curve. It is interrupted where the step decreases, because the replica began again there.
fn path(curve: &Curve, bounds: Bounds) -> String {
    let mut path = String::new();
    let mut before = f64::INFINITY;
    for point in curve
        .points
        .iter()
        .filter(|(x, y)| x.is_finite() && y.is_finite())
    {
        let (x, y) = bounds.at(*point);
        let command = if point.0 < before { 'M' } else { 'L' };
        path += &format!("{command}{x:.1} {y:.1}");
        before = point.0;
    }
    path
}
