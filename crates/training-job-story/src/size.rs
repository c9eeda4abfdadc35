//! The bounds of a story.

use crate::story::{Omitted, Story};

/// The maximum size of a story as compact JSON, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The maximum numbers of items.
#[derive(Clone, Copy, Debug)]
struct Limits {
    replicas: usize,
    pods_per_replica: usize,
    runs_per_pod: usize,
    lines_per_pod: usize,
    lines: usize,
    events: usize,
    curves: usize,
    settings: usize,
    warnings: usize,
}

const LIMITS: Limits = Limits {
    replicas: 1_000,
    pods_per_replica: 12,
    runs_per_pod: 20,
    lines_per_pod: 20,
    lines: 2_000,
    events: 300,
    curves: 48,
    settings: 500,
    warnings: 100,
};

impl Limits {
    fn halved(self) -> Self {
        Self {
            // Replicas are what a story is about, so they are left out last.
            replicas: match self.runs_per_pod {
                ..=2 => (self.replicas * 3 / 4).max(1),
                _ => self.replicas,
            },
            pods_per_replica: (self.pods_per_replica / 2).max(1),
            runs_per_pod: (self.runs_per_pod / 2).max(1),
            lines_per_pod: (self.lines_per_pod / 2).max(1),
            lines: self.lines / 2,
            events: self.events / 2,
            curves: self.curves / 2,
            settings: self.settings / 2,
            warnings: self.warnings / 2,
        }
    }

    fn is_least(self) -> bool {
        self.replicas == 1 && self.lines == 0 && self.settings == 0
    }
}

/// Returns the story with the items that its limits allow. Replicas in trouble and recent items are kept before others.
pub(crate) fn bounded(mut story: Story) -> Story {
    let mut limits = LIMITS;
    loop {
        apply(&mut story, limits);
        let size = serde_json::to_vec(&story).map_or(usize::MAX, |json| json.len());
        if size <= MAX_BYTES || limits.is_least() {
            return story;
        }
        limits = limits.halved();
    }
}

fn apply(story: &mut Story, limits: Limits) {
    let omitted = &mut story.omitted;
    if story.replicas.len() > limits.replicas {
        // A stable sort keeps the order of the replicas.
        story.replicas.sort_by_key(|replica| !replica.is_troubled());
        omitted.replicas += truncate(&mut story.replicas, limits.replicas);
        story
            .replicas
            .sort_by(|a, b| (&a.role, a.index).cmp(&(&b.role, b.index)));
    }
    for replica in &mut story.replicas {
        omitted.pods += drop_first(&mut replica.pods, limits.pods_per_replica);
        for pod in &mut replica.pods {
            omitted.runs += drop_first(&mut pod.runs, limits.runs_per_pod);
            omitted.runs += drop_first(&mut pod.waits, limits.runs_per_pod);
            omitted.lines += drop_first(&mut pod.log, limits.lines_per_pod);
        }
    }
    bound_lines(story, limits.lines);
    let omitted = &mut story.omitted;
    omitted.events += drop_first(&mut story.events, limits.events);
    omitted.curves += truncate(&mut story.curves, limits.curves);
    omitted.settings += truncate(&mut story.settings, limits.settings);
    truncate(&mut story.rendered, limits.warnings);
    truncate(&mut story.warnings, limits.warnings);
    truncate(&mut story.conditions, limits.warnings.max(1));
    drop_first(&mut story.earlier_failures, limits.warnings);
}

/// Bounds the lines of all pods together. Pods in trouble, and first of all that of the root cause, keep theirs.
fn bound_lines(story: &mut Story, max: usize) {
    let cause = story.failure.as_ref().and_then(|failure| failure.pod.clone());
    let mut left = max;
    let Omitted { lines, .. } = &mut story.omitted;
    for rank in 0..3 {
        for replica in &mut story.replicas {
            for pod in &mut replica.pods {
                let own = match () {
                    () if cause.as_deref() == Some(pod.name.as_str()) => 0,
                    () if pod.is_troubled() => 1,
                    () => 2,
                };
                if own == rank {
                    *lines += drop_first(&mut pod.log, left);
                    left -= pod.log.len();
                }
            }
        }
    }
}

fn truncate<T>(items: &mut Vec<T>, max: usize) -> usize {
    let surplus = items.len().saturating_sub(max);
    items.truncate(max);
    surplus
}

fn drop_first<T>(items: &mut Vec<T>, max: usize) -> usize {
    let surplus = items.len().saturating_sub(max);
    items.drain(..surplus);
    surplus
}
