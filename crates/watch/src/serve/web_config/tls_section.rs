//! `tls_server_config`: certificate, versions, cipher suites, and clients that may connect.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
    SupportedCipherSuite, SupportedProtocolVersion,
};
use serde::Deserialize;

use crate::tls::{TlsOptions, certificates, server_config};

/// Cipher suites of Go (crypto/tls, `CipherSuites` and `InsecureCipherSuites`) that a list may name but that are not
/// offered.
const NOT_OFFERED: [&str; 8] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
];

/// Content of the section; empty texts count as missing.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TlsSection {
    cert: String,
    key: String,
    client_ca: String,
    cert_file: String,
    key_file: String,
    client_auth_type: String,
    client_ca_file: String,
    client_allowed_sans: Option<Vec<String>>,
    cipher_suites: Option<Vec<String>>,
    curve_preferences: Option<Vec<String>>,
    min_version: Option<Version>,
    max_version: Option<Version>,
    prefer_server_cipher_suites: Option<bool>,
}

/// A version of TLS, by its name in the file.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    #[serde(rename = "TLS10")]
    Tls10,
    #[serde(rename = "TLS11")]
    Tls11,
    #[serde(rename = "TLS12")]
    Tls12,
    #[serde(rename = "TLS13")]
    Tls13,
}

impl TlsSection {
    /// The settings; `None` where the section has no option that turns on TLS.
    ///
    /// # Errors
    /// When something is missing, unknown, contradicts another line, or cannot be read.
    pub(super) fn config(self, folder: &Path) -> anyhow::Result<Option<ServerConfig>> {
        let starts_tls = [
            &self.cert,
            &self.key,
            &self.client_ca,
            &self.cert_file,
            &self.key_file,
            &self.client_auth_type,
            &self.client_ca_file,
        ];
        if starts_tls.iter().all(|text| text.is_empty()) {
            return Ok(None);
        }
        let chain = inline_or_file("cert", &self.cert, &self.cert_file, folder)?;
        let chain = chain.context("one of cert and cert_file is missing")?;
        let key = inline_or_file("key", &self.key, &self.key_file, folder)?;
        let key = key.context("one of key and key_file is missing")?;
        let provider = Arc::new(self.provider()?);
        let choices = TlsOptions {
            versions: self.versions()?,
            clients: self.clients(folder, &provider)?,
            provider,
        };
        let mut config = server_config(&chain, &key, choices)?;
        config.ignore_client_order = self.prefer_server_cipher_suites.unwrap_or(true);
        Ok(Some(config))
    }

    /// The versions from `min_version` to `max_version`. Those before 1.2 are not supported (RFC 8996).
    fn versions(&self) -> anyhow::Result<Vec<&'static SupportedProtocolVersion>> {
        let least = self.min_version.unwrap_or(Version::Tls12);
        let most = self.max_version.unwrap_or(Version::Tls13);
        let all = [(Version::Tls12, &TLS12), (Version::Tls13, &TLS13)];
        let chosen: Vec<_> = all
            .into_iter()
            .filter(|(version, _)| (least..=most).contains(version))
            .map(|(_, version)| version)
            .collect();
        ensure!(
            !chosen.is_empty(),
            "no version from min_version to max_version is supported; TLS12 and TLS13 are"
        );
        Ok(chosen)
    }

    /// Cipher suites and key exchanges. The list of suites is for TLS 1.2; those of 1.3 are always offered.
    fn provider(&self) -> anyhow::Result<CryptoProvider> {
        let mut provider = ring::default_provider();
        if let Some(names) = self
            .cipher_suites
            .as_ref()
            .filter(|names| !names.is_empty())
        {
            let of_13 = |suite: &SupportedCipherSuite| suite.tls13().is_some();
            let mut chosen: Vec<_> = provider
                .cipher_suites
                .iter()
                .copied()
                .filter(of_13)
                .collect();
            for name in names {
                chosen.extend(suite_named(&provider, name)?.filter(|suite| !of_13(suite)));
            }
            provider.cipher_suites = chosen;
        }
        if let Some(names) = self
            .curve_preferences
            .as_ref()
            .filter(|names| !names.is_empty())
        {
            let curves: Result<Vec<_>, _> = names.iter().map(|name| curve_named(name)).collect();
            provider.kx_groups = curves?.into_iter().flatten().collect();
            ensure!(
                !provider.kx_groups.is_empty(),
                "none of curve_preferences is offered here; these are: X25519, CurveP256, CurveP384"
            );
        }
        Ok(provider)
    }

    /// The verifier of clients' certificates, where they are requested.
    fn clients(
        &self,
        folder: &Path,
        provider: &Arc<CryptoProvider>,
    ) -> anyhow::Result<Option<Arc<dyn ClientCertVerifier>>> {
        let authorities =
            inline_or_file("client_ca", &self.client_ca, &self.client_ca_file, folder)?;
        let is_required = match (self.client_auth_type.as_str(), &authorities) {
            ("" | "NoClientCert", None) => {
                ensure!(
                    self.client_allowed_sans.is_none(),
                    "client_allowed_sans needs client_auth_type: RequireAndVerifyClientCert"
                );
                return Ok(None);
            }
            ("" | "NoClientCert", Some(_)) => {
                bail!("client_ca is given, but client_auth_type requests no certificate")
            }
            ("RequireAndVerifyClientCert", Some(_)) => true,
            ("RequireAndVerifyClientCert", None) => {
                bail!("client_auth_type RequireAndVerifyClientCert needs client_ca_file")
            }
            // Clients without a certificate are accepted, and without an authority none could be verified: so none is
            // requested.
            ("VerifyClientCertIfGiven", None) => return Ok(None),
            ("VerifyClientCertIfGiven", Some(_)) => false,
            (
                unverified @ ("RequestClientCert" | "RequireAnyClientCert" | "RequireClientCert"),
                _,
            ) => bail!(
                "client_auth_type {unverified} takes any certificate without verifying it, which protects \
                 nothing; use RequireAndVerifyClientCert with client_ca_file"
            ),
            (other, _) => bail!(
                "client_auth_type '{other}' is not known; use NoClientCert, VerifyClientCertIfGiven or \
                 RequireAndVerifyClientCert"
            ),
        };
        let authorities = authorities.unwrap_or_default();
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&authorities).context("client_ca")? {
            roots.add(certificate).context("client_ca")?;
        }
        let builder =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let chain = match is_required {
            true => builder.build(),
            false => builder.allow_unauthenticated().build(),
        };
        let chain = chain.context("client_ca")?;
        Ok(Some(match self.client_allowed_sans.clone() {
            None => chain,
            Some(names) => Arc::new(NamedClients {
                chain,
                names: checked_names(names)?,
            }),
        }))
    }
}

/// A text that is given either inline or as the name of a file.
fn inline_or_file(
    key: &str,
    inline: &str,
    file: &str,
    folder: &Path,
) -> anyhow::Result<Option<Vec<u8>>> {
    match (inline, file) {
        ("", "") => Ok(None),
        (text, "") => Ok(Some(text.as_bytes().to_vec())),
        ("", file) => {
            let path = folder.join(file);
            let bytes = fs::read(&path)
                .map_err(|error| anyhow::anyhow!(linux::remedy::unread(&path, &error)));
            bytes.map(Some)
        }
        _ => bail!("{key} and {key}_file are both given; leave one out"),
    }
}

/// The cipher suite with this name, which is the same in rustls and Go except for ChaCha20 and the suites of TLS 1.3.
/// `None` for a suite of Go that rustls does not offer, since its encryption is weak or it has no forward secrecy.
fn suite_named(
    provider: &CryptoProvider,
    name: &str,
) -> anyhow::Result<Option<SupportedCipherSuite>> {
    if NOT_OFFERED.contains(&name) {
        return Ok(None);
    }
    let suites = || {
        provider.cipher_suites.iter().map(|suite| {
            let name = format!("{:?}", suite.suite());
            (name.replace("TLS13_", "TLS_"), *suite)
        })
    };
    let sought = match name {
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        other => other,
    };
    match suites().find(|(one, _)| one == sought) {
        Some((_, suite)) => Ok(Some(suite)),
        None => {
            let names: Vec<String> = suites().map(|(name, _)| name).collect();
            bail!(
                "the cipher suite '{name}' is not known; these are offered: {}",
                names.join(", ")
            )
        }
    }
}

/// The key exchange with this name of a curve in Go; `None` for one that is not offered.
fn curve_named(name: &str) -> anyhow::Result<Option<&'static dyn SupportedKxGroup>> {
    Ok(match name {
        "X25519" => Some(ring::kx_group::X25519),
        "CurveP256" => Some(ring::kx_group::SECP256R1),
        "CurveP384" => Some(ring::kx_group::SECP384R1),
        "CurveP521" | "X25519MLKEM768" => None,
        _ => bail!(
            "the curve '{name}' is not known; these are offered: X25519, CurveP256, CurveP384"
        ),
    })
}

/// Checks that the names can be compared with those of a certificate.
fn checked_names(names: Vec<String>) -> anyhow::Result<Vec<String>> {
    let mail = names
        .iter()
        .find(|name| name.contains('@') && !name.contains("://"));
    match mail {
        Some(name) => bail!(
            "client_allowed_sans: '{name}' is an e-mail address, which is not compared here; \
             use a DNS name, a URI or an IP address of the certificate"
        ),
        None => Ok(names),
    }
}

/// Verifier of clients: their certificate must be valid and contain one of these names.
#[derive(Debug)]
struct NamedClients {
    chain: Arc<dyn ClientCertVerifier>,
    names: Vec<String>,
}

impl NamedClients {
    fn is_named(&self, certificate: &CertificateDer<'_>) -> Result<bool, webpki::Error> {
        let certificate = webpki::EndEntityCert::try_from(certificate)?;
        let texts = certificate
            .valid_dns_names()
            .chain(certificate.valid_uri_names());
        let is_text = texts
            .into_iter()
            .any(|name| self.names.iter().any(|one| one == name));
        let has_address = |name: &String| {
            name.parse::<IpAddr>().is_ok_and(|address| {
                certificate
                    .verify_is_valid_for_subject_name(&ServerName::from(address))
                    .is_ok()
            })
        };
        Ok(is_text || self.names.iter().any(has_address))
    }
}

impl ClientCertVerifier for NamedClients {
    fn offer_client_auth(&self) -> bool {
        self.chain.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.chain.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self
            .chain
            .verify_client_cert(certificate, intermediates, now)?;
        match self.is_named(certificate) {
            Ok(true) => Ok(verified),
            _ => Err(Error::General(
                "the client's certificate has none of client_allowed_sans".to_owned(),
            )),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
