//! The server: connections, admission, routes and answers.

mod access;
pub(crate) mod app;
pub(crate) mod events;
pub(crate) mod guard;
pub(crate) mod live;
mod params;
mod reply;
pub(crate) mod routes;
pub(crate) mod server;
mod stream;
pub(crate) mod tls;
pub(crate) mod tokens;
