//! TLS.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// What accepts TLS with a certificate chain and its key.
///
/// # Errors
/// When they cannot be read, or do not belong together.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let name = |path: &Path| format!("{}", path.display());
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)
        .with_context(|| name(certificate))?
        .collect();
    let chain = chain.with_context(|| name(certificate))?;
    let key = PrivateKeyDer::from_pem_file(key).with_context(|| name(key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("the certificate and the key cannot be used together")?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
