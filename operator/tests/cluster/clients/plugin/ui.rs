//! `ui`: the pages of a server, to which the test speaks HTTP.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use training_job_testbed::cluster::{Background, ControlPlane, Program};

use super::{json, links, until, without_cluster};
use crate::clients::stage::Stage;

const DEADLINE: Duration = Duration::from_secs(60);

/// A server, and the browser of its user.
pub(super) struct Ui {
    server: Background,
    host: String,
    token: String,
    cookie: String,
}

impl Ui {
    async fn start(stage: &Stage, kubeconfig: &Path, arguments: &[&str]) -> Self {
        Self::start_in(stage.cluster, kubeconfig, arguments).await
    }

    pub(super) async fn start_in(cluster: &ControlPlane, kubeconfig: &Path, arguments: &[&str]) -> Self {
        let server = cluster.spawn(
            Program::new(links(cluster).join("kubectl-training"))
                .args([&["ui"], arguments].concat())
                .env("KUBECONFIG", kubeconfig),
        );
        let line = server.wait_for_line("http://127.0.0.1:").await;
        let address = line.split("http://").nth(1).unwrap().trim();
        let (host, token) = address.split_once("/?token=").unwrap();
        let (host, token) = (host.to_owned(), token.to_owned());
        let port = host.rsplit(':').next().unwrap();
        let cookie = format!("training-ui-{port}={token}");
        Self {
            server,
            host,
            token,
            cookie,
        }
    }

    /// Sends a request, and returns the stream of the response.
    async fn send(&self, method: &str, path: &str, cookie: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.host).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n",
            self.host
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        BufReader::new(stream)
    }

    /// Returns a whole response, which begins with `HTTP/1.1 200 OK`.
    async fn response(&self, method: &str, path: &str, cookie: &str) -> String {
        let mut text = String::new();
        let mut stream = self.send(method, path, cookie).await;
        timeout(DEADLINE, stream.read_to_string(&mut text))
            .await
            .unwrap()
            .unwrap();
        text
    }

    pub(super) async fn get(&self, path: &str) -> String {
        self.response("GET", path, &self.cookie).await
    }

    /// Opens the stream of changes of all jobs, whose head is complete.
    pub(super) async fn changes(&self) -> BufReader<TcpStream> {
        let mut events = self.send("GET", "/events", &self.cookie).await;
        until_line(&mut events, "retry: 2000\n").await;
        events
    }

    /// Loads a page after each message until it has these texts, as the script does.
    async fn until_page(&self, events: &mut BufReader<TcpStream>, path: &str, texts: &[&str]) -> String {
        let load = async {
            loop {
                let mut line = String::new();
                assert_ne!(events.read_line(&mut line).await.unwrap(), 0, "the events ended");
                if line != format!("data: job {}\n", path.strip_prefix("/job/").unwrap()) {
                    continue;
                }
                let page = self.get(path).await;
                if texts.iter().all(|text| page.contains(text)) {
                    return page;
                }
            }
        };
        timeout(DEADLINE, load).await.unwrap()
    }
}

/// Reads up to this line of a stream.
pub(super) async fn until_line(events: &mut BufReader<TcpStream>, expected: &str) {
    let read = async {
        let mut line = String::new();
        while line != expected {
            line.clear();
            assert_ne!(events.read_line(&mut line).await.unwrap(), 0, "the events ended");
        }
    };
    timeout(DEADLINE, read).await.unwrap();
}

#[tokio::test]
async fn a_browser_sees_a_job_fail_and_be_deleted() {
    let stage = Stage::new("plugin-ui").await;
    stage.run(&["create", "-f", "examples/mxnet/train.yaml"]).await;
    stage.all_run("spirals", 5, "0").await;
    until(&stage, "spirals", "Running").await;
    let history = stage.cluster.directory().join("plugin-ui-history");
    fs::create_dir_all(&history).unwrap();
    let kubeconfig = stage.cluster.kubeconfig_in(&stage.namespace);
    let ui = Ui::start(&stage, &kubeconfig, &["--history", history.to_str().unwrap()]).await;

    let refused = ui.response("GET", "/", "").await;
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let wrong = ui.response("GET", "/?token=0", "").await;
    assert!(wrong.starts_with("HTTP/1.1 401 "), "{wrong}");
    let entered = ui.response("GET", &format!("/?token={}", ui.token), "").await;
    assert!(entered.starts_with("HTTP/1.1 303 "), "{entered}");
    let cookie = format!("set-cookie: {}; Path=/; HttpOnly; SameSite=Strict\r\n", ui.cookie);
    assert!(entered.contains(&cookie), "{entered}");
    let post = ui.response("POST", "/", &ui.cookie).await;
    assert!(post.starts_with("HTTP/1.1 405 "), "{post}");

    let list = ui.get("/").await;
    let address = format!("/job/{}/MXJob/spirals", stage.namespace);
    for part in [
        "HTTP/1.1 200 OK\r\n",
        "content-security-policy: default-src 'none'",
        &*format!("<a href=\"{address}\">spirals</a>"),
        "<span class=\"state other\">Running</span>",
        "1 of 1 jobs",
    ] {
        assert!(list.contains(part), "{part} in\n{list}");
    }
    let none = ui.get("/?state=Failed").await;
    assert!(none.contains("0 of 1 jobs"), "{none}");

    let job = format!("/events?job={}", address.strip_prefix("/job/").unwrap());
    let mut events = ui.send("GET", &job, &ui.cookie).await;
    stage.kubelet.exits("spirals-worker-0", "mxnet", 3).await;
    let failed = ["<title>MXJob spirals: Failed</title>", "worker-0: exit 3"];
    let page = ui.until_page(&mut events, &address, &failed).await;
    assert!(page.contains("<a href=\"/\">All jobs</a>"), "{page}");

    let missing = ui.get(&address.replace("spirals", "spiral")).await;
    assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
    assert!(missing.contains("MXJob/spirals</a>: Failed"), "{missing}");

    stage
        .run(&["delete", "mxjob", "spirals", "--cascade=background"])
        .await;
    ui.until_page(&mut events, &address, &["HTTP/1.1 404 "]).await;
    ui.server.signal(Signal::INT);
    assert_eq!(ui.server.exit_code().await, 130);
}

#[tokio::test]
async fn a_deleted_job_is_shown_from_the_history() {
    let stage = Stage::new("plugin-ui-history").await;
    stage.run(&["create", "-f", "examples/mxnet/train.yaml"]).await;
    stage.all_run("spirals", 5, "0").await;
    stage.kubelet.exits("spirals-worker-0", "mxnet", 3).await;
    until(&stage, "spirals", "Failed").await;
    let story = json(&stage, &["report", "spirals"]).await;
    let history = stage.cluster.directory().join("plugin-ui-stories");
    fs::create_dir_all(&history).unwrap();
    let uid = story["uid"].as_str().unwrap();
    let file = format!("{}.spirals.MXJob.{uid}.json", stage.namespace);
    fs::write(history.join(file), story.to_string()).unwrap();
    stage
        .run(&["delete", "mxjob", "spirals", "--cascade=background"])
        .await;

    let kubeconfig = stage.cluster.kubeconfig_in(&stage.namespace);
    let ui = Ui::start(&stage, &kubeconfig, &["--history", history.to_str().unwrap()]).await;
    let address = format!("/job/{}/MXJob/spirals", stage.namespace);
    let list = ui.get("/").await;
    assert!(
        list.contains(&format!("<a href=\"{address}?uid={uid}\">spirals</a>")),
        "{list}"
    );
    assert!(list.contains("Failed</span> (deleted)"), "{list}");
    for address in [&address, &format!("{address}?uid={uid}")] {
        let page = ui.get(address).await;
        assert!(page.contains("Its story is from the history."), "{page}");
        assert!(page.contains("worker-0: exit 3"), "{page}");
    }
    let other = ui.get(&format!("{address}?uid=other")).await;
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");

    for kubeconfig in without_cluster(stage.cluster) {
        let arguments = ["-n", &stage.namespace, "--history", history.to_str().unwrap()];
        let ui = Ui::start(&stage, &kubeconfig, &arguments).await;
        let list = ui.get("/").await;
        let note = "Only the history is shown.";
        assert!(
            list.contains(note) && list.contains(&format!("?uid={uid}")),
            "{list}"
        );
        assert!(!list.contains("(deleted)"), "{list}");
        let page = ui.get(&address).await;
        let note =
            "The cluster cannot be read. This is the latest story in the history; the job may still exist.";
        assert!(page.contains(note) && page.contains("worker-0: exit 3"), "{page}");
    }
}

#[tokio::test]
async fn forbidden_reads_are_notes() {
    let stage = Stage::new("plugin-ui-rights").await;
    stage.run(&["create", "serviceaccount", "user"]).await;
    let kubeconfig = stage
        .cluster
        .kubeconfig_for_service_account(&stage.namespace, "user")
        .await;
    let ui = Ui::start(&stage, &kubeconfig, &["-n", &stage.namespace]).await;
    let list = ui.get("/").await;
    assert!(list.starts_with("HTTP/1.1 200 OK\r\n"), "{list}");
    assert!(
        list.contains("You are not allowed to list mxjobs.kubeflow.org"),
        "{list}"
    );
    let job = ui.get(&format!("/job/{}/MXJob/spirals", stage.namespace)).await;
    assert!(job.starts_with("HTTP/1.1 403 "), "{job}");
    let log = ui
        .get(&format!("/logs/{}/spirals-worker-0", stage.namespace))
        .await;
    assert!(log.starts_with("HTTP/1.1 403 "), "{log}");
    let elsewhere = ui.get("/job/default/MXJob/spirals").await;
    assert!(elsewhere.starts_with("HTTP/1.1 404 "), "{elsewhere}");
}
