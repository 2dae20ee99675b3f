//! Access control of the metrics: TLS, passwords and a rate limit, from a web configuration file.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::ensure;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};
use ui::context::notice;
use ui::exit::sentence;

use super::web_config::{RateLimit, WebConfig};

/// Maximum number of verified passwords that are cached: computing a bcrypt hash takes 70 ms and more by design.
const MAX_CACHED_PASSWORDS: usize = 128;

/// Access control of the metrics. The file is read again for each connection, so that a renewed certificate or a new
/// user needs no restart.
pub(crate) struct Guard {
    file: Option<PathBuf>,
    at_start: WebConfig,
    /// SHA-256 over user, hash and password, for each verified password.
    right: Mutex<HashSet<[u8; 32]>>,
    bucket: Mutex<Option<Bucket>>,
    /// Problem of the file that was reported last.
    reported: Mutex<String>,
}

/// Reason for refusing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No password, or a wrong one.
    Unauthorized,
    /// Too many requests came.
    TooMany,
}

impl Guard {
    /// A guard with this file; without a file it refuses nothing.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub(crate) fn new(file: Option<PathBuf>) -> anyhow::Result<Guard> {
        let at_start = file.as_deref().map(WebConfig::read).transpose()?;
        Ok(Guard {
            file,
            at_start: at_start.unwrap_or_default(),
            right: Mutex::default(),
            bucket: Mutex::default(),
            reported: Mutex::default(),
        })
    }

    /// True if TLS was on from the start.
    pub(super) fn has_tls(&self) -> bool {
        self.at_start.tls.is_some()
    }

    /// Current content of the file. `None` where it is invalid, or protects less than at the start, which is reported
    /// once.
    pub(super) fn now(&self) -> Option<WebConfig> {
        let Some(file) = &self.file else {
            return Some(self.at_start.clone());
        };
        let read = WebConfig::read(file).and_then(|config| {
            ensure!(
                !config.protects_less_than(&self.at_start),
                "{}: TLS or passwords are gone from it; restart to serve without",
                file.display()
            );
            Ok(config)
        });
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(config) => {
                reported.clear();
                Some(config)
            }
            Err(error) => {
                let problem = sentence(&error);
                if *reported != problem {
                    notice(&format!("No metrics are served: {problem}."));
                    *reported = problem;
                }
                None
            }
        }
    }

    /// Reason to refuse a request with this `Authorization`; `None` where there is none.
    pub(super) fn refuses(
        &self,
        config: &WebConfig,
        authorization: Option<&str>,
        now: Instant,
    ) -> Option<Refusal> {
        if let Some(limit) = config.rate {
            let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
            let bucket = bucket.get_or_insert_with(|| Bucket::full(limit, now));
            if !bucket.takes(limit, now) {
                return Some(Refusal::TooMany);
            }
        }
        let is_admitted = config.users.is_empty()
            || authorization
                .and_then(basic)
                .is_some_and(|(user, password)| self.is_right(config, &user, &password));
        (!is_admitted).then_some(Refusal::Unauthorized)
    }

    /// True if the password is the user's. Only one password is verified at a time, and an unknown user takes as long
    /// as a known one.
    fn is_right(&self, config: &WebConfig, user: &str, password: &str) -> bool {
        let known = config.users.get(user);
        let Some(hash) = known.or_else(|| config.users.values().next()) else {
            return false;
        };
        let key = [user, hash, password]
            .iter()
            .fold(Sha256::new(), |sum, text| {
                sum.chain_update(Sha256::digest(text))
            });
        let key: [u8; 32] = key.finalize().into();
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        if right.contains(&key) {
            return true;
        }
        let is_right = bcrypt::verify(password, hash).unwrap_or(false) && known.is_some();
        if is_right {
            if right.len() >= MAX_CACHED_PASSWORDS {
                right.clear();
            }
            right.insert(key);
        }
        is_right
    }
}

/// User and password of `Basic …` (RFC 7617).
fn basic(authorization: &str) -> Option<(String, String)> {
    let (scheme, credentials) = authorization.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(BASE64_STANDARD.decode(credentials.trim()).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// Token bucket of requests.
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn full(limit: RateLimit, now: Instant) -> Bucket {
        Bucket {
            tokens: f64::from(limit.burst),
            filled: now,
        }
    }

    /// Takes a token; false if there is none.
    fn takes(&mut self, limit: RateLimit, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.filled);
        let more = passed.as_secs_f64() / limit.interval.as_secs_f64();
        self.tokens = (self.tokens + more).min(f64::from(limit.burst));
        self.filled = now;
        let has_one = self.tokens >= 1.0;
        if has_one {
            self.tokens -= 1.0;
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    /// Hash of "secret", by `htpasswd -nbBC 4`.
    fn hash() -> String {
        bcrypt::hash("secret", 4).unwrap()
    }

    fn guard(text: &str) -> (tempfile::TempDir, Guard) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("web.yml");
        fs::write(&file, text).unwrap();
        let guard = Guard::new(Some(file)).unwrap();
        (folder, guard)
    }

    fn header(text: &str) -> String {
        format!("Basic {}", BASE64_STANDARD.encode(text))
    }

    #[test]
    fn only_the_right_password_of_a_known_user_passes() {
        let (_folder, guard) = guard(&format!("basic_auth_users:\n  scraper: {}\n", hash()));
        let config = guard.now().unwrap();
        let refused =
            |authorization: Option<&str>| guard.refuses(&config, authorization, Instant::now());
        let wrong = Some(Refusal::Unauthorized);
        assert_eq!(refused(None), wrong);
        assert_eq!(refused(Some("Bearer secret")), wrong);
        assert_eq!(refused(Some("Basic !")), wrong);
        assert_eq!(refused(Some(&header("scraper"))), wrong);
        assert_eq!(refused(Some(&header("scraper:Secret"))), wrong);
        // Twice: a verified password is cached, and a wrong one is not.
        for _ in 0..2 {
            assert_eq!(refused(Some(&header("scraper:secret"))), None);
            assert_eq!(refused(Some(&header("other:secret"))), wrong);
        }
        let lower = header("scraper:secret").replace("Basic", "basic");
        assert_eq!(refused(Some(&lower)), None);
    }

    #[test]
    fn a_file_that_loses_its_passwords_opens_nothing() {
        let text = format!("basic_auth_users:\n  scraper: {}\n", hash());
        let (folder, guard) = guard(&text);
        let file = folder.path().join("web.yml");
        for broken in [
            "",
            "rate_limit:\n  burst: 1\n",
            "basic_auth_users: [\n",
            "other: 1\n",
        ] {
            fs::write(&file, broken).unwrap();
            assert!(guard.now().is_none(), "{broken:?}");
        }
        fs::remove_file(&file).unwrap();
        assert!(guard.now().is_none());
        // A new password counts without a restart, and the old one no longer.
        fs::write(&file, text).unwrap();
        let before = guard.now().unwrap();
        let old = header("scraper:secret");
        assert_eq!(guard.refuses(&before, Some(&old), Instant::now()), None);
        let new = bcrypt::hash("other", 4).unwrap();
        fs::write(&file, format!("basic_auth_users:\n  scraper: {new}\n")).unwrap();
        let after = guard.now().unwrap();
        assert!(guard.refuses(&after, Some(&old), Instant::now()).is_some());
        let new = header("scraper:other");
        assert_eq!(guard.refuses(&after, Some(&new), Instant::now()), None);
    }

    #[test]
    fn a_burst_passes_and_then_one_an_interval() {
        let (_folder, guard) = guard("rate_limit:\n  interval: 2s\n  burst: 3\n");
        let config = guard.now().unwrap();
        let start = Instant::now();
        let passes = |seconds: f64| {
            let at = start + Duration::from_secs_f64(seconds);
            guard.refuses(&config, None, at).is_none()
        };
        let seen: Vec<bool> = [
            0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.1, 3.9, 4.1, 100.0, 100.0, 100.0, 100.0,
        ]
        .into_iter()
        .map(passes)
        .collect();
        let expected = [
            true, true, true, false, false, true, false, false, true, true, true, true, false,
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn without_a_file_all_pass() {
        let guard = Guard::new(None).unwrap();
        let config = guard.now().unwrap();
        assert_eq!(guard.refuses(&config, None, Instant::now()), None);
        assert!(!guard.has_tls());
    }
}
