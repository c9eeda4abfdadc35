//! Other users of the machine and `local cluster`.

use std::io::{ErrorKind, Read as _};
use std::net::TcpStream;
use std::time::Duration;

use super::local_cluster::Local;

/// More connections than the cluster keeps of clients without the token.
const CONNECTIONS: usize = 300;

/// After 10 s each of them would end.
const BEFORE_THE_HANDSHAKE_IS_DUE: Duration = Duration::from_secs(8);

#[tokio::test]
async fn a_client_without_the_token_is_refused_and_blocks_no_other() {
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
    let silent: Vec<TcpStream> = (0..CONNECTIONS).map(connect).collect();
    silent[0]
        .set_read_timeout(Some(BEFORE_THE_HANDSHAKE_IS_DUE))
        .unwrap();
    let (read, _silent) = tokio::task::spawn_blocking(move || ((&silent[0]).read(&mut [0]), silent))
        .await
        .unwrap();
    let is_ended = match &read {
        Ok(count) => *count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    };
    assert!(is_ended, "the oldest connection is open: {read:?}");
    local.run(&["get", "namespaces"]).await;
    local.stop().await;
}
