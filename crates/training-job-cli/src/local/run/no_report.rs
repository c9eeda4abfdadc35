//! Takes the place of `report` in a program without the feature `views`: `local run` has no `--report`.

use training_job_local::RunEvent;

use crate::kinds::Kinds;

pub(super) const EXAMPLE: &str = "";

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {}

impl ReportArgs {
    pub(super) fn start(&self, _: &Kinds) -> anyhow::Result<Option<Report>> {
        Ok(None)
    }
}

/// A run without stories never has a report.
pub(super) enum Report {}

impl Report {
    pub(super) fn record(&mut self, _: &RunEvent) {
        match *self {}
    }

    pub(super) fn write(self) -> anyhow::Result<Vec<String>> {
        match self {}
    }
}
