//! Ports of a test's own.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Ports below those that the kernel gives to whoever asks for any (`ip_local_port_range` in ip(7)).
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A port on which nobody listens. No other test gets it as long as this process lives: each takes an abstract name
/// (unix(7)) that stands for its port and goes with the process.
pub(crate) fn free_port() -> u16 {
    let count = u32::from(PORTS.end - PORTS.start);
    // Processes that begin together look at different ports first.
    let first = std::process::id().wrapping_mul(97) % count;
    let mut ports = (0..count).map(|more| PORTS.start + ((first + more) % count) as u16);
    ports.find(take).unwrap()
}

fn take(port: &u16) -> bool {
    let name = format!("disksmith-test-port-{port}");
    let name = SocketAddr::from_abstract_name(name).unwrap();
    let Ok(taken) = UnixListener::bind_addr(&name) else {
        return false;
    };
    let is_free = TcpListener::bind(("127.0.0.1", *port)).is_ok();
    if is_free {
        // It is held to the end of the process.
        Box::leak(Box::new(taken));
    }
    is_free
}
