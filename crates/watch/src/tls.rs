//! TLS of the servers of disksmith.

use std::sync::Arc;

use anyhow::Context as _;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::{DEFAULT_VERSIONS, ServerConfig, SupportedProtocolVersion};

/// Options of TLS in addition to the certificate.
pub struct TlsOptions {
    /// Cipher suites and key exchanges.
    pub provider: Arc<CryptoProvider>,
    /// Versions of TLS.
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// Verifier of clients' certificates; none is requested without one.
    pub clients: Option<Arc<dyn ClientCertVerifier>>,
}

impl Default for TlsOptions {
    /// The defaults of rustls, without certificates of clients.
    fn default() -> TlsOptions {
        TlsOptions {
            provider: Arc::new(ring::default_provider()),
            versions: DEFAULT_VERSIONS.to_vec(),
            clients: None,
        }
    }
}

/// Settings of a server with this certificate chain and its key, both in PEM.
///
/// # Errors
/// When they cannot be parsed, or the key is not the certificate's.
pub fn server_config(
    chain: &[u8],
    key: &[u8],
    choices: TlsOptions,
) -> anyhow::Result<ServerConfig> {
    let chain = certificates(chain).context("the certificate cannot be read")?;
    let key = PrivateKeyDer::from_pem_slice(key).context("the key cannot be read")?;
    let builder = ServerConfig::builder_with_provider(choices.provider)
        .with_protocol_versions(&choices.versions)?;
    let builder = match choices.clients {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .context("the certificate and the key cannot be used together")?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The certificates of a PEM text, at least one.
///
/// # Errors
/// When one is malformed, or there is none.
pub(crate) fn certificates(pem: &[u8]) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all?;
    anyhow::ensure!(!all.is_empty(), "no certificate (PEM) is in it");
    Ok(all)
}
