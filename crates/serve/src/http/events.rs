//! Server-sent events of the live page: polls of Prometheus and of markers, and the viewers' connections.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::app::App;
use super::live::event;
use super::reply;
use crate::documents::{Document as _, HostState, Markers};

/// Maximum number of concurrent viewers.
const MAX_VIEWERS: u64 = 512;
/// Idle time after which a comment is sent, so that a broken connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Interval of polls of Prometheus, and of markers.
const SLOW_POLL: Duration = Duration::from_secs(5);
/// Age of the oldest markers that are sent, in hours.
const MARKERS_HOURS: i64 = 24;

/// Polls Prometheus and the markers until the server shuts down.
pub(crate) async fn follow(app: Arc<App>) {
    let mut stop = app.stop.clone();
    loop {
        tokio::select! {
            () = sleep(SLOW_POLL) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let polled = app.read(|app| {
            if let Some(prometheus) = &app.sources.prometheus {
                let is_seen = prometheus.now();
                app.live.hosts.send_modify(|hosts| match is_seen {
                    Ok(seen) => *hosts = seen,
                    // The last figures stay on the page, marked as stale and with their age.
                    Err(_) => hosts.iter_mut().for_each(|host| {
                        host.state = HostState::Stale;
                        host.age_s.0 += SLOW_POLL.as_secs_f64();
                    }),
                });
            }
            if app.live.markers.receiver_count() > 0 {
                let event = markers(app)?;
                app.live.markers.send_if_modified(|last| {
                    let is_new = *last != event;
                    *last = event;
                    is_new
                });
            }
            Ok(())
        });
        // The state of the source reports the error.
        let _ = polled.await;
    }
}

fn markers(app: &App) -> anyhow::Result<Bytes> {
    let from = Timestamp::now() - jiff::SignedDuration::from_hours(MARKERS_HOURS);
    let markers = app.sources.markers(from, Timestamp::MAX)?;
    Ok(event("markers", &Markers { markers }.json()))
}

/// Subscription of a viewer, who is counted until it is dropped.
struct Viewer {
    app: Arc<App>,
    now: watch::Receiver<Bytes>,
    markers: watch::Receiver<Bytes>,
    stop: watch::Receiver<bool>,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.app.metrics.viewers.fetch_sub(1, Relaxed);
    }
}

impl Viewer {
    /// The next event, or a comment after [`KEEP_ALIVE`]; `None` when the server shuts down.
    async fn next(&mut self) -> Option<Bytes> {
        let event = async {
            tokio::select! {
                Ok(()) = self.now.changed() => Some(self.now.borrow_and_update().clone()),
                Ok(()) = self.markers.changed() => Some(self.markers.borrow_and_update().clone()),
                _ = self.stop.wait_for(|stop| *stop) => None,
            }
        };
        match timeout(KEEP_ALIVE, event).await {
            Ok(event) => event,
            Err(_) => Some(Bytes::from_static(b":\n\n")),
        }
    }
}

/// Stream of events, beginning with the current state. Events are not queued: a slow viewer misses some.
pub(crate) fn events(app: &Arc<App>) -> Result<Response, reply::Problem> {
    let viewers = &app.metrics.viewers;
    if viewers.fetch_add(1, Relaxed) >= MAX_VIEWERS {
        viewers.fetch_sub(1, Relaxed);
        return Err(reply::Problem::new(
            503,
            "Too many viewers are here already.",
        ));
    }
    let viewer = Viewer {
        now: app.live.now.subscribe(),
        markers: app.live.markers.subscribe(),
        stop: app.stop.clone(),
        app: Arc::clone(app),
    };
    let first = event("now", &app.live.document(&app.sources).json());
    let first = Bytes::from([b"retry: 2000\n\n", &*first].concat());
    let events = stream::unfold((viewer, Some(first)), |(mut viewer, first)| async move {
        let event = match first {
            Some(first) => first,
            None => viewer.next().await?,
        };
        Some((Ok::<_, std::convert::Infallible>(event), (viewer, None)))
    });
    Ok(reply::typed("text/event-stream", Body::from_stream(events)))
}
