//! Checks a request, reads it within limits, and answers it.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, RETRY_AFTER};
use hyper::{Method, Request, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::server::{HttpResponse, answer};

/// Maximum bytes of a body, also after decompression.
const MAX_BODY_BYTES: usize = 8 << 20;
/// Maximum bytes of all bodies in memory.
const MAX_BODIES_BYTES: usize = 64 << 20;
/// Time within which the body of a request must arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Time for a commit, after which the client is told to try again.
const COMMIT_TIME: Duration = Duration::from_secs(30);
/// Maximum characters of a key.
const KEY: usize = 200;

/// A request with its events.
#[derive(Debug)]
pub(super) struct PostedRequest {
    pub(super) key: String,
    pub(super) lines: Vec<u8>,
    /// Signals that the events are committed; dropping it signals that they are not.
    pub(super) committed: oneshot::Sender<()>,
    _room: OwnedSemaphorePermit,
}

/// Accepts requests within the limits, and queues them.
#[derive(Debug)]
pub(super) struct RequestQueue {
    requests: SyncSender<PostedRequest>,
    token: Option<String>,
    room: Arc<Semaphore>,
}

impl RequestQueue {
    pub(super) fn new(requests: SyncSender<PostedRequest>, token: Option<&str>) -> RequestQueue {
        RequestQueue {
            requests,
            token: token.map(str::to_owned),
            room: Arc::new(Semaphore::new(MAX_BODIES_BYTES)),
        }
    }

    pub(super) async fn answer(
        self: Arc<RequestQueue>,
        request: Request<Incoming>,
    ) -> HttpResponse {
        self.take(request).await.unwrap_or_else(Refusal::answer)
    }

    async fn take(&self, request: Request<Incoming>) -> Result<HttpResponse, Refusal> {
        if request.uri().path() != "/events" {
            return Err(refuse(StatusCode::NOT_FOUND, "Events go to /events.\n"));
        }
        if request.method() != Method::POST {
            return Err(refuse(
                StatusCode::METHOD_NOT_ALLOWED,
                "Events are sent with POST.\n",
            ));
        }
        self.allow(request.headers())?;
        let key = key(request.headers())?;
        let encoding = request
            .headers()
            .get(CONTENT_ENCODING)
            .map(|value| value.as_bytes().to_vec());
        let length = length(request.headers())?;
        // Memory is reserved before the body is read: the maximum for one that is compressed.
        let permits = u32::try_from(if encoding.is_some() {
            MAX_BODY_BYTES
        } else {
            length
        })
        .unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room)
            .try_acquire_many_owned(permits)
            .map_err(|_| too_many_requests())?;
        let body = Limited::new(request.into_body(), length);
        let body = tokio::time::timeout(BODY_TIME, body.collect())
            .await
            .map_err(|_| refuse(StatusCode::REQUEST_TIMEOUT, "The body took too long.\n"))?
            .map_err(|_| too_large())?
            .to_bytes();
        let lines = match encoding.as_deref() {
            None | Some(b"identity") => body.to_vec(),
            Some(b"gzip") => unpacked(&body)?,
            Some(_) => {
                return Err(refuse(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "The body may be compressed with gzip only.\n",
                ));
            }
        };
        let (committed, done) = oneshot::channel();
        let posted = PostedRequest {
            key,
            lines,
            committed,
            _room: room,
        };
        match self.requests.try_send(posted) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(too_many_requests()),
            Err(TrySendError::Disconnected(_)) => return Err(not_committed()),
        }
        match tokio::time::timeout(COMMIT_TIME, done).await {
            Ok(Ok(())) => Ok(answer(StatusCode::OK, "committed\n")),
            _ => Err(not_committed()),
        }
    }

    fn allow(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        let given = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let given = given.unwrap_or_default();
        // In constant time, wherever they differ.
        let differences = given
            .iter()
            .zip(token.as_bytes())
            .fold(0, |sum, (a, b)| sum | (a ^ b));
        match given.len() == token.len() && differences == 0 {
            true => Ok(()),
            false => Err(refuse(
                StatusCode::UNAUTHORIZED,
                "Send the token: Authorization: Bearer TOKEN.\n",
            )),
        }
    }
}

/// Reason why a request is not committed.
struct Refusal {
    status: StatusCode,
    text: String,
    /// True if the request may be sent again in a second.
    retry: bool,
}

fn refuse(status: StatusCode, text: impl Into<String>) -> Refusal {
    Refusal {
        status,
        text: text.into(),
        retry: false,
    }
}

impl Refusal {
    fn answer(self) -> HttpResponse {
        let mut answer = answer(self.status, self.text);
        if self.retry {
            let second = hyper::header::HeaderValue::from_static("1");
            answer.headers_mut().insert(RETRY_AFTER, second);
        }
        answer
    }
}

fn key(headers: &HeaderMap) -> Result<String, Refusal> {
    let key = headers
        .get("idempotency-key")
        .and_then(|value| value.to_str().ok())
        .map(str::trim);
    match key {
        Some(key) if !key.is_empty() && key.len() <= KEY => Ok(key.to_owned()),
        _ => Err(refuse(
            StatusCode::BAD_REQUEST,
            format!(
                "Give the request an Idempotency-Key of 1 to {KEY} characters, and keep it when you send it again.\n"
            ),
        )),
    }
}

/// The announced length of the body in bytes, or else the maximum.
fn length(headers: &HeaderMap) -> Result<usize, Refusal> {
    let Some(length) = headers.get(CONTENT_LENGTH) else {
        return Ok(MAX_BODY_BYTES);
    };
    let length: Option<usize> = length.to_str().ok().and_then(|length| length.parse().ok());
    length
        .filter(|length| *length <= MAX_BODY_BYTES)
        .ok_or_else(too_large)
}

fn unpacked(body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut lines = Vec::new();
    let read = flate2::read::MultiGzDecoder::new(body)
        .take(MAX_BODY_BYTES as u64 + 1)
        .read_to_end(&mut lines);
    match read {
        Ok(length) if length > MAX_BODY_BYTES => Err(too_large()),
        Ok(_) => Ok(lines),
        Err(_) => Err(refuse(StatusCode::BAD_REQUEST, "The body is not gzip.\n")),
    }
}

fn too_large() -> Refusal {
    refuse(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "A body has at most {} MiB, also after decompression.\n",
            MAX_BODY_BYTES >> 20
        ),
    )
}

fn later(status: StatusCode, text: &str) -> Refusal {
    Refusal {
        retry: true,
        ..refuse(status, text)
    }
}

fn too_many_requests() -> Refusal {
    later(
        StatusCode::TOO_MANY_REQUESTS,
        "Too much waits to be committed; send it again.\n",
    )
}

fn not_committed() -> Refusal {
    later(
        StatusCode::SERVICE_UNAVAILABLE,
        "Not committed; send it again under the same key.\n",
    )
}
