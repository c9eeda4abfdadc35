//! The history of an operator in a cluster, which the program in its pod reads.

use anyhow::{Context, anyhow, bail};
use futures::try_join;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::Client;
use kube::api::{Api, AttachParams, ListParams};
use tokio::io::{AsyncRead, AsyncReadExt};
use training_job_story::Story;

use crate::cluster::with_timeout;

use super::catalog::Listed;
use super::directory::Wanted;

/// The maximum size of the program's output. A line of the list has some 500 bytes.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;

/// The maximum size of the program's messages.
const MAX_ERROR_BYTES: u64 = 4 << 10;

/// The exit code of `history show` for a job without a story.
pub(crate) const NO_STORY: u8 = 1;

/// The history of the operator in a namespace.
#[derive(Clone)]
pub(crate) struct OperatorHistory {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

/// A container whose operator keeps a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) container: String,
    /// The path of the program in the container.
    program: String,
    /// The directory in the container; `None` if it is not known outside.
    pub(crate) directory: Option<String>,
}

impl OperatorHistory {
    /// Lists the finished jobs of a namespace, or of all.
    ///
    /// # Errors
    /// No running pod has an operator with a history, the user may not run a command in it, or the command failed.
    pub(crate) async fn list(&self, namespace: Option<&str>) -> anyhow::Result<Listed> {
        let mut arguments = vec!["list"];
        if let Some(namespace) = namespace {
            arguments.extend(["--namespace", namespace]);
        }
        match self.run(&arguments).await? {
            Some(output) => {
                serde_json::from_slice(&output).context("the output of the operator's `history list`")
            }
            None => Ok(Listed::default()),
        }
    }

    /// Returns the story of the wanted job that ended last.
    ///
    /// # Errors
    /// As for [`list`](Self::list).
    pub(crate) async fn find(&self, wanted: &Wanted<'_>) -> anyhow::Result<Option<Story>> {
        let mut arguments = vec!["show", wanted.name, "--namespace", wanted.namespace];
        for kind in wanted.kinds {
            arguments.extend(["--kind", kind]);
        }
        if let Some(uid) = wanted.uid {
            arguments.extend(["--uid", uid]);
        }
        let Some(output) = self.run(&arguments).await? else {
            return Ok(None);
        };
        let text = String::from_utf8(output).context("the output of the operator's `history show`")?;
        Story::from_json(&text).map(Some).map_err(|error| anyhow!(error))
    }

    /// Runs `history` in a pod of the operator, and returns its output, or `None` if its exit code is [`NO_STORY`].
    async fn run(&self, arguments: &[&str]) -> anyhow::Result<Option<Vec<u8>>> {
        let api = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        let pods = with_timeout(api.list(&ListParams::default())).await?;
        let pods = pods.map_err(|error| self.denied(error, "list", "pods"))?;
        let places: Vec<(&str, Place)> = pods.iter().filter_map(running).collect();
        let mut failed = anyhow!(
            "namespace {} has no running pod of an operator with --history; the option takes the namespace of the operator, \
             and a local cluster keeps its history in a directory of this machine (--history DIR)",
            self.namespace
        );
        // Each replica of an operator has the same volume.
        for (pod, place) in places {
            let mut command = vec![place.program.as_str(), "history"];
            command.extend_from_slice(arguments);
            if let Some(directory) = &place.directory {
                command.extend(["--history", directory]);
            }
            let parameters = AttachParams::default().stdin(false).container(&place.container);
            let ran = with_timeout(async {
                let process = api.exec(pod, command, &parameters).await;
                output(process.map_err(|error| self.denied(error, "create", "pods/exec"))?).await
            });
            match ran.await.flatten() {
                Ok(output) => return Ok(output),
                Err(error) => failed = error.context(format!("pod {}/{pod}", self.namespace)),
            }
        }
        Err(failed)
    }

    /// Returns the error of a call, with its remedy if a right is missing.
    fn denied(&self, error: kube::Error, verb: &str, resource: &str) -> anyhow::Error {
        let namespace = &self.namespace;
        match error {
            kube::Error::Api(status) if status.code == 403 => anyhow!(
                "you are not allowed to {verb} {resource} in namespace {namespace}; ask an administrator for the rights `list \
                 pods`, `get pods/exec` and `create pods/exec` there, or for a copy of the directory of the history"
            ),
            kube::Error::Api(status) => anyhow!("{verb} {resource}: {}", status.message),
            error => anyhow::Error::new(error).context(format!("{verb} {resource}")),
        }
    }
}

/// Returns the output of a command, or `None` if its exit code is [`NO_STORY`].
async fn output(mut process: kube::api::AttachedProcess) -> anyhow::Result<Option<Vec<u8>>> {
    let status = process
        .take_status()
        .context("the API server sent no status channel")?;
    let (output, errors) = (process.stdout(), process.stderr());
    let (output, errors) = try_join!(read(output, MAX_OUTPUT_BYTES), read(errors, MAX_ERROR_BYTES))?;
    let Some(status) = status.await else {
        bail!("the connection was closed before the command ended");
    };
    match exit_code(&status) {
        Ok(0) => Ok(Some(output)),
        Ok(NO_STORY) => Ok(None),
        Ok(code) => bail!("{}", problem(code, String::from_utf8_lossy(&errors).trim())),
        Err(message) => bail!("{message}"),
    }
}

async fn read(stream: Option<impl AsyncRead + Unpin>, max: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(max + 1).read_to_end(&mut bytes).await?;
    }
    match u64::try_from(bytes.len()).is_ok_and(|length| length <= max) {
        true => Ok(bytes),
        false => bail!("the output is larger than {} MiB", max >> 20),
    }
}

/// Returns the problem of a command that failed.
fn problem(code: u8, errors: &str) -> String {
    match errors {
        "" => format!("`history` ended with exit code {code}"),
        errors if errors.contains("unrecognized subcommand") => {
            "the operator is older than this program and cannot print its history; update it".to_owned()
        }
        errors => errors.to_owned(),
    }
}

/// Returns the exit code in the last status of a command, or the reason why there is none.
fn exit_code(status: &Status) -> Result<u8, String> {
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let details = status.details.iter();
    let mut causes = details.flat_map(|details| details.causes.iter().flatten());
    let code = causes.find(|cause| cause.reason.as_deref() == Some("ExitCode"));
    let code = code.and_then(|cause| cause.message.as_ref()?.parse().ok());
    let message = status.message.clone();
    code.ok_or_else(|| message.unwrap_or_else(|| "the command failed without a message".to_owned()))
}

/// Returns the name of a pod that runs, and its container with a history.
fn running(pod: &Pod) -> Option<(&str, Place)> {
    let runs = pod.status.as_ref()?.phase.as_deref() == Some("Running");
    let place = place(pod.spec.as_ref()?)?;
    let is_left = pod.metadata.deletion_timestamp.is_none();
    (runs && is_left).then_some((pod.metadata.name.as_deref()?, place))
}

/// Returns the container whose command line or environment has a history.
pub(crate) fn place(spec: &PodSpec) -> Option<Place> {
    spec.containers.iter().find_map(place_in)
}

fn place_in(container: &Container) -> Option<Place> {
    let command: Vec<&str> = container.command.iter().flatten().map(String::as_str).collect();
    let arguments = container.args.iter().flatten().map(String::as_str);
    let words: Vec<&str> = command.iter().copied().chain(arguments).collect();
    if !words.contains(&"run") {
        return None;
    }
    let flag = words.iter().enumerate().find_map(|(n, word)| match *word {
        "--history" => words.get(n + 1).copied(),
        word => word.strip_prefix("--history="),
    });
    let mut variables = container.env.iter().flatten();
    let variable = variables.find(|variable| variable.name.ends_with("_HISTORY"));
    if flag.is_none() && variable.is_none() {
        return None;
    }
    let directory = flag.or_else(|| variable?.value.as_deref());
    Some(Place {
        container: container.name.clone(),
        // The images of operators have the program in the root, and their manifests name the container after it.
        program: match command.first() {
            Some(program) => (*program).to_owned(),
            None => format!("/{}", container.name),
        },
        directory: directory.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn place_of(container: Value) -> Option<Place> {
        let spec = json!({"containers": [{"name": "sidecar", "args": ["run"]}, container]});
        place(&serde_json::from_value(spec).unwrap())
    }

    fn expected(program: &str, directory: Option<&str>) -> Option<Place> {
        Some(Place {
            container: "training-operator".to_owned(),
            program: program.to_owned(),
            directory: directory.map(str::to_owned),
        })
    }

    #[test]
    fn the_directory_is_that_of_the_command_line_or_the_environment() {
        let name = "training-operator";
        let image = "/training-operator";
        let separate = json!({"name": name, "args": ["run", "--history", "/h", "--leader-elect"]});
        assert_eq!(place_of(separate), expected(image, Some("/h")));
        let joined = json!({"name": name, "args": ["run", "--history=/h", "--history-max-jobs=2"]});
        assert_eq!(place_of(joined), expected(image, Some("/h")));
        let command = json!({"name": name, "command": ["/bin/op", "run"], "args": ["--history=/h"]});
        assert_eq!(place_of(command), expected("/bin/op", Some("/h")));
        let variable = |value: Value| json!({"name": name, "args": ["run"], "env": [value]});
        let value = variable(json!({"name": "TRAINING_OPERATOR_HISTORY", "value": "/h"}));
        assert_eq!(place_of(value), expected(image, Some("/h")));
        let reference = variable(json!({"name": "TRAINING_OPERATOR_HISTORY", "valueFrom": {}}));
        assert_eq!(place_of(reference), expected(image, None));
    }

    #[test]
    fn containers_without_a_history_are_not_used() {
        for container in [
            json!({"name": "a", "args": ["run", "--history-max-jobs=2"]}),
            json!({"name": "a", "args": ["serve", "--history=/h"]}),
            json!({"name": "a", "args": ["run"], "env": [{"name": "TRAINING_OPERATOR_HISTORY_MAX_JOBS", "value": "2"}]}),
        ] {
            assert_eq!(place_of(container.clone()), None, "{container}");
        }
    }

    #[test]
    fn pods_that_do_not_run_are_left_out() {
        let pod = |phase: &str, meta: Value| -> Pod {
            let spec = json!({"containers": [{"name": "a", "args": ["run", "--history=/h"]}]});
            serde_json::from_value(json!({"metadata": meta, "spec": spec, "status": {"phase": phase}}))
                .unwrap()
        };
        let name = json!({"name": "p"});
        assert_eq!(running(&pod("Running", name.clone())).unwrap().0, "p");
        assert!(running(&pod("Pending", name)).is_none());
        let deleted = json!({"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert!(running(&pod("Running", deleted)).is_none());
    }

    #[test]
    fn the_end_of_the_command_is_its_exit_code_or_a_message() {
        let code = |status: Value| exit_code(&serde_json::from_value(status).unwrap());
        assert_eq!(code(json!({"status": "Success"})), Ok(0));
        let causes = json!({"causes": [{"reason": "ExitCode", "message": "1"}]});
        assert_eq!(
            code(json!({"status": "Failure", "details": causes})),
            Ok(NO_STORY)
        );
        let lost = code(json!({"status": "Failure", "message": "no such file or directory"}));
        assert_eq!(lost, Err("no such file or directory".to_owned()));
        let older = problem(2, "error: unrecognized subcommand 'history'");
        assert!(older.contains("update it"), "{older}");
        assert_eq!(
            problem(2, "training-operator: /h: denied"),
            "training-operator: /h: denied"
        );
    }
}
