//! The service manager that has started this process.

use std::os::unix::net::UnixDatagram;

/// Tells systemd (`Type=notify`) about a state, where it has started this.
pub fn notify(state: &str) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET")
        && let Ok(sender) = UnixDatagram::unbound()
    {
        // Nothing depends on it here; systemd says what it misses.
        let _ = sender.send_to(state.as_bytes(), socket);
    }
}
