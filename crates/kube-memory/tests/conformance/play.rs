//! Sends the requests of a script to both servers, and compares the responses.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use training_job_testbed::cluster::WAIT_TIMEOUT;

use crate::difference;
use crate::masks::Masks;
use crate::memory::Memory;
use crate::real;
use crate::script::{Script, Step, fill, fill_value};
use crate::watches::{NOTHING, Watch};

/// One server, with the values of its responses so far.
struct Player {
    client: Client,
    masks: Masks,
    names: BTreeMap<String, String>,
    watches: BTreeMap<String, Watch>,
}

/// Executes a script, and panics with all steps whose responses differ.
pub(crate) async fn script(script: Script) {
    let _turn = real::turn(script.alone).await;
    let plane = real::control_plane().await;
    let memory = Memory::new();
    if script.jobs {
        memory.install_jobs().await;
    }
    let mut real = Player::new(real::client(plane).await, &script).await;
    let mut here = Player::new(memory.client(), &script).await;
    let mut problems = Vec::new();
    for (index, step) in script.steps.iter().enumerate() {
        let (one, other) = match &step.compact {
            Some(version) => {
                plane
                    .compact(fill(version, &real.names).parse().expect("a version"))
                    .await;
                memory.compact();
                (Value::Null, Value::Null)
            }
            None => (real.step(step).await, here.step(step).await),
        };
        let mut found = Vec::new();
        if let Some(code) = step.code.filter(|code| one["code"] != *code) {
            found.push(format!(
                "the real API server returns {} instead of {code}",
                one["code"]
            ));
        }
        found.extend(difference::between(one, other, &step.differs));
        if !found.is_empty() {
            problems.push(format!("{}. {}\n{}", index + 1, step.title(), found.join("\n")));
        }
    }
    assert!(
        problems.is_empty(),
        "{}: {} of {} steps differ\n\n{}",
        script.name,
        problems.len(),
        script.steps.len(),
        problems.join("\n")
    );
}

impl Player {
    async fn new(client: Client, script: &Script) -> Self {
        let mut names = script.names.clone();
        names.insert("space".to_owned(), script.namespace());
        let player = Self {
            client,
            masks: Masks::default(),
            names,
            watches: BTreeMap::new(),
        };
        let space =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": script.namespace()}});
        for object in std::iter::once(&space).chain(&script.before) {
            player.prepare(object).await;
        }
        player
    }

    /// Creates an object that the script needs before its first step.
    async fn prepare(&self, object: &Value) {
        let version = object["apiVersion"].as_str().expect("a version");
        let is_kind = object["kind"] == "CustomResourceDefinition";
        let root = if version.contains('/') { "apis" } else { "api" };
        let plural = object["kind"].as_str().expect("a kind").to_lowercase() + "s";
        let path = match object["metadata"]["namespace"].as_str() {
            Some(space) => format!(
                "/{root}/{version}/namespaces/{}/{plural}",
                fill(space, &self.names)
            ),
            None => format!("/{root}/{version}/{plural}"),
        };
        let (code, response) = post(&self.client, &path, &fill_value(object, &self.names)).await;
        assert_eq!(code, 201, "{response}");
        if is_kind {
            let name = response["metadata"]["name"].as_str().expect("a name");
            let until = BTreeMap::from([("/status/conditions/1/status".to_owned(), json!("True"))]);
            self.wait(&format!("{path}/{name}"), Some(&until)).await;
        }
    }

    /// Executes a step, and returns the masked response.
    async fn step(&mut self, step: &Step) -> Value {
        self.masks.begin_step();
        let response = if step.send.is_some() {
            self.send(step).await
        } else if let Some(name) = &step.watch {
            let path = fill(step.path.as_ref().expect("a watch has a path"), &self.names);
            let watch = Watch::open(&self.client, &path, step.accept.as_deref()).await;
            self.watches.insert(name.clone(), watch);
            Value::Null
        } else if let Some(name) = &step.read {
            let watch = self.watches.get_mut(name).expect("the watch was opened");
            let mut lines = Vec::new();
            while step.end || lines.len() < step.lines.expect("a number of lines") {
                let Some(line) = watch.next().await else { break };
                let is_event = line.is_object();
                lines.push(line);
                if !is_event {
                    break;
                }
            }
            json!({"lines": lines})
        } else {
            let path = fill(step.r#await.as_ref().expect("a step does something"), &self.names);
            let until = (!step.gone).then_some(&step.until);
            json!({"body": self.wait(&path, until).await})
        };
        for (name, pointer) in &step.keep {
            let found = response.pointer(pointer).cloned().unwrap_or_default();
            let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            self.names.insert(name.clone(), text);
        }
        self.masks.hide(&step.compared(response))
    }

    async fn send(&self, step: &Step) -> Value {
        let line = fill(step.send.as_ref().expect("something to send"), &self.names);
        let (method, path) = line.split_once(' ').expect("a method and a path");
        let body = match (&step.body, &step.text, &step.base64) {
            (Some(body), None, None) => fill_value(body, &self.names).to_string().into_bytes(),
            (None, Some(text), None) => fill(text, &self.names).into_bytes(),
            (None, None, Some(bytes)) => BASE64_STANDARD.decode(bytes).expect("base 64"),
            (None, None, None) => Vec::new(),
            _ => panic!("{line}: one body is enough"),
        };
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).expect("a method"))
            .uri(path);
        if !body.is_empty() {
            let kind = step.r#type.as_deref().unwrap_or("application/json");
            request = request.header("content-type", kind);
        }
        if let Some(accept) = &step.accept {
            request = request.header("accept", accept);
        }
        let request = request.body(Bytes::from(body)).expect("a request");
        let begun = Instant::now();
        loop {
            let (code, body) = exchange(&self.client, request.clone().map(Body::from)).await;
            let is_early = step.again && step.code != Some(code) && begun.elapsed() < WAIT_TIMEOUT;
            if !is_early {
                return json!({"code": code, "body": body});
            }
            // The request is repeated, because the state of a server's admission cannot be watched.
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Watches until an object has these members, or with `None` until it does not exist. Returns the object.
    async fn wait(&self, path: &str, until: Option<&BTreeMap<String, Value>>) -> Value {
        let fits = |object: &Value| match until {
            None => object.is_null(),
            Some(until) => {
                let fits = |(at, value): (&String, &Value)| {
                    object.pointer(at).unwrap_or(&Value::Null) == &fill_value(value, &self.names)
                };
                !object.is_null() && until.iter().all(fits)
            }
        };
        let (collection, name) = path.rsplit_once('/').expect("the path of an object");
        let only = format!("{collection}?fieldSelector=metadata.name={name}");
        let request = Request::get(&only).body(Body::empty()).expect("a request");
        let (code, list) = exchange(&self.client, request).await;
        assert_eq!(code, 200, "{list}");
        let mut object = list["items"][0].clone();
        let version = list["metadata"]["resourceVersion"].as_str().expect("a version");
        let mut watch = Watch::open(&self.client, &format!("{only}&resourceVersion={version}"), None).await;
        while !fits(&object) {
            let event = watch.next().await.expect("the watch goes on");
            object = match event["type"].as_str() {
                Some("DELETED") => Value::Null,
                Some("ADDED" | "MODIFIED") => event["object"].clone(),
                _ => panic!("{event}"),
            };
        }
        if let Some(members) = object.as_object_mut() {
            // Events have both members, items of lists have neither.
            members.remove("apiVersion");
            members.remove("kind");
        }
        object
    }
}

/// Sends a request. Returns the code, and the body as JSON or text.
async fn exchange(client: &Client, request: Request<Body>) -> (u16, Value) {
    let response = client.send(request).await.expect("a response");
    let code = response.status().as_u16();
    // If the server opened a watch instead of rejecting it, the body never ends.
    let Ok(bytes) = timeout(WAIT_TIMEOUT, response.into_body().collect_bytes()).await else {
        return (code, Value::from(NOTHING));
    };
    let bytes = bytes.expect("a body");
    let text = || Value::from(String::from_utf8_lossy(&bytes));
    (code, serde_json::from_slice(&bytes).unwrap_or_else(|_| text()))
}

pub(crate) async fn post(client: &Client, path: &str, object: &Value) -> (u16, Value) {
    let request = Request::post(path).header("content-type", "application/json");
    let body = Body::from(object.to_string().into_bytes());
    exchange(client, request.body(body).expect("a request")).await
}
