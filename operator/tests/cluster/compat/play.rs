//! One run of a scenario: the actions of the user and the kubelet.

use std::time::Duration;

use kube::Client;
use kube::api::ApiResource;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use training_job_testbed::cluster::ControlPlane;

use super::corpus::Scenario;
use super::mirror::{Held, Mirror, OTHERS, VOLCANO, plural};
use super::normal::HOLD;
use super::pods::Life;
use super::requests::{Answer, Requests};

/// Maximum wait for the pod that a step changes, on a busy machine.
const POD_PATIENCE: Duration = Duration::from_secs(60);

/// The same where the recording has no pod.
const NO_POD_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Play {
    pub(crate) scenario: Scenario,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The UID of the last created job.
    pub(crate) uid: String,
    /// The job as the user submitted it.
    pub(crate) submitted: Value,
    /// The responses since the last look.
    pub(crate) did: Vec<Value>,
    /// True if the pod of the next step is recorded as missing, or nothing is recorded yet.
    pub(crate) may_lack_pod: bool,
    mirror: Mirror,
    requests: Requests,
    jobs: String,
    core: String,
}

/// The target of a step.
#[derive(Deserialize)]
struct Whom {
    role: Option<String>,
    #[serde(default = "zero")]
    index: Option<u32>,
    name: Option<String>,
    patch: Option<Value>,
}

#[expect(clippy::unnecessary_wraps, reason = "it is a default")]
fn zero() -> Option<u32> {
    Some(0)
}

/// The section of an object.
fn section(object: &Value) -> String {
    let is_volcano = |version: &str| version.starts_with("scheduling.volcano.sh/");
    match object["apiVersion"].as_str().is_some_and(is_volcano) {
        true => VOLCANO.to_owned(),
        false => object["kind"].as_str().unwrap_or_default().to_lowercase() + "s",
    }
}

fn parse<T: serde::de::DeserializeOwned>(step: &Value) -> Result<T, String> {
    serde_json::from_value(step.clone()).map_err(|e| format!("{step}: {e}"))
}

impl Play {
    /// Creates the namespace, its objects and the job.
    pub(crate) async fn begin(
        cluster: &ControlPlane,
        client: &Client,
        scenario: Scenario,
    ) -> Result<Self, String> {
        let namespace = cluster.namespace("compat").await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, version) = (text(&scenario.job["kind"]), text(&scenario.job["apiVersion"]));
        let resource = ApiResource {
            group: version.split('/').next().unwrap_or_default().to_owned(),
            version: version.rsplit('/').next().unwrap_or_default().to_owned(),
            plural: kind.to_lowercase() + "s",
            api_version: version,
            kind,
        };
        let gangs = match &*scenario.profile {
            "gang-volcano" | "mpi2-volcano" => "scheduling.volcano.sh",
            "gang-scheduler-plugins" => "scheduling.x-k8s.io",
            _ => "",
        };
        let mut play = Self {
            name: text(&scenario.job["metadata"]["name"]),
            uid: String::new(),
            submitted: Value::Null,
            did: Vec::new(),
            may_lack_pod: false,
            jobs: format!(
                "/apis/{}/namespaces/{namespace}/{}",
                resource.api_version, resource.plural
            ),
            core: format!("/api/v1/namespaces/{namespace}"),
            mirror: Mirror::of(client, &namespace, resource, gangs),
            requests: Requests::new(client.clone()),
            namespace,
            scenario,
        };
        for object in play.scenario.objects.clone() {
            let path = play.at(&section(&object), "");
            let answer = play.requests.create(&path, &object).await?;
            play.note(&answer, false);
        }
        play.create_job().await?;
        Ok(play)
    }

    /// Returns a receiver of the objects in the namespace.
    pub(crate) fn held(&self) -> tokio::sync::watch::Receiver<Held> {
        self.mirror.held.clone()
    }

    /// Deletes the job, so that the operator stops working on it.
    pub(crate) async fn end(&self) -> Result<(), String> {
        let options = json!({"propagationPolicy": "Background"});
        self.requests.delete(&self.job(), &options).await.map(drop)
    }

    fn job(&self) -> String {
        format!("{}/{}", self.jobs, self.name)
    }

    fn pod(&self, name: &str) -> String {
        format!("{}/pods/{name}", self.core)
    }

    /// Records a response: rejections and warnings, and the status codes of changes of the job.
    fn note(&mut self, answer: &Answer, always: bool) {
        let mut noted = Map::new();
        if always || !answer.ok() || !answer.warnings.is_empty() {
            noted.insert("code".to_owned(), answer.code.into());
        }
        for key in ["reason", "message"] {
            if let Some(value) = answer.body.get(key).filter(|_| !answer.ok()) {
                noted.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(message) = in_order_of_fields(&answer.body) {
            noted.insert("message".to_owned(), message.into());
        }
        if !answer.warnings.is_empty() {
            noted.insert("warnings".to_owned(), answer.warnings.clone().into());
        }
        self.did.push(noted.into());
    }

    /// Executes a step other than `settle`.
    pub(crate) async fn act(&mut self, verb: &str, step: &Value) -> Result<(), String> {
        match verb {
            "pod" => {
                let name = self.name_of(step)?;
                self.live(&name, &parse(step)?).await
            }
            "pods" => self.live_all(step).await,
            "deletePod" => self.delete(&self.pod(&self.name_of(step)?)).await,
            "deleteService" => {
                let path = format!("{}/services/{}", self.core, self.name_of(step)?);
                self.delete(&path).await
            }
            "terminatePod" => {
                let path = self.pod(&self.name_of(step)?);
                let hold = json!({"metadata": {"finalizers": [HOLD]}});
                self.requests.patch(&path, &hold).await?;
                self.delete(&path).await
            }
            "reap" => self.reap().await,
            "patchPod" => {
                let patch = parse::<Whom>(step)?.patch.unwrap_or_default();
                let answer = self
                    .requests
                    .patch(&self.pod(&self.name_of(step)?), &patch)
                    .await?;
                self.note(&answer, false);
                Ok(())
            }
            "patchJob" => {
                let answer = self.requests.patch(&self.job(), step).await?;
                self.note(&answer, true);
                if answer.ok() {
                    json_patch::merge(&mut self.submitted, &step["spec"]);
                }
                Ok(())
            }
            "deleteJob" => {
                let propagation = step["propagation"].as_str().unwrap_or("Background");
                let options = json!({ "propagationPolicy": propagation });
                let answer = self.requests.delete(&self.job(), &options).await?;
                self.note(&answer, true);
                Ok(())
            }
            "createJob" => self.create_job().await,
            "scale" => self.scale(step).await,
            // Volcano's groups have no status subresource. The phase of other groups is not read.
            "podGroup" => {
                let status = json!({"status": {"phase": step["phase"]}});
                self.requests
                    .patch(&self.at(VOLCANO, &self.name), &status)
                    .await?;
                self.did.push(json!({}));
                Ok(())
            }
            "create" => {
                let path = self.at(&section(step), "");
                let answer = self.requests.create(&path, step).await?;
                self.note(&answer, false);
                Ok(())
            }
            "delete" => {
                let text = |field: &str| step[field].as_str().unwrap_or_default();
                let (kind, name) = (text("kind"), text("name"));
                // If the name appears again, the operator has created the object.
                let goes = |o: &Value| section(o) == kind && o["metadata"]["name"] == name;
                self.scenario.objects.retain(|object| !goes(object));
                self.delete(&self.at(kind, name)).await
            }
            // The next comparison waits for the changes of this step.
            "wait" => {
                self.did.push(json!({}));
                Ok(())
            }
            _ => Err(format!("{verb}: there is no such step")),
        }
    }

    async fn create_job(&mut self) -> Result<(), String> {
        let mut job = self.scenario.job.clone();
        job["metadata"]["namespace"] = self.namespace.as_str().into();
        let answer = self.requests.create(&self.jobs, &job).await?;
        self.note(&answer, true);
        self.submitted = job["spec"].clone();
        if answer.ok() {
            self.uid = answer.body["metadata"]["uid"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
        }
        Ok(())
    }

    async fn delete(&mut self, path: &str) -> Result<(), String> {
        let answer = self.requests.delete(path, &json!({})).await?;
        self.note(&answer, false);
        Ok(())
    }

    fn name_of(&self, step: &Value) -> Result<String, String> {
        let whom: Whom = parse(step)?;
        if let Some(name) = whom.name {
            return Ok(name);
        }
        let role = whom.role.unwrap_or_default().to_lowercase();
        let index = whom.index.map_or_else(String::new, |n| format!("-{n}"));
        Ok(format!("{}-{role}{index}", self.name))
    }

    /// Writes a pod's status.
    async fn live(&mut self, name: &str, life: &Life) -> Result<(), String> {
        self.await_pod(name).await;
        let path = self.pod(name);
        let found = self.requests.get(&path).await?;
        if !found.ok() {
            self.did.push(json!({"error": "no such pod"}));
            return Ok(());
        }
        if life.bind && found.body["spec"]["nodeName"].is_null() {
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
            });
            self.requests.create(&format!("{path}/binding"), &binding).await?;
        }
        let status = life.status(&found.body);
        let answer = self.requests.patch(&format!("{path}/status"), &status).await?;
        self.note(&answer, false);
        Ok(())
    }

    /// Waits for a pod that is created only after others run.
    async fn await_pod(&self, name: &str) {
        let mut held = self.held();
        let there = held.wait_for(|held| held.pods.contains_key(name));
        let patience = match self.may_lack_pod {
            true => NO_POD_PATIENCE,
            false => POD_PATIENCE,
        };
        // If there is no pod, the comparison with the recording reports it.
        let _ = tokio::time::timeout(patience, there).await;
    }

    async fn live_all(&mut self, step: &Value) -> Result<(), String> {
        let life: Life = parse(step)?;
        let roles = step["roles"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let prefixes: Vec<_> = roles
            .map(|role| format!("{}-{}-", self.name, role.to_lowercase()))
            .collect();
        for pod in self.requests.list(&format!("{}/pods", self.core)).await? {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let is_of = |prefix: &String| {
                let index = name.strip_prefix(prefix.as_str());
                index.is_some_and(|index| index.parse::<u32>().is_ok())
            };
            if prefixes.iter().any(is_of) {
                self.live(name, &life).await?;
            }
        }
        Ok(())
    }

    /// Completes all deletions of pods, as the kubelet does.
    async fn reap(&mut self) -> Result<(), String> {
        self.did.push(json!({}));
        for pod in self.requests.list(&format!("{}/pods", self.core)).await? {
            let meta = &pod["metadata"];
            if meta["deletionTimestamp"].is_null() {
                continue;
            }
            let path = self.pod(meta["name"].as_str().unwrap_or_default());
            if meta["finalizers"]
                .as_array()
                .is_some_and(|all| all.iter().any(|f| f == HOLD))
            {
                self.requests
                    .patch(&path, &json!({"metadata": {"finalizers": []}}))
                    .await?;
            }
            let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}});
            self.requests.delete(&path, &options).await?;
        }
        Ok(())
    }

    /// Returns true if the operator did not create an object.
    pub(crate) fn is_given(&self, section: &str, name: &str) -> bool {
        let mut given = self.scenario.objects.iter();
        matches!(name, "default" | "kube-root-ca.crt")
            || given.any(|o| self::section(o) == section && o["metadata"]["name"] == name)
    }

    /// Returns the path of an object of a section, or of the whole section.
    fn at(&self, section: &str, name: &str) -> String {
        if self.jobs.ends_with(&format!("/{section}")) {
            return format!("{}/{name}", self.jobs).trim_end_matches('/').to_owned();
        }
        let other = OTHERS.iter().find(|(known, ..)| *known == section);
        let root = match other {
            Some((_, group, version, _)) if !group.is_empty() => format!("/apis/{group}/{version}"),
            _ => "/api/v1".to_owned(),
        };
        let plural = plural(section);
        let path = format!("{root}/namespaces/{}/{plural}/{name}", self.namespace);
        path.trim_end_matches('/').to_owned()
    }

    /// Scales the workers, or reads their scale.
    async fn scale(&mut self, step: &Value) -> Result<(), String> {
        let path = format!("{}/scale", self.job());
        let replicas = &step["replicas"];
        let answer = match replicas.is_null() {
            true => self.requests.get(&path).await?,
            false => {
                let patch = json!({"spec": {"replicas": replicas}});
                self.requests.patch(&path, &patch).await?
            }
        };
        self.note(&answer, true);
        if !answer.ok() {
            return Ok(());
        }
        let (spec, status) = (&answer.body["spec"], &answer.body["status"]);
        let scale = json!({
            "replicas": spec["replicas"].as_i64().unwrap_or_default(),
            "active": status["replicas"].as_i64().unwrap_or_default(),
            "selector": status["selector"].as_str().unwrap_or_default(),
        });
        if let Some(did) = self.did.last_mut() {
            did["scale"] = scale;
        }
        let specs = self.submitted.as_object().into_iter().flatten();
        let specs = specs
            .map(|(field, _)| field.clone())
            .find(|field| field.ends_with("ReplicaSpecs"));
        if let Some(specs) = specs.filter(|_| !replicas.is_null()) {
            self.submitted[specs]["Worker"]["replicas"] = replicas.clone();
        }
        Ok(())
    }
}

/// Returns the message of a rejection with several causes, in the order of their fields; those without a field are
/// last. The API server checks the fields of a map in random order.
fn in_order_of_fields(status: &Value) -> Option<String> {
    let causes = status["details"]["causes"].as_array()?;
    let message = status["message"].as_str()?;
    let (start, _) = message
        .split_once(": [")
        .filter(|_| message.ends_with(']') && causes.len() > 1)?;
    let mut causes: Vec<_> = causes
        .iter()
        .filter_map(|cause| Some((cause["field"].as_str()?, cause["message"].as_str()?)))
        .collect();
    causes.sort_by_key(|(field, _)| (*field == "<nil>", *field));
    let causes: Vec<_> = causes
        .iter()
        .map(|(field, message)| format!("{field}: {message}"))
        .collect();
    Some(format!("{start}: [{}]", causes.join(", ")))
}
