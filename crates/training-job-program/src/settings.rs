//! The flags for the settings of the kinds, one per setting.

use std::collections::BTreeMap;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use crate::{program, variable};

/// The values of the kinds' settings, by name. The setting `farm-monitor-image` has the flag `--farm-monitor-image`. The
/// kinds are those of [`Program::kinds`](crate::Program::kinds).
#[derive(Clone, Debug, Default)]
pub struct SettingFlags(pub BTreeMap<String, String>);

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let values = program().settings.iter().filter_map(|setting| {
            let value = matches.get_one::<String>(setting.name)?;
            Some((setting.name.to_owned(), value.clone()))
        });
        Ok(Self(values.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let flag = |name: &str| variable(&name.to_ascii_uppercase().replace('-', "_"));
        program().settings.iter().fold(command, |command, setting| {
            command.arg(
                Arg::new(setting.name)
                    .long(setting.name)
                    .env(flag(setting.name))
                    .help(setting.help)
                    .value_name("VALUE")
                    .default_value(setting.default)
                    .help_heading("Settings of individual kinds"),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::Program;
    use training_job::job::SettingDefinition;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        settings: SettingFlags,
    }

    #[test]
    fn each_setting_is_a_flag_with_its_default() {
        // The only test of this process that names the program.
        let setting = |name, default| SettingDefinition::new(name, default, "What it is for");
        let program = Program {
            settings: vec![setting("farm-image", "farm:1"), setting("farm-tries", "3")],
            ..Program::new("farm-operator")
        };
        program.install();
        let cli = Cli::try_parse_from(["farm-operator", "--farm-tries", "7"]).unwrap();
        let expected = [("farm-image", "farm:1"), ("farm-tries", "7")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(cli.settings.0, expected.into());
        let help = <Cli as clap::CommandFactory>::command()
            .render_long_help()
            .to_string();
        assert!(
            help.contains("[env: FARM_OPERATOR_FARM_IMAGE=]") && help.contains("What it is for"),
            "{help}"
        );
        assert!(Cli::try_parse_from(["farm-operator", "--farm-wish", "7"]).is_err());
    }
}
