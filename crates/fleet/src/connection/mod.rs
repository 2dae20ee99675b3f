//! Connections to hosts: OpenSSH, sessions with the agents on them, and a thread for each.

mod errors;
pub(crate) mod machines;
mod openssh;
pub(crate) mod pool;
mod program;
pub(crate) mod session;
#[cfg(test)]
mod simulated;
pub(crate) mod transport;

pub(crate) use openssh::OpenSsh;
pub(crate) use program::Program;
#[cfg(test)]
pub(crate) use simulated::{
    EARLIER_RUN, LATE_HOST_TIMEOUT, SimulatedTransport, hosts as simulated_hosts,
};
pub(crate) use transport::{ConnectionError, Transport};
