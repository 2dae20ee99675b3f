//! The user's own `aws` command, with its credentials and region: commands, paged answers, and advice on its errors.
//!
//! Codes of errors: Amazon EC2 API Reference, "Error codes for the Amazon EC2 API"; Amazon EBS API Reference, "Common
//! errors". Sentences without a code are botocore's (`exceptions.py`).

pub mod volumes;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::exec::{self, Exec};

/// True if a word is the id of an AWS resource, such as `snap-0123456789abcdef0` for the kind `snap`. Another word
/// could be parsed by `aws` as an option.
pub fn is_id(word: &str, kind: &str) -> bool {
    let digits = word
        .strip_prefix(kind)
        .and_then(|rest| rest.strip_prefix('-'));
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(is_digit))
}

/// Time limit of a command, which retries failed requests by itself.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Maximum number of pages of an answer, so that a command that always names another page ends. A snapshot of 64 TiB
/// has 134 million blocks, of which a page holds 10,000.
const MAX_PAGES: usize = 20_000;

/// Pauses before a throttled command is repeated, in seconds.
const RETRY_PAUSES_S: [u64; 4] = [1, 2, 4, 8];

/// Runs a program and returns its standard output. Tests pass a substitute.
pub type RunProgram<'a> = &'a mut dyn FnMut(&Exec) -> Result<Vec<u8>, Error>;

/// An error of `aws`, with advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    text: String,
    code: Option<String>,
    advice: Option<String>,
}

impl Error {
    /// The error with this text of a command with these words.
    pub fn of(text: &str, words: &[&str]) -> Error {
        let code = code(text).map(str::to_owned);
        let advice = advice(text, code.as_deref().unwrap_or_default(), words);
        Error {
            text: text.trim_end_matches(['.', '\n']).to_owned(),
            code,
            advice,
        }
    }

    /// The error code of AWS, such as `VolumeInUse`; `None` if the text has none.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// True if the request was throttled, so that it may succeed later.
    pub fn is_throttled(&self) -> bool {
        self.code()
            .is_some_and(|code| THROTTLING_ERRORS.contains(&code))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.advice {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

const THROTTLING_ERRORS: [&str; 5] = [
    "RequestLimitExceeded",
    "RequestThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// Advice on an error, by its code or by words of its text.
const ADVICE: [(&[&str], &str); 13] = [
    (
        &[
            "ExpiredToken",
            "ExpiredTokenException",
            "RequestExpired",
            "Token has expired",
            "SSO session",
            "Error loading SSO Token",
        ],
        "the credentials have expired: log in again ('aws sso login'), or renew the session",
    ),
    (
        &["Unable to locate credentials", "NoCredentials"],
        "give this host a role, or credentials with 'aws configure'",
    ),
    (
        &[
            "AuthFailure",
            "InvalidClientTokenId",
            "UnrecognizedClientException",
            "SignatureDoesNotMatch",
            "InvalidSignatureException",
        ],
        "AWS does not accept the credentials: 'aws sts get-caller-identity' shows whose they are, and a clock that is \
         wrong makes them invalid too",
    ),
    (
        &["must specify a region", "NoRegion"],
        "name the region in AWS_REGION, or with 'aws configure set region'",
    ),
    (
        &[
            "Could not connect to the endpoint URL",
            "Connect timeout on endpoint URL",
        ],
        "check the region, and the way to AWS: a proxy, a VPC endpoint",
    ),
    (
        &["config profile"],
        "check AWS_PROFILE; 'aws configure list-profiles' lists them",
    ),
    (
        &[
            "VolumeLimitExceeded",
            "MaxIOPSLimitExceeded",
            "ResourceLimitExceeded",
        ],
        "this is a quota of the account: 'aws service-quotas list-service-quotas --service-code ebs' shows it, and an \
         increase can be requested there",
    ),
    (
        &["InsufficientVolumeCapacity"],
        "the zone has no room for this type at the moment: try later, or another type",
    ),
    (
        &["AttachmentLimitExceeded"],
        "no more volumes can be attached to the instance: detach one, or compare fewer at once",
    ),
    (
        &[
            "InvalidVolume.NotFound",
            "InvalidSnapshot.NotFound",
            "InvalidInstanceID.NotFound",
            "ResourceNotFoundException",
        ],
        "check the id, and that 'aws' is set to the right region and account",
    ),
    (
        &[
            "UnsupportedOperation",
            "InvalidParameterCombination",
            "InvalidParameterValue",
            "UnknownVolumeType",
        ],
        "AWS does not offer this as requested here",
    ),
    (
        &["VolumeInUse", "IncorrectState"],
        "the volume is in another state: 'aws ec2 describe-volumes' shows it",
    ),
    (
        &["DependencyViolation"],
        "another resource of the account needs it",
    ),
];

fn code(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("An error occurred (")?;
    rest.split_once(')').map(|(code, _)| code)
}

fn advice(text: &str, code: &str, words: &[&str]) -> Option<String> {
    if THROTTLING_ERRORS.contains(&code) {
        return Some(
            "AWS throttles the requests of this account: try again later, or with AWS_RETRY_MODE=adaptive"
                .to_owned(),
        );
    }
    if [
        "UnauthorizedOperation",
        "AccessDenied",
        "AccessDeniedException",
    ]
    .contains(&code)
    {
        return Some(format!(
            "the user or role of the credentials needs the permission {}",
            permission(words)
        ));
    }
    let known = |mark: &&str| match mark.contains(' ') {
        true => text.contains(*mark),
        false => code == *mark,
    };
    let found = ADVICE.iter().find(|(marks, _)| marks.iter().any(known));
    found.map(|(_, advice)| (*advice).to_owned())
}

/// Name of the permission that a command needs, such as `ebs:ListSnapshotBlocks` for `ebs list-snapshot-blocks`.
fn permission(words: &[&str]) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    let action = words.get(1).copied().unwrap_or_default();
    let action: String = action.split('-').map(capital).collect();
    format!("{}:{action}", words.first().copied().unwrap_or("ec2"))
}

/// A command of `aws` with JSON output. Ctrl-C in a terminal does not reach it: it could otherwise end after its
/// request is sent and before the answer arrives.
pub fn command(words: &[&str]) -> Exec {
    Exec::new("aws")
        .args(words.iter().copied())
        .args(["--output", "json"])
        .limit(LIMIT)
        .bound()
}

/// Runs a command of `aws` and returns its standard output.
///
/// # Errors
/// When it is not installed, fails or exceeds its time limit.
pub fn run(program: &Exec) -> Result<Vec<u8>, Error> {
    match program.run() {
        Ok(output) => Ok(output.stdout),
        Err(exec::Error::Missing(_)) => Err(Error {
            text: "the program aws is not installed, or not on the PATH".to_owned(),
            code: None,
            advice: Some(
                "install the AWS CLI (https://docs.aws.amazon.com/cli, or 'pip install awscli')"
                    .to_owned(),
            ),
        }),
        Err(why) => {
            let line = program.line();
            let words: Vec<&str> = line.split(' ').skip(1).take(2).collect();
            Err(Error::of(&why.to_string(), &words))
        }
    }
}

/// Runs a command and parses its answer. Empty output is the default value, since some versions print nothing for it.
///
/// # Errors
/// As [`run`], and when the output is not the expected JSON.
pub fn answer<T: DeserializeOwned + Default>(
    program: &Exec,
    run: RunProgram<'_>,
) -> Result<T, Error> {
    let bytes = run(program)?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(T::default());
    }
    serde_json::from_slice(&bytes).map_err(|why| Error {
        text: format!(
            "what '{}' wrote is not the JSON that it should be: {why}",
            program.line()
        ),
        code: None,
        advice: None,
    })
}

/// Runs a command until its answer names no next page. `token` is the option that requests a page; `take` processes an
/// answer and returns the token of the next page. A throttled request is repeated after a pause.
///
/// # Errors
/// As [`answer`], with too many pages, and when interrupted.
pub fn pages<T: DeserializeOwned + Default>(
    program: &Exec,
    token: &str,
    interrupt: &AtomicBool,
    run: RunProgram<'_>,
    mut take: impl FnMut(T) -> Option<String>,
) -> Result<(), Error> {
    let plain = |text: String| Error {
        text,
        code: None,
        advice: None,
    };
    let mut next = program.clone();
    for _ in 0..MAX_PAGES {
        let page = unless_throttled(interrupt, || answer(&next, run))?;
        if interrupt.load(Ordering::Relaxed) {
            return Err(plain(format!("'{}' was interrupted", program.line())));
        }
        match take(page).filter(|token| !token.is_empty()) {
            Some(following) => next = program.clone().arg(token).arg(following),
            None => return Ok(()),
        }
    }
    Err(plain(format!(
        "'{}' gave {MAX_PAGES} pages, and names another",
        program.line()
    )))
}

fn unless_throttled<T>(
    interrupt: &AtomicBool,
    mut ask: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    for pause in RETRY_PAUSES_S {
        match ask() {
            Err(error) if error.is_throttled() && !interrupt.load(Ordering::Relaxed) => {
                wait(Duration::from_secs(pause), interrupt);
            }
            other => return other,
        }
    }
    ask()
}

/// Waits for a time, or until it is interrupted.
pub fn wait(span: Duration, interrupt: &AtomicBool) {
    const STEP: Duration = Duration::from_millis(50);
    let mut left = span;
    while !left.is_zero() && !interrupt.load(Ordering::Relaxed) {
        let step = left.min(STEP);
        std::thread::sleep(step);
        left -= step;
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "PascalCase", default)]
    struct Page {
        numbers: Vec<u32>,
        next_token: Option<String>,
    }

    #[test]
    fn only_an_id_of_its_kind_is_one() {
        assert!(is_id("snap-0123abcd", "snap"));
        assert!(is_id("i-0123456789abcdef0", "i"));
        for wrong in ["I-1", "i-*", "i-1,i-2", "i-1 i-2", "vol-1"] {
            assert!(!is_id(wrong, "i"), "{wrong}");
        }
        for wrong in [
            "",
            "snap-",
            "snap",
            "vol-0123abcd",
            "--x",
            "snap-x",
            "snap-0123ABCD",
            "snap-1 2",
            "a.json",
        ] {
            assert!(!is_id(wrong, "snap"), "{wrong}");
        }
    }

    fn all(answers: Vec<Result<&str, &str>>) -> (Result<Vec<u32>, Error>, Vec<String>) {
        let mut answers = answers.into_iter();
        let (mut lines, mut numbers) = (Vec::new(), Vec::new());
        let words = ["ebs", "list-snapshot-blocks"];
        let end = pages(
            &command(&words),
            "--next-token",
            &AtomicBool::new(false),
            &mut |program| {
                lines.push(program.line());
                match answers.next() {
                    Some(Ok(text)) => Ok(text.as_bytes().to_vec()),
                    Some(Err(text)) => Err(Error::of(text, &words)),
                    None => Ok(Vec::new()),
                }
            },
            |page: Page| {
                numbers.extend(page.numbers);
                page.next_token
            },
        );
        (end.map(|()| numbers), lines)
    }

    #[test]
    fn pages_are_requested_until_none_is_named() {
        let (numbers, lines) = all(vec![
            Ok(r#"{"Numbers": [1], "NextToken": "a"}"#),
            Err("An error occurred (ThrottlingException) when calling: slow down"),
            Ok(r#"{"Numbers": [2, 3], "NextToken": ""}"#),
        ]);
        assert_eq!(numbers.unwrap(), [1, 2, 3]);
        let plain = "aws ebs list-snapshot-blocks --output json";
        let second = format!("{plain} --next-token a");
        assert_eq!(lines, [plain.to_owned(), second.clone(), second]);
        assert_eq!(all(vec![Ok("  \n")]).0.unwrap(), [0_u32; 0]);
        let (wrong, _) = all(vec![Ok("<html>")]);
        assert!(wrong.unwrap_err().to_string().contains("not the JSON"));
    }

    #[test]
    fn an_error_says_what_to_do() {
        for (text, words) in [
            (
                "failed (status 254): An error occurred (ExpiredTokenException) when calling x",
                "aws sso login",
            ),
            (
                "failed (status 253): Unable to locate credentials. You can configure credentials by running \"aws \
                 configure\".",
                "give this host a role",
            ),
            (
                "An error occurred (AccessDeniedException) when calling the ListSnapshotBlocks operation: None",
                "needs the permission ebs:ListSnapshotBlocks",
            ),
            (
                "An error occurred (ThrottlingException) when calling x",
                "try again later",
            ),
            (
                "An error occurred (ResourceNotFoundException) when calling x",
                "the right region",
            ),
            (
                "An error occurred (VolumeLimitExceeded) when calling x",
                "service-quotas",
            ),
            ("You must specify a region.", "AWS_REGION"),
            (
                "Error when retrieving token from sso: Token has expired and refresh failed",
                "aws sso login",
            ),
        ] {
            let error = Error::of(text, &["ebs", "list-snapshot-blocks"]);
            assert!(error.to_string().contains(words), "{error}");
        }
        let other = Error::of("An error occurred (Odd) when calling x.\n", &["ec2", "x"]);
        assert_eq!(other.to_string(), "An error occurred (Odd) when calling x");
        assert_eq!(other.code(), Some("Odd"));
    }

    #[test]
    fn a_program_that_is_missing_or_fails_is_reported() {
        let missing = run(&Exec::new("no-such-program-of-disksmith")).unwrap_err();
        assert!(missing.to_string().contains("install the AWS CLI"));
        let script = "echo 'An error occurred (AuthFailure) when calling x' >&2; exit 254";
        let failed = run(&Exec::new("sh").args(["-c", script])).unwrap_err();
        assert_eq!(failed.code(), Some("AuthFailure"));
        assert!(failed.to_string().contains("get-caller-identity"));
    }
}
