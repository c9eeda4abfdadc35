//! The flags of `run` that decide what a job gets, for the commands that tell it without running it.

use std::sync::Arc;

use training_job::process::SettingFlags;
use training_job::{GangScheduler, Settings};

use crate::controller_config::ControllerConfigArgs;
use crate::exit::Failure;
use crate::report;

/// What the cluster's operator is started with, as far as jobs get something else by it.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "As the cluster's operator has it")]
pub(crate) struct SettingsArgs {
    /// What containers get that ask for a device.
    #[command(flatten)]
    controller_config: ControllerConfigArgs,
    /// The gang scheduler: volcano, or the name of one with the coscheduling plugin.
    #[arg(long, value_name = "NAME", default_value = "")]
    gang_scheduler_name: String,
    /// The settings of single kinds.
    #[command(flatten)]
    of_kinds: SettingFlags,
}

impl SettingsArgs {
    /// The operator's settings. What has no effect in the file of `--controller_config_file` is told on standard error.
    ///
    /// # Errors
    /// The file cannot be read, or is no such file.
    pub(crate) fn read(&self) -> Result<Settings, Failure> {
        let config = self.controller_config.read()?;
        report::print_all(&config.warnings);
        Ok(Settings {
            accelerators: Arc::new(config.accelerators),
            gang_scheduler: GangScheduler::named(&self.gang_scheduler_name),
            values: Arc::new(self.of_kinds.0.clone()),
            ..Settings::default()
        })
    }
}
