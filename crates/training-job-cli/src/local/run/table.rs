//! The layout of tables of replicas (pure). The live table has a line for each job, a row for each role and a row for
//! each replica in trouble, and takes at most a third of the screen.

use training_job_review::duration::short_time;

/// The share of the screen's rows that the live table may take.
const SCREEN_SHARE: usize = 3;

/// The space between columns.
const GAP: &str = "  ";

/// The phases of replicas in the order in which a role's row counts them.
const PHASES: [&str; 7] = [
    "Running",
    "Failed",
    "Waiting",
    "Pending",
    "Stopping",
    "Stopped",
    "Succeeded",
];

/// A job's line above the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct JobLine {
    pub(super) name: String,
    /// The type of the latest condition.
    pub(super) state: String,
    /// The seconds since the start of the run, or the whole time of a finished job.
    pub(super) elapsed: i64,
    pub(super) restarts: i32,
    pub(super) backoff_limit: Option<i64>,
    /// The seconds until the job's deadline or the end of the run.
    pub(super) left: Option<i64>,
}

impl JobLine {
    /// Returns the line. Its last parts are left out if there are too few columns.
    fn fit(&self, columns: usize) -> String {
        let mut parts = vec![self.state.clone(), short_time(self.elapsed)];
        parts.retain(|part| !part.is_empty());
        match (self.backoff_limit, self.restarts) {
            (Some(limit), restarts) => parts.push(format!("restarts {restarts} of {limit}")),
            (None, 0) => {}
            (None, restarts) => parts.push(format!("restarts {restarts}")),
        }
        parts.extend(self.left.map(|left| format!("{} left", short_time(left.max(0)))));
        let width = |parts: &[String]| -> usize { parts.iter().map(|p| p.chars().count() + GAP.len()).sum() };
        let name = self.name.chars().count();
        // Half of a name is shown before the time is left out.
        while !parts.is_empty() && name.min(columns / 2) + width(&parts) > columns {
            parts.pop();
        }
        let name = shorten_name(&self.name, columns.saturating_sub(width(&parts)));
        parts.insert(0, name);
        parts.join(GAP)
    }
}

/// A row of a table: a replica, or all replicas of a role.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    /// The parts of the phase. The last ones are left out if there are too few columns.
    pub(super) phase: Vec<String>,
    pub(super) age: Option<i64>,
    pub(super) exit_code: Option<i32>,
    pub(super) restarts: i32,
}

impl Row {
    /// Returns the row of a role whose replicas are in these phases. `expected` is their number, those that do not exist
    /// yet included.
    pub(super) fn of_role(name: &str, expected: usize, phases: &[&str], restarts: i32) -> Self {
        let all = expected.max(phases.len());
        let count = |phase: &str| {
            let missing = if phase == "Pending" { all - phases.len() } else { 0 };
            missing + phases.iter().filter(|of_replica| **of_replica == phase).count()
        };
        let counts = PHASES.iter().map(|phase| (phase.to_lowercase(), count(phase)));
        let counts = counts.filter(|(_, count)| *count > 0).enumerate();
        let phase = counts.map(|(n, (phase, count))| match n {
            0 => format!("{count}/{all} {phase}"),
            _ => format!("{count} {phase}"),
        });
        Self {
            name: name.to_owned(),
            phase: phase.collect(),
            restarts,
            ..Self::default()
        }
    }

    fn cells(&self) -> [String; 5] {
        let text = |number: Option<i32>| number.map(|n| n.to_string()).unwrap_or_default();
        [
            self.name.clone(),
            self.phase.join(", "),
            self.age.map(short_time).unwrap_or_default(),
            text(self.exit_code),
            self.restarts.to_string(),
        ]
    }
}

const HEADINGS: [&str; 5] = ["REPLICA", "PHASE", "AGE", "EXIT", "RESTARTS"];

/// The columns that are left out one after the other if there are too few columns.
const OPTIONAL: [usize; 3] = [2, 4, 3];

/// Returns the live table for a screen of this size. A row that is wrapped or scrolled away could not be erased.
pub(super) fn live(
    jobs: &[JobLine],
    roles: &[Row],
    troubled: &[Row],
    rows: usize,
    columns: usize,
) -> Vec<String> {
    let height = (rows / SCREEN_SHARE).max(1).min(rows.saturating_sub(1));
    let all: Vec<&Row> = roles.iter().chain(troubled).collect();
    let mut lines: Vec<String> = jobs.iter().map(|job| job.fit(columns)).collect();
    lines.extend(layout(&all, columns));
    if lines.len() > height {
        let kept = height.saturating_sub(1).max(1).min(height);
        let hidden = lines.len() - kept;
        lines.truncate(kept);
        if height > 1 {
            lines.push(format!("... and {hidden} more"));
        }
    }
    let cut = lines.into_iter().map(|line| line.chars().take(columns).collect());
    cut.collect()
}

/// Returns the table of these rows with all columns.
pub(super) fn full(rows: &[Row]) -> Vec<String> {
    layout(&rows.iter().collect::<Vec<_>>(), usize::MAX)
}

/// Returns the headings and the rows. Columns without a value are left out, and others if they do not fit.
fn layout(rows: &[&Row], columns: usize) -> Vec<String> {
    let cells: Vec<[String; 5]> = rows.iter().map(|row| row.cells()).collect();
    let widths: [usize; 5] = std::array::from_fn(|c| {
        let cells = cells.iter().map(|row| row[c].chars().count());
        cells.max().unwrap_or(0).max(HEADINGS[c].len())
    });
    let mut shown: Vec<usize> = (0..5)
        .filter(|c| cells.iter().any(|row| !row[*c].is_empty()))
        .collect();
    let total = |shown: &[usize]| -> usize {
        let gaps = GAP.len() * shown.len().saturating_sub(1);
        shown.iter().map(|c| widths[*c]).sum::<usize>() + gaps
    };
    for column in OPTIONAL {
        if total(&shown) > columns {
            shown.retain(|c| *c != column);
        }
    }
    let phase = match total(&shown) > columns {
        // The name gets at least half of the columns.
        true => widths[1].min(columns.saturating_sub(widths[0].min(columns / 2) + GAP.len())),
        false => widths[1],
    };
    let name = match total(&shown) > columns {
        true => widths[0].min(columns.saturating_sub(phase + GAP.len())),
        false => widths[0],
    };
    let line = |texts: [String; 5]| {
        let cells = shown.iter().map(|c| match *c {
            0 => format!("{:<name$}", texts[0]),
            1 => format!("{:<phase$}", texts[1]),
            c => format!("{:>width$}", texts[c], width = widths[c]),
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    };
    let body = rows.iter().zip(cells).map(|(row, mut cells)| {
        cells[0] = shorten_name(&row.name, name);
        cells[1] = shorten_phase(&row.phase, phase);
        line(cells)
    });
    std::iter::once(line(HEADINGS.map(str::to_owned)))
        .chain(body)
        .collect()
}

/// Returns the name without its first words, because the last ones distinguish the replicas of a job.
fn shorten_name(name: &str, width: usize) -> String {
    if name.chars().count() <= width {
        return name.to_owned();
    }
    let ends = name.match_indices('-').map(|(at, _)| format!("…{}", &name[at..]));
    let fits = |end: &String| end.chars().count() <= width;
    ends.into_iter()
        .find(fits)
        .unwrap_or_else(|| name.chars().take(width).collect())
}

/// Returns the parts that fit.
fn shorten_phase(parts: &[String], width: usize) -> String {
    let texts = (1..=parts.len()).rev().map(|kept| match kept == parts.len() {
        true => parts.join(", "),
        false => format!("{} …", parts[..kept].join(", ")),
    });
    let texts: Vec<String> = texts.collect();
    let fits = |text: &&String| text.chars().count() <= width;
    let first = parts.first().cloned().unwrap_or_default();
    texts.iter().find(fits).cloned().unwrap_or(first)
}

#[cfg(test)]
mod tests;
