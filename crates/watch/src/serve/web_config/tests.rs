use super::*;

/// A certificate with the names `db1.example`, `spiffe://example/db1` and 192.0.2.7, its key, and the authority that
/// signed it, made once with openssl and valid until 2126.
const CHAIN: &str = include_str!("fixtures/server.crt");
const KEY: &str = include_str!("fixtures/server.key");
const AUTHORITY: &str = include_str!("fixtures/ca.crt");

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("server.crt", CHAIN),
        ("server.key", KEY),
        ("ca.crt", AUTHORITY),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn parse(text: &str) -> Result<WebConfig, String> {
    WebConfig::parse(text, folder().path()).map_err(|error| ui::exit::sentence(&error))
}

/// Section `tls_server_config` with a certificate and these lines.
fn tls(lines: &str) -> String {
    format!("tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n{lines}")
}

#[test]
fn nothing_written_protects_nothing() {
    for text in [
        "",
        "# only a comment\n",
        "tls_server_config:\n",
        "tls_server_config: {}\n",
    ] {
        let config = parse(text).unwrap();
        assert!(config.tls.is_none() && config.users.is_empty(), "{text:?}");
    }
}

#[test]
fn a_whole_file_is_taken() {
    let hash = bcrypt::hash("secret", 4).unwrap();
    let text = format!(
        "{}http_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: deny\n    \
         Content-Security-Policy: \"\"\nbasic_auth_users:\n  scraper: {hash}\nrate_limit:\n  interval: 1s\n  burst: 20\n",
        tls("  min_version: TLS13\n  max_version: TLS13\n  curve_preferences: [CurveP256]\n")
    );
    let config = parse(&text).unwrap();
    let tls = config.tls.unwrap();
    let groups: Vec<_> = tls
        .crypto_provider()
        .kx_groups
        .iter()
        .map(|group| group.name())
        .collect();
    assert_eq!(groups, [rustls::NamedGroup::secp256r1]);
    assert_eq!(
        config.headers,
        [("X-Frame-Options".to_owned(), "deny".to_owned())]
    );
    assert_eq!(config.users["scraper"], hash);
    let limit = RateLimit {
        interval: Duration::from_secs(1),
        burst: 20,
    };
    assert_eq!(config.rate, Some(limit));
    assert_eq!(parse("rate_limit:\n  interval: 0\n").unwrap().rate, None);
    assert_eq!(parse("rate_limit:\n  interval: 0s\n").unwrap().rate, None);
}

#[test]
fn a_certificate_may_stand_in_the_file_itself() {
    let indented = |text: &str| text.replace('\n', "\n    ");
    let text = format!(
        "tls_server_config:\n  cert: |\n    {}\n  key: |\n    {}\n",
        indented(CHAIN),
        indented(KEY)
    );
    assert!(parse(&text).unwrap().tls.is_some());
}

#[test]
fn the_cipher_suites_of_the_list_are_offered_with_those_of_1_3() {
    let suites = |names: &str| {
        let config = parse(&tls(&format!("  cipher_suites: [{names}]\n")));
        let tls = config.unwrap().tls.unwrap();
        let suites = tls.crypto_provider().cipher_suites.iter();
        suites
            .map(|suite| format!("{:?}", suite.suite()))
            .collect::<Vec<_>>()
    };
    let all = suites("");
    assert_eq!(all.len(), 9);
    let few = suites(
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    );
    assert_eq!(
        few.iter().filter(|name| name.starts_with("TLS13")).count(),
        3
    );
    assert_eq!(
        few[3..],
        [
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
        ]
    );
}

/// These options are from Go's documentation and the exporters' examples.
#[test]
fn options_of_go_that_are_not_offered_may_be_named_beside_others() {
    for lines in [
        "  cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\n",
        "  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA]\n",
        "  curve_preferences: [CurveP521, X25519]\n",
        "  client_auth_type: VerifyClientCertIfGiven\n",
    ] {
        assert!(parse(&tls(lines)).unwrap().tls.is_some(), "{lines}");
    }
}

#[test]
fn clients_are_verified_only_against_an_authority() {
    let good = tls("  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n");
    assert!(parse(&good).unwrap().tls.is_some());
    let good = tls(
        "  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: ca.crt\n  client_allowed_sans: [db1.example]\n",
    );
    assert!(parse(&good).unwrap().tls.is_some());
}

/// Mistakes, each with the text that the answer must have.
#[test]
fn mistakes_are_refused_with_their_place() {
    for (text, expected) in [
        ("other: 1\n", "other"),
        ("tls_server_config:\n  certfile: a\n", "certfile"),
        ("basic_auth_users: [a]\n", "basic_auth_users"),
        (
            "basic_auth_users:\n  a: secret\n",
            "the password of 'a' is not a bcrypt hash",
        ),
        (
            "http_server_config:\n  headers:\n    X-Other: a\n",
            "'X-Other' cannot be set",
        ),
        (
            "http_server_config:\n  headers:\n    X-Frame-Options: DENY\n",
            "allowed: deny, sameorigin",
        ),
        (
            "http_server_config:\n  headers:\n    X-XSS-Protection: \"a\\r\\nb: c\"\n",
            "line break",
        ),
        ("rate_limit:\n  interval: 1s\n", "burst is 0"),
        ("rate_limit:\n  interval: soon\n  burst: 1\n", "interval"),
        (
            "tls_server_config:\n  cert_file: server.crt\n",
            "key_file is missing",
        ),
        (
            "tls_server_config:\n  key_file: server.key\n",
            "cert_file is missing",
        ),
        (
            "tls_server_config:\n  cert_file: absent\n  key_file: server.key\n",
            "absent",
        ),
        (
            "tls_server_config:\n  cert_file: server.key\n  key_file: server.key\n",
            "no certificate",
        ),
        (
            "tls_server_config:\n  cert_file: server.crt\n  key_file: server.crt\n",
            "the key cannot be read",
        ),
        (
            "tls_server_config:\n  cert_file: ca.crt\n  key_file: server.key\n",
            "together",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
    for (lines, expected) in [
        ("  cert: x\n", "both given"),
        ("  min_version: TLS14\n", "TLS14"),
        ("  max_version: TLS11\n", "TLS12 and TLS13"),
        (
            "  min_version: TLS13\n  max_version: TLS12\n",
            "TLS12 and TLS13",
        ),
        (
            "  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA2048]\n",
            "not known",
        ),
        (
            "  curve_preferences: [CurveP521]\n",
            "none of curve_preferences",
        ),
        (
            "  curve_preferences: [CurveP257]\n",
            "'CurveP257' is not known",
        ),
        ("  client_auth_type: Maybe\n", "'Maybe' is not known"),
        (
            "  client_auth_type: RequireAnyClientCert\n",
            "protects nothing",
        ),
        (
            "  client_auth_type: RequireAndVerifyClientCert\n",
            "needs client_ca_file",
        ),
        ("  client_ca_file: ca.crt\n", "requests no certificate"),
        ("  client_allowed_sans: [a]\n", "needs client_auth_type"),
        (
            "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n  client_allowed_sans: [a@b.example]\n",
            "e-mail",
        ),
    ] {
        let error = parse(&tls(lines)).unwrap_err();
        assert!(error.contains(expected), "{lines}: {error}");
    }
}
