//! Tokens, stored as hashes only, and sessions of browsers that have signed in with a token.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

use crate::sources::pool::lock;
use ui::format::hex;

/// Length of the secret of a token or session in bytes. It cannot be guessed, so a plain hash, without salt or
/// stretching, is enough.
const SECRET_BYTES: usize = 32;
/// Time after which a session expires.
const SESSION_TIME: Duration = Duration::from_secs(12 * 3600);
/// Maximum number of sessions; a further one replaces the oldest.
const MAX_SESSIONS: usize = 1000;
/// Maximum number of lines of a token file.
const MAX_FILE_LINES: usize = 1000;

/// SHA-256 of a secret.
type Hash = [u8; 32];

/// Permission of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Read everything.
    Read,
    /// Read everything, and set markers.
    Write,
}

impl Role {
    /// The role's word in the token file.
    fn name(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Write => "write",
        }
    }
}

/// A line of the token file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    role: Role,
    hash: Hash,
}

/// A browser that has signed in.
struct Session {
    began: Instant,
    /// Hash of the token that the browser signed in with.
    token: Hash,
}

/// Modification time and inode of the file.
type FileStamp = (SystemTime, u64, u64);

/// The tokens of a file, and the sessions of browsers.
pub(crate) struct Tokens {
    path: PathBuf,
    read: Mutex<(Option<FileStamp>, Vec<Entry>)>,
    sessions: Mutex<HashMap<Hash, Session>>,
}

impl Tokens {
    /// Reads a token file.
    ///
    /// # Errors
    /// When the file cannot be read, has no token, or other users may write it.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Tokens> {
        let entries = read(path)?;
        Ok(Tokens {
            path: path.to_owned(),
            read: Mutex::new((stamp(path), entries)),
            sessions: Mutex::new(HashMap::new()),
        })
    }

    /// The current entries of the file, which is read again when it has changed; empty if it can no longer be read.
    fn entries(&self) -> Vec<Entry> {
        let mut read_before = lock(&self.read);
        let now = stamp(&self.path);
        if now.is_none() || read_before.0 != now {
            *read_before = (now, read(&self.path).unwrap_or_default());
        }
        read_before.1.clone()
    }

    /// Role of a token; `None` if the token is not in the file.
    pub(crate) fn role(&self, token: &str) -> Option<Role> {
        role_of(&self.entries(), &hash(token))
    }

    /// Signs a browser in, and returns the secret of its session; `None` for a wrong token.
    pub(crate) fn sign_in(&self, token: &str) -> anyhow::Result<Option<String>> {
        if self.role(token).is_none() {
            return Ok(None);
        }
        let secret = secret()?;
        let mut sessions = lock(&self.sessions);
        sessions.retain(|_, session| session.began.elapsed() < SESSION_TIME);
        if sessions.len() >= MAX_SESSIONS {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.began);
            let oldest = oldest.map(|(key, _)| *key);
            oldest.map(|key| sessions.remove(&key));
        }
        sessions.insert(
            hash(&secret),
            Session {
                began: Instant::now(),
                token: hash(token),
            },
        );
        Ok(Some(secret))
    }

    /// Role of a session; `None` if the session has expired or its token was removed.
    pub(crate) fn role_of_session(&self, secret: &str) -> Option<Role> {
        // The table is keyed by the hash, so the time of a look-up reveals nothing about the secret.
        let token = lock(&self.sessions)
            .get(&hash(secret))
            .filter(|session| session.began.elapsed() < SESSION_TIME)?
            .token;
        role_of(&self.entries(), &token)
    }

    /// Ends a session.
    pub(crate) fn sign_out(&self, secret: &str) {
        lock(&self.sessions).remove(&hash(secret));
    }
}

/// Role of the entry with a hash, found in a time that does not depend on the hash.
fn role_of(entries: &[Entry], hash: &Hash) -> Option<Role> {
    let mut found = None;
    for entry in entries {
        let differing = entry
            .hash
            .iter()
            .zip(hash)
            .fold(0, |sum, (a, b)| sum | (a ^ b));
        if std::hint::black_box(differing) == 0 {
            found = found.max(Some(entry.role));
        }
    }
    found
}

fn hash(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}

fn secret() -> anyhow::Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    let length = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .context("the kernel gives no random bytes")?;
    match length {
        SECRET_BYTES => Ok(hex(&bytes)),
        _ => bail!("the kernel gives too few random bytes"),
    }
}

fn stamp(path: &Path) -> Option<FileStamp> {
    let facts = fs::metadata(path).ok()?;
    Some((facts.modified().ok()?, facts.ino(), facts.len()))
}

fn read(path: &Path) -> anyhow::Result<Vec<Entry>> {
    let name = || format!("the token file {}", path.display());
    if !path.exists() {
        bail!(
            "{} is not there; 'disksmith serve token read --token-file {}' makes it",
            name(),
            path.display()
        );
    }
    let facts = fs::metadata(path).with_context(name)?;
    if facts.mode() & 0o022 != 0 {
        bail!(
            "{} may be written by others, who could add a token; run chmod go-w on it",
            name()
        );
    }
    let text = fs::read_to_string(path).with_context(name)?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let entries: Option<Vec<Entry>> = lines
        .take(MAX_FILE_LINES)
        .map(|(_, line)| entry(line))
        .collect();
    match entries {
        Some(entries) if !entries.is_empty() => Ok(entries),
        Some(_) => bail!(
            "{} has no token; 'disksmith serve token read --token-file {}' adds one",
            name(),
            path.display()
        ),
        None => bail!(
            "{} has a line that is no token's; each is 'read sha256:…' or 'write sha256:…', as 'disksmith serve token' writes them",
            name()
        ),
    }
}

/// A line: `read sha256:HEX NAME`.
fn entry(line: &str) -> Option<Entry> {
    let mut words = line.split_whitespace();
    let role = match words.next()? {
        "read" => Role::Read,
        "write" => Role::Write,
        _ => return None,
    };
    let digits = words.next()?.strip_prefix("sha256:")?;
    let mut hash = [0; 32];
    if digits.len() != 2 * hash.len() || !digits.is_ascii() {
        return None;
    }
    for (nth, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * nth..2 * nth + 2], 16).ok()?;
    }
    Some(Entry { role, hash })
}

/// Adds a token to a file, and returns it.
///
/// # Errors
/// When the file cannot be written, or is not a token file.
pub(crate) fn add(path: &Path, role: Role, name: &str) -> anyhow::Result<String> {
    if name.chars().any(char::is_control) {
        bail!("the name of a token is one line");
    }
    if path.exists() && fs::metadata(path)?.len() > 0 {
        read(path)?;
    }
    let token = secret()?;
    let line = format!("{} sha256:{} {name}", role.name(), hex(&hash(&token)));
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("the token file {}", path.display()))?;
    writeln!(file, "{}", line.trim_end())?;
    file.sync_all()?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_hash_until_its_line_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let read_token = add(&path, Role::Read, "").unwrap();
        let write_token = add(&path, Role::Write, "ci of x").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains(&read_token) && text.ends_with(" ci of x\n"),
            "{text}"
        );
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let tokens = Tokens::open(&path).unwrap();
        assert_eq!(tokens.role(&read_token), Some(Role::Read));
        assert_eq!(tokens.role(&write_token), Some(Role::Write));
        assert_eq!(tokens.role(""), None);
        assert_eq!(tokens.sign_in("wrong").unwrap(), None);
        let session = tokens.sign_in(&write_token).unwrap().unwrap();
        assert_eq!(tokens.role_of_session(&session), Some(Role::Write));
        // A session's secret is not accepted as a token, nor a token as a session.
        assert_eq!(tokens.role(&session), None);
        assert_eq!(tokens.role_of_session(&write_token), None);
        let kept: String = text
            .lines()
            .take(1)
            .map(|line| format!("{line}\n"))
            .collect();
        fs::write(&path, kept).unwrap();
        assert_eq!(tokens.role_of_session(&session), None);
        assert_eq!(tokens.role(&read_token), Some(Role::Read));
        fs::remove_file(&path).unwrap();
        assert_eq!(tokens.role(&read_token), None);
    }

    #[test]
    fn a_session_that_was_ended_is_not_replayed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let token = add(&path, Role::Read, "").unwrap();
        let tokens = Tokens::open(&path).unwrap();
        let session = tokens.sign_in(&token).unwrap().unwrap();
        tokens.sign_out(&session);
        assert_eq!(tokens.role_of_session(&session), None);
    }

    #[test]
    fn files_that_are_not_safe_or_no_token_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        for text in [
            "",
            "# nothing\n",
            "read secret\n",
            "read sha256:00\n",
            "admin sha256:00\n",
        ] {
            fs::write(&path, text).unwrap();
            assert!(Tokens::open(&path).is_err(), "{text}");
        }
        fs::remove_file(&path).unwrap();
        add(&path, Role::Read, "").unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o622);
        fs::set_permissions(&path, open).unwrap();
        assert!(Tokens::open(&path).is_err());
        assert!(Tokens::open(&folder.path().join("none")).is_err());
    }
}
