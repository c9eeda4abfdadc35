//! The programs that `tests/helm/build.sh` has built.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use training_job_testbed::cluster::{ControlPlane, Output, repository};
use training_operator_testing::manifests::objects;

/// The major versions of Helm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Helm {
    Three,
    Four,
}

/// The name of the release in all tests.
pub(crate) const RELEASE: &str = "trainer";

pub(crate) fn chart() -> PathBuf {
    repository().join("manifests/helm/training-operator")
}

impl Helm {
    pub(crate) const ALL: [Self; 2] = [Self::Three, Self::Four];

    fn command(self, arguments: &[&str]) -> Command {
        let name = match self {
            Self::Three => "helm3",
            Self::Four => "helm4",
        };
        let path = repository().join("target/helm").join(name);
        assert!(
            path.is_file(),
            "{path:?} is missing: tests/helm/build.sh builds it"
        );
        let mut command = Command::new(path);
        command.args(arguments);
        command
    }

    /// Runs a command that needs no cluster.
    pub(crate) fn run(self, arguments: &[&str]) -> Output {
        output(self.command(arguments).env("KUBECONFIG", "/dev/null"))
    }

    /// Runs a command as the administrator of a cluster.
    pub(crate) async fn run_on(self, plane: &ControlPlane, arguments: &[&str]) -> Output {
        let home = plane.directory().join("helm");
        self.run_with(plane.kubeconfig().as_ref(), &home, arguments).await
    }

    /// Runs a command with a kubeconfig, and a directory for Helm's own files.
    pub(crate) async fn run_with(self, kubeconfig: &Path, home: &Path, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        command.env("KUBECONFIG", kubeconfig);
        for kind in ["CACHE", "CONFIG", "DATA"] {
            command.env(format!("HELM_{kind}_HOME"), home.join(kind));
        }
        tokio::task::spawn_blocking(move || output(&mut command))
            .await
            .unwrap()
    }

    /// Returns the objects of the chart with these values, without those of `helm test`.
    pub(crate) fn render(self, namespace: &str, values: &[&str]) -> Vec<Value> {
        let chart = chart();
        let mut arguments = vec!["template", RELEASE, chart.to_str().unwrap(), "--skip-tests"];
        arguments.extend(["--namespace", namespace]);
        arguments.extend(values.iter().flat_map(|value| ["--set", value]));
        let rendered = self.run(&arguments).success();
        objects(&rendered)
            .into_iter()
            .filter(|object| !object.is_null())
            .collect()
    }
}

/// Returns the rows of a table, whose cells are separated by ` | `.
pub(crate) fn rows<const CELLS: usize>(table: &str) -> impl Iterator<Item = [&str; CELLS]> {
    let rows = table.lines().filter(|line| !line.is_empty());
    rows.map(|row| row.split(" | ").collect::<Vec<_>>().try_into().expect(row))
}

fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}
