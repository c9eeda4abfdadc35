//! Selects free ports.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;

/// Returns a free port below the range of ports that the kernel assigns to outgoing connections. A connection could
/// take a port of that range while the API server is down, or even connect to itself there.
pub fn free() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = range.split_whitespace().next().and_then(|low| low.parse().ok());
    let end: u64 = end.unwrap_or(32768).max(12_000);
    let mut ports = (0..1000).map(|n| {
        let offset = RandomState::new().hash_one(n) % (end - 10_000);
        u16::try_from(10_000 + offset).expect("a port")
    });
    ports
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}
