//! TLS of the server.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use tokio_rustls::TlsAcceptor;
use watch::tls::{TlsOptions, server_config};

/// Acceptor of TLS with a certificate chain and its key.
///
/// # Errors
/// When a file cannot be read, or the key does not match the certificate.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let read = |path: &Path| {
        fs::read(path).map_err(|error| anyhow::anyhow!(linux::remedy::unread(path, &error)))
    };
    let config = server_config(&read(certificate)?, &read(key)?, TlsOptions::default())
        .with_context(|| format!("{} with {}", certificate.display(), key.display()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
