//! The flags of `run` that affect the objects of jobs, for the commands that show these objects.

use std::sync::Arc;

use training_job::{GangScheduler, Settings};
use training_job_program::SettingFlags;

use crate::controller_config::ControllerConfigArgs;
use crate::exit::Failure;
use crate::report;

/// The settings of the cluster's operator that affect the objects of jobs.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Settings of the cluster's operator")]
pub struct SettingsArgs {
    #[command(flatten)]
    controller_config: ControllerConfigArgs,
    /// The gang scheduler: volcano, or the name of a scheduler with the coscheduling plugin.
    #[arg(long, value_name = "NAME", default_value = "")]
    gang_scheduler_name: String,
    #[command(flatten)]
    kind_settings: SettingFlags,
}

impl SettingsArgs {
    /// Returns the settings. Prints a warning for each field of `--controller_config_file` that has no effect.
    ///
    /// # Errors
    /// The file cannot be read or is invalid.
    pub fn read(&self) -> Result<Settings, Failure> {
        let config = self.controller_config.read()?;
        report::print_all(&config.warnings);
        let mut settings = Settings::default();
        settings.accelerators = Arc::new(config.accelerators);
        settings.gang_scheduler = GangScheduler::named(&self.gang_scheduler_name);
        settings.values = Arc::new(self.kind_settings.0.clone());
        Ok(settings)
    }
}
