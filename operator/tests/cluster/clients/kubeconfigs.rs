//! Every command reads the kubeconfigs and the environment that kubectl reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, Options, Output, Program, repository};

use super::forward_proxy::ForwardProxy;
use super::plugin::links;

/// Variables of a command's environment.
type Environment<'a> = &'a [(&'a str, &'a str)];

/// A name in the certificate of the API server that this machine cannot resolve.
const NAME: &str = "kubernetes.default";

/// Runs a command with only these variables of a proxy or a kubeconfig.
async fn output(program: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(repository());
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.unwrap().unwrap();
    Output {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A directory with kubeconfigs.
struct Kubeconfigs {
    cluster: &'static ControlPlane,
    directory: PathBuf,
    admin: Value,
}

impl Kubeconfigs {
    fn new(cluster: &'static ControlPlane, name: &str) -> Self {
        let directory = cluster.directory().join(name);
        fs::create_dir(&directory).unwrap();
        let admin = fs::read_to_string(cluster.kubeconfig()).unwrap();
        Self {
            cluster,
            directory,
            admin: serde_json::from_str(&admin).unwrap(),
        }
    }

    fn port(&self) -> &str {
        let server = self.admin["clusters"][0]["cluster"]["server"].as_str().unwrap();
        server.rsplit(':').next().unwrap()
    }

    /// Writes the administrator's kubeconfig with a change.
    fn write(&self, name: &str, change: impl FnOnce(&mut Value)) -> String {
        let mut changed = self.admin.clone();
        change(&mut changed);
        let file = self.directory.join(name);
        fs::write(&file, changed.to_string()).unwrap();
        file.display().to_string()
    }

    async fn kubectl(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let arguments = [&["get", "namespaces"], arguments].concat();
        output(self.cluster.kubectl_path(), &arguments, variables).await
    }

    async fn plugin(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let arguments = [arguments, &["list", "-A"]].concat();
        output(
            &links(self.cluster).join("kubectl-training"),
            &arguments,
            variables,
        )
        .await
    }
}

#[tokio::test]
async fn a_proxy_is_used_whenever_kubectl_uses_it() {
    let proxy = ForwardProxy::start().await;
    let files = Kubeconfigs::new(ControlPlane::of_default_kinds().await, "proxies");
    let cluster = |name: &str, server: &str, proxy: Option<&str>| {
        let server = format!("https://{server}:{}", files.port());
        files.write(name, |file| {
            let cluster = &mut file["clusters"][0]["cluster"];
            cluster["server"] = json!(server);
            cluster["proxy-url"] = json!(proxy);
        })
    };
    let http = format!("http://me:p%40ss@127.0.0.1:{}", proxy.port);
    let without_scheme = http.replace("http://", "");
    let refused = format!("http://127.0.0.1:{}", proxy.port);
    let socks = format!("socks5://127.0.0.1:{}", proxy.port);
    let by_name = cluster("name", NAME, None);
    let by_address = cluster("address", "127.0.0.1", None);
    let by_http = cluster("http", NAME, Some(&http));
    let by_socks = cluster("socks", NAME, Some(&socks));
    let nowhere = "http://127.0.0.1:9";
    let cases: [(&str, Environment<'_>, bool, bool); 15] = [
        (&by_http, &[], true, true),
        (&by_http, &[("NO_PROXY", "*")], true, true),
        (&by_socks, &[], true, true),
        (&by_name, &[("HTTPS_PROXY", &http)], true, true),
        (&by_name, &[("https_proxy", &without_scheme)], true, true),
        (&by_name, &[("HTTPS_PROXY", &socks)], true, true),
        (&by_name, &[("HTTPS_PROXY", &refused)], false, false),
        (
            &by_name,
            &[("HTTPS_PROXY", &http), ("NO_PROXY", "*")],
            false,
            false,
        ),
        (
            &by_name,
            &[("HTTPS_PROXY", &http), ("no_proxy", "x, default")],
            false,
            false,
        ),
        (
            &by_name,
            &[("HTTPS_PROXY", &http), ("NO_PROXY", ".default:1,.kubernetes")],
            true,
            true,
        ),
        (&by_name, &[("HTTP_PROXY", &http)], false, false),
        (&by_name, &[("ALL_PROXY", &http)], false, false),
        (&by_name, &[("HTTPS_PROXY", nowhere)], false, false),
        (&by_address, &[("HTTPS_PROXY", nowhere)], true, false),
        (
            &by_address,
            &[("HTTPS_PROXY", nowhere), ("NO_PROXY", "127.0.0.0/8")],
            true,
            false,
        ),
    ];
    for (file, variables, works, is_used) in cases {
        let arguments = ["--kubeconfig", file];
        let of_kubectl = files.kubectl(&arguments, variables).await;
        let expected = (works, is_used);
        assert_eq!(
            (of_kubectl.code == 0, proxy.tunnels() > 0),
            expected,
            "{file} {variables:?}: {of_kubectl:?}"
        );
        let ours = files.plugin(&arguments, variables).await;
        assert_eq!(
            (ours.code == 0, proxy.tunnels() > 0),
            expected,
            "{file} {variables:?}: {ours:?}"
        );
    }
    let refused = files
        .plugin(&["--kubeconfig", &by_name], &[("HTTPS_PROXY", nowhere)])
        .await;
    let sentence = format!(
        "the API server https://{NAME}:{} through the proxy {nowhere} of context",
        files.port()
    );
    assert!(refused.stderr.contains(&sentence), "{}", refused.stderr);
    assert_eq!(refused.stderr.matches("refused").count(), 1, "{}", refused.stderr);

    // The commands of the program, and the operator with its own stack.
    let program = Path::new(env!("CARGO_BIN_EXE_training-operator"));
    for file in [&by_http, &by_socks] {
        for command in [
            &["doctor"][..],
            &["diff", "--cluster", "examples/mxnet/train.yaml"],
        ] {
            let command = [command, &["--kubeconfig", file]].concat();
            let ended = output(program, &command, &[]).await;
            assert!(ended.code < 2 && proxy.tunnels() > 0, "{command:?}: {ended:?}");
        }
        let namespace = files.cluster.namespace("proxied").await;
        let operator = files.cluster.spawn(
            Program::new(program)
                .args(["run", "--kubeconfig", file, "--namespace", &namespace])
                .args(["--metrics-bind-address=0", "--health-probe-bind-address=0"]),
        );
        operator.wait_for_line("running jobs").await;
        files
            .cluster
            .kubectl(&[
                "create",
                "--namespace",
                &namespace,
                "-f",
                "examples/mxnet/train.yaml",
            ])
            .await
            .success();
        let created = "--for=condition=Created";
        files
            .cluster
            .kubectl(&[
                "wait",
                "--namespace",
                &namespace,
                "mxjob/spirals",
                created,
                "--timeout=60s",
            ])
            .await
            .success();
        assert!(proxy.tunnels() > 0);
    }
}

#[tokio::test]
async fn kubeconfigs_and_flags_of_kubectl_are_read() {
    let files = Kubeconfigs::new(ControlPlane::of_default_kinds().await, "kubeconfigs");
    let token = files.admin["users"][0]["user"]["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let with_newline = files.directory.join("token");
    fs::write(&with_newline, format!("{token}\n")).unwrap();
    let admin = files.write("admin", |_| {});
    let by_token_file = files.write("token-file", |file| {
        file["users"][0]["user"] = json!({ "tokenFile": "token" });
    });
    let without_user = files.write("without-user", |file| file["users"] = json!([]));
    let only_user = files.write("only-user", |file| {
        *file = json!({"apiVersion": "v1", "kind": "Config", "current-context": "", "users": file["users"]});
    });
    let others = files.write("others", |file| {
        let mut other = file["clusters"][0].clone();
        other["name"] = json!("other");
        other["cluster"]["server"] = json!("https://127.0.0.1:9");
        file["clusters"].as_array_mut().unwrap().push(other);
        file["contexts"][0]["context"]["cluster"] = json!("other");
        file["users"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "none", "user": {"token": "wrong"}}));
    });
    let list = format!("{}/absent::{only_user}:{without_user}", files.directory.display());
    let server = files.admin["clusters"][0]["cluster"]["server"].as_str().unwrap();
    let authority = files.admin["clusters"][0]["cluster"]["certificate-authority"]
        .as_str()
        .unwrap();
    let cases: [(&[&str], &str, bool); 16] = [
        (&[], &list, true),
        (&[], &by_token_file, true),
        (&[], &without_user, false),
        (&["--token", &token], &without_user, true),
        (&["--token", "wrong"], &admin, false),
        (&["--cluster", "test"], &others, true),
        (&[], &others, false),
        (&["--cluster", "test", "--user", "none"], &others, false),
        (&["--server", server], &others, true),
        (&["-s", server, "--request-timeout", "5s"], &others, true),
        (
            &["-s", server, "--token", &token, "--insecure-skip-tls-verify"],
            "/dev/null",
            true,
        ),
        (
            &[
                "-s",
                server,
                "--token",
                &token,
                "--certificate-authority",
                authority,
            ],
            "/dev/null",
            true,
        ),
        (&["-s", server, "--token", &token], "/dev/null", false),
        (&["--as", "nobody"], &admin, false),
        (&["--as", "nobody", "--as-group", "system:masters"], &admin, true),
        (&["--tls-server-name", "elsewhere"], &admin, false),
    ];
    for (flags, file, works) in cases {
        let variables = [("KUBECONFIG", file)];
        let of_kubectl = files.kubectl(flags, &variables).await;
        assert_eq!(of_kubectl.code == 0, works, "{file} {flags:?}: {of_kubectl:?}");
        let ours = files.plugin(flags, &variables).await;
        assert_eq!(ours.code == 0, works, "{file} {flags:?}: {ours:?}");
        assert!(ours.stderr.lines().count() <= 1, "{ours:?}");
    }
    for (flags, file, sentence) in [
        (
            &["--token", "wrong"][..],
            &admin,
            "does not accept the credentials of context \"test\" in ",
        ),
        (&[], &others, "https://127.0.0.1:9 of context \"test\" in "),
        (
            &["--tls-server-name", "elsewhere"],
            &admin,
            "has a certificate for other names; use one of its names",
        ),
        (
            &["--context", "absent"],
            &admin,
            "has no context \"absent\"; list the contexts with",
        ),
        (&["--as", "nobody"], &admin, "not allowed to list"),
    ] {
        let refused = files.plugin(flags, &[("KUBECONFIG", file)]).await;
        assert!(refused.stderr.contains(sentence), "{flags:?}: {}", refused.stderr);
    }
    let by_command = files.write("command", |file| {
        file["users"][0]["user"] = json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "interactiveMode": "Never",
            "installHint": "install it with: apt install no-such-plugin\n",
        }});
    });
    let refused = files.plugin(&[], &[("KUBECONFIG", &by_command)]).await;
    assert!(
        refused
            .stderr
            .contains("no-such-plugin\" for its credentials failed: No such file"),
        "{}",
        refused.stderr
    );
    assert!(
        refused
            .stderr
            .ends_with("; install it with: apt install no-such-plugin\n"),
        "{}",
        refused.stderr
    );
}

fn openssl(directory: &Path, arguments: &str) {
    let made = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{arguments}: {}",
        String::from_utf8_lossy(&made.stderr)
    );
}

#[tokio::test]
async fn a_client_certificate_is_sent_unchanged() {
    let directory = std::env::temp_dir().join(format!("client-certificates-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let make = |arguments: &str| openssl(&directory, arguments);
    make("req -x509 -newkey rsa:2048 -nodes -subj /CN=ca -days 2 -keyout ca.key -out ca.crt");
    for (name, key) in [
        ("rsa", "rsa:2048"),
        ("ec", "ec -pkeyopt ec_paramgen_curve:P-256"),
        ("small", "rsa:1024"),
    ] {
        make(&format!(
            "req -newkey {key} -nodes -subj /O=system:masters/CN=admin -keyout {name}.key -out {name}.csr"
        ));
        // Without extensions it has version 1.
        make(&format!(
            "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 1 -out {name}.crt"
        ));
    }
    make("ec -in ec.key -out old-form.key");
    fs::write(directory.join("extensions"), "basicConstraints=CA:FALSE").unwrap();
    let sign = "x509 -req -in rsa.csr -CA ca.crt -CAkey ca.key -CAcreateserial";
    make(&format!("{sign} -days 1 -extfile extensions -out three.crt"));
    make(&format!("{sign} -days -1 -out late.crt"));
    fs::write(directory.join("none.crt"), "none").unwrap();

    let flag = format!("--client-ca-file={}", directory.join("ca.crt").display());
    let cluster: &'static ControlPlane = Box::leak(Box::new(
        ControlPlane::start(Options {
            api_server_flags: vec![flag],
            ..Options::default()
        })
        .await,
    ));
    let files = Kubeconfigs::new(cluster, "certificates-of-users");
    let with = |certificate: &str, key: &str| {
        files.write("kubeconfig", |file| {
            let path = |name: &str| directory.join(name).display().to_string();
            file["users"][0]["user"] =
                json!({"client-certificate": path(certificate), "client-key": path(key)});
        })
    };
    for (certificate, key) in [
        ("rsa.crt", "rsa.key"),
        ("ec.crt", "ec.key"),
        ("ec.crt", "old-form.key"),
        ("three.crt", "rsa.key"),
    ] {
        let file = with(certificate, key);
        let listed = files.plugin(&["--kubeconfig", &file], &[]).await;
        assert_eq!(listed.code, 0, "{certificate} {key}: {listed:?}");
    }
    for (certificate, key, sentence) in [
        ("rsa.crt", "ec.key", "ec.key: must be the key of the certificate "),
        (
            "late.crt",
            "rsa.key",
            "late.crt: the client certificate expired at 20",
        ),
        (
            "none.crt",
            "rsa.key",
            "none.crt: must be a certificate in PEM form",
        ),
        (
            "rsa.crt",
            "none.crt",
            "none.crt: must be a private key in PEM form",
        ),
        (
            "small.crt",
            "small.key",
            "small.key: must be an RSA key of 2048 to 8192 bits",
        ),
        (
            "absent.crt",
            "rsa.key",
            "absent.crt: the client-certificate cannot be read: No such file",
        ),
    ] {
        let file = with(certificate, key);
        let refused = files.plugin(&["--kubeconfig", &file], &[]).await;
        assert_eq!(refused.code, 2, "{certificate} {key}: {refused:?}");
        assert!(
            refused.stderr.contains(sentence),
            "{certificate} {key}: {}",
            refused.stderr
        );
        assert!(
            refused.stderr.contains(&format!("context \"test\" in {file}: ")),
            "{}",
            refused.stderr
        );
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    }
    fs::remove_dir_all(directory).unwrap();
}
