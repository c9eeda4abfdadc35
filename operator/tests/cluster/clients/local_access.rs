//! Other users of the machine and `local cluster`.

use std::io::Read as _;
use std::net::TcpStream;

use super::local_cluster::Local;

/// More connections than the cluster keeps of clients without the token.
const CONNECTIONS: usize = 300;

#[tokio::test]
async fn a_client_without_the_token_gets_nothing_and_keeps_nobody_away() {
    let local = Local::start("local-access").await;
    let server = [
        "config",
        "view",
        "--raw",
        "-o",
        "jsonpath={.clusters[0].cluster.server}",
    ];
    let server = local.run(&server).await;
    let to_server = [
        "--kubeconfig",
        "/dev/null",
        "--server",
        &server,
        "--insecure-skip-tls-verify",
    ];
    for secrets in [&["--token", "wrong"][..], &["--username", "a", "--password", "b"]] {
        let get = [&to_server[..], secrets, &["get", "--raw", "/version"]].concat();
        let refused = local.real.kubectl_with_input(&get, "").await;
        assert!(
            refused.stderr.contains("Unauthorized"),
            "{secrets:?}: {}",
            refused.stderr
        );
    }

    let address = server.trim_start_matches("https://");
    let connect = |_| TcpStream::connect(address).unwrap();
    let mut silent: Vec<TcpStream> = (0..CONNECTIONS).map(connect).collect();
    let ended = tokio::task::spawn_blocking(move || {
        let read = silent[0].read(&mut [0]);
        (read, silent)
    });
    let (read, _silent) = ended.await.unwrap();
    assert!(
        !matches!(read, Ok(1..)),
        "the oldest connection is ended: {read:?}"
    );
    local.run(&["get", "namespaces"]).await;
    local.stop().await;
}
