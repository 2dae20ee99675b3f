//! State of the server, and the work that is done for a request.

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

/// Requests that read sources at once; others wait.
const MAX_READERS: usize = 4;
/// Time for which a request waits for its turn, and then for its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for which an answer is given again.
const CACHE_TIME: Duration = Duration::from_secs(2);
/// The most answers that are kept, and their size in all.
const MAX_CACHED_ANSWERS: usize = 256;

/// An answer that is kept.
type CachedAnswer = (Instant, Bytes);

/// State of the server.
pub(crate) struct App {
    /// Sources of what is shown.
    pub(crate) sources: Arc<Sources>,
    /// Verdicts.
    pub(crate) engine: Engine,
    /// Tokens; without them all who reach the server may read and write.
    pub(crate) tokens: Option<Tokens>,
    /// Names under which it is reached.
    pub(crate) names: ServerNames,
    /// True if browsers reach it by TLS.
    pub(crate) secure: bool,
    /// Name of this host.
    pub(crate) hostname: String,
    /// Counters.
    pub(crate) metrics: Arc<Metrics>,
    /// Events of the live page.
    pub(crate) live: super::live::LatestEvents,
    /// True once the server ends.
    pub(crate) stop: watch::Receiver<bool>,
    readers: Semaphore,
    kept: Mutex<HashMap<String, CachedAnswer>>,
}

/// Parts of the state that do not begin empty.
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
    /// The state of these parts.
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

    /// Does work that reads sources, off the thread that serves.
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

    /// An answer of a moment ago to the same question, or a new one.
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

    /// Counts an answer.
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
