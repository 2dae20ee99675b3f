//! The latest events of the live page: each is written once for all who listen.

use axum::body::Bytes;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::documents::{Document as _, HostNow, NowDocument};
use crate::sources::Sources;

/// Channels with the latest events of the live page.
#[derive(Clone)]
pub(crate) struct LatestEvents {
    /// The document of now.
    pub(crate) now: watch::Sender<Bytes>,
    /// Recent markers.
    pub(crate) markers: watch::Sender<Bytes>,
    /// Hosts of Prometheus.
    pub(crate) hosts: watch::Sender<Vec<HostNow>>,
}

impl LatestEvents {
    /// Channels of events, without any event yet.
    pub(crate) fn new() -> LatestEvents {
        LatestEvents {
            now: watch::Sender::new(Bytes::new()),
            markers: watch::Sender::new(Bytes::new()),
            hosts: watch::Sender::new(Vec::new()),
        }
    }

    /// The document of now.
    pub(crate) fn document(&self, sources: &Sources) -> NowDocument {
        let mut hosts: Vec<HostNow> = sources.kernel.host().into_iter().collect();
        hosts.extend(self.hosts.borrow().iter().cloned());
        NowDocument {
            time: Timestamp::now(),
            sources: sources.states(),
            hosts,
        }
    }

    /// Tells viewers of a new sample. Where there are none, none is written.
    pub(crate) fn publish(&self, sources: &Sources) {
        if self.now.receiver_count() > 0 {
            let event = event("now", &self.document(sources).json());
            self.now.send_replace(event);
        }
    }
}

/// An event as it is sent.
pub(crate) fn event(name: &str, data: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {}\n\n", data.trim_end()))
}
