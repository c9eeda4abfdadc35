//! A proxy between clients and a server of this machine: `CONNECT` and SOCKS5.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// The credentials of a user in `CONNECT`: `me:p@ss`.
const CREDENTIALS: &str = "Basic bWU6cEBzcw==";

pub(super) struct ForwardProxy {
    pub(super) port: u16,
    tunnels: Arc<AtomicUsize>,
}

impl ForwardProxy {
    /// Starts a proxy that connects every name to this machine, at the port that is requested. A `CONNECT` needs the
    /// user `me` with the password `p@ss`.
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tunnels = Arc::new(AtomicUsize::new(0));
        let count = tunnels.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let count = count.clone();
                // A client that goes away ends its tunnel.
                tokio::spawn(async move { tunnel(client, &count).await.unwrap_or_default() });
            }
        });
        Self { port, tunnels }
    }

    /// Returns the number of tunnels since the last call.
    pub(super) fn tunnels(&self) -> usize {
        self.tunnels.swap(0, Ordering::Relaxed)
    }
}

async fn tunnel(mut client: TcpStream, count: &AtomicUsize) -> std::io::Result<()> {
    let mut first = [0];
    client.peek(&mut first).await?;
    let port = match first {
        [5] => accept_socks(&mut client).await?,
        _ => accept_connect(&mut client).await?,
    };
    let Some(port) = port else { return Ok(()) };
    count.fetch_add(1, Ordering::Relaxed);
    let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
    copy_bidirectional(&mut client, &mut server).await.map(|_| ())
}

async fn accept_connect(client: &mut TcpStream) -> std::io::Result<Option<u16>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    if !head.contains(CREDENTIALS) {
        client
            .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            .await?;
        return Ok(None);
    }
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    let server = head.split(' ').nth(1).unwrap();
    Ok(Some(server.rsplit(':').next().unwrap().parse().unwrap()))
}

async fn accept_socks(client: &mut TcpStream) -> std::io::Result<Option<u16>> {
    let mut head = [0; 2];
    client.read_exact(&mut head).await?;
    client.read_exact(&mut vec![0; usize::from(head[1])]).await?;
    client.write_all(&[5, 0]).await?;
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    let length = match request[3] {
        1 => 4,
        3 => usize::from(client.read_u8().await?),
        _ => 16,
    };
    client.read_exact(&mut vec![0; length]).await?;
    let port = client.read_u16().await?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    Ok(Some(port))
}
