//! State of the server: sources, limits on concurrent reads, and a cache of answers.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::guard::ServerNames;
use super::reply::Problem;
use super::tokens::Tokens;
use crate::metrics::Metrics;
use crate::sources::Sources;
use crate::sources::pool::lock;
use crate::verdicts::Engine;

/// Maximum number of requests that read sources at the same time; further ones wait.
const MAX_READERS: usize = 4;
/// Time that a request may wait for a free reader, and then again for its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for which a cached answer is valid.
const CACHE_TIME: Duration = Duration::from_secs(2);
/// Maximum number of cached answers.
const MAX_CACHED_ANSWERS: usize = 256;

/// Time at which an answer was cached, and its body.
type CachedAnswer = (Instant, Bytes);

/// State of the server.
pub(crate) struct App {
    /// Ledger, stores of `tally`, Prometheus and markers.
    pub(crate) sources: Arc<Sources>,
    /// Verdicts.
    pub(crate) engine: Engine,
    /// Tokens; `None` lets every client read and write.
    pub(crate) tokens: Option<Tokens>,
    /// Names under which clients reach the server.
    pub(crate) names: ServerNames,
    /// True if browsers reach the server through TLS.
    pub(crate) secure: bool,
    /// Name of this host.
    pub(crate) hostname: String,
    /// Counters.
    pub(crate) metrics: Arc<Metrics>,
    /// Events of the live page.
    pub(crate) live: super::live::LatestEvents,
    /// Becomes true when the server shuts down.
    pub(crate) stop: watch::Receiver<bool>,
    readers: Semaphore,
    kept: Mutex<HashMap<String, CachedAnswer>>,
}

/// Fields of [`App`] that its creator provides.
pub(crate) struct Parts {
    pub(crate) sources: Arc<Sources>,
    pub(crate) engine: Engine,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) names: ServerNames,
    pub(crate) secure: bool,
    pub(crate) hostname: String,
    pub(crate) live: super::live::LatestEvents,
    pub(crate) stop: watch::Receiver<bool>,
}

impl App {
    /// Creates the state, with an empty cache and counters at 0.
    pub(crate) fn new(parts: Parts) -> App {
        App {
            sources: parts.sources,
            engine: parts.engine,
            tokens: parts.tokens,
            names: parts.names,
            secure: parts.secure,
            hostname: parts.hostname,
            live: parts.live,
            stop: parts.stop,
            metrics: Arc::default(),
            readers: Semaphore::new(MAX_READERS),
            kept: Mutex::new(HashMap::new()),
        }
    }

    /// Runs `work`, which reads sources and may block, on a blocking thread.
    ///
    /// # Errors
    /// Those of the work, and where it takes too long.
    pub(crate) async fn read<R: Send + 'static>(
        self: &Arc<App>,
        work: impl FnOnce(&App) -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        let busy = || Problem::new(503, "The server is busy; try again in a moment.");
        let turn = timeout(REQUEST_TIMEOUT, self.readers.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Err(busy());
        };
        let app = Arc::clone(self);
        let work = tokio::task::spawn_blocking(move || work(&app));
        match timeout(REQUEST_TIMEOUT, work).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Problem::new(
                500,
                "The answer could not be made; this is a fault of disksmith.",
            )),
            Err(_) => Err(busy()),
        }
    }

    /// Returns the cached answer to `question` if it is still valid, or else the result of `work`, which is then
    /// cached.
    ///
    /// # Errors
    /// Those of the work, and where it takes too long.
    pub(crate) async fn read_kept(
        self: &Arc<App>,
        question: String,
        work: impl FnOnce(&App) -> Result<String, Problem> + Send + 'static,
    ) -> Result<Bytes, Problem> {
        let kept = lock(&self.kept).get(&question).cloned();
        if let Some((at, answer)) = kept
            && at.elapsed() < CACHE_TIME
        {
            return Ok(answer);
        }
        let answer = Bytes::from(self.read(work).await?);
        let mut kept = lock(&self.kept);
        kept.retain(|_, (at, _)| at.elapsed() < CACHE_TIME);
        if kept.len() < MAX_CACHED_ANSWERS {
            kept.insert(question, (Instant::now(), answer.clone()));
        }
        Ok(answer)
    }

    /// Counts an answer by its status, and the time that it took.
    pub(crate) fn count(&self, status: u16, time: Duration) {
        let metrics = &self.metrics;
        metrics.requests.fetch_add(1, Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        metrics.answer_us.fetch_add(micros, Relaxed);
        match status {
            400..=499 => metrics.refused.fetch_add(1, Relaxed),
            500.. => metrics.failed.fetch_add(1, Relaxed),
            _ => 0,
        };
    }
}
