//! Sources: the ledger, the stores of `tally`, Prometheus and this host. While one fails, pages show the data of the
//! others.

pub(crate) mod disks;
pub(crate) mod kernel;
pub(crate) mod pool;
pub(crate) mod prometheus;
pub(crate) mod recordings;
pub(crate) mod service;

use jiff::Timestamp;
use study::verdict;
use tally::query::{Selection, Series};

use crate::axis::{Axis, Seconds, SlotFigures};
use crate::documents::{self, DiskName, Marker, SeriesLine, SourceDocument};
use disks::{ExaminedDisks, Hosts};
use kernel::HostWatch;
use prometheus::Prometheus;
use recordings::Recordings;
use service::Stores;

/// All sources.
pub(crate) struct Sources {
    /// Recordings in the ledger.
    pub(crate) ledger: Recordings,
    /// Stores of response times.
    pub(crate) stores: Stores,
    /// Prometheus, if the arguments name a server.
    pub(crate) prometheus: Option<Prometheus>,
    /// Current figures of this host's disks.
    pub(crate) kernel: HostWatch,
}

impl Sources {
    /// State of each source.
    pub(crate) fn states(&self) -> Vec<SourceDocument> {
        let mut states = vec![self.ledger.source(), self.stores.source()];
        states.extend(self.prometheus.as_ref().map(Prometheus::source));
        states.push(self.kernel.source());
        states
    }

    /// Tags, the busiest first; empty if the stores cannot be read.
    pub(crate) fn tags(&self, now: Seconds) -> Vec<String> {
        let series = self.busiest(now);
        let mut tags: Vec<String> = Vec::new();
        for one in &series {
            if !tags.contains(&one.tag) {
                tags.push(one.tag.clone());
            }
        }
        tags.truncate(service::MAX_OFFERED_TAGS);
        tags
    }

    fn busiest(&self, now: Seconds) -> Vec<Series> {
        self.stores.busiest(now).unwrap_or_default()
    }

    /// The given selection, or else the busiest tag.
    pub(crate) fn selection_or_busiest(
        &self,
        named: Option<&Selection>,
        tags: &[String],
    ) -> Option<Selection> {
        named.cloned().or_else(|| tags.first()?.parse().ok())
    }

    /// Markers between two times.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(crate) fn markers(&self, from: Timestamp, to: Timestamp) -> anyhow::Result<Vec<Marker>> {
        self.ledger.markers(from, to)
    }

    /// Hosts and disks on an axis. The data of a source that fails are missing; its state reports the error.
    pub(crate) fn hosts(
        &self,
        axis: &Axis,
        host: Option<&str>,
        choice: ExaminedDisks<'_>,
    ) -> Hosts {
        let mut hosts = self.ledger.series(axis, host).unwrap_or_default();
        if let Some(prometheus) = &self.prometheus {
            hosts.extend(prometheus.hosts(axis, host, choice).unwrap_or_default());
        }
        hosts
    }

    /// Other series on an axis.
    pub(crate) fn series(&self, axis: &Axis) -> Vec<(String, SlotFigures)> {
        let prometheus = self.prometheus.as_ref();
        prometheus.map_or_else(Vec::new, |prometheus| prometheus.named(axis))
    }

    /// Disks and other series as a verdict sees them.
    pub(crate) fn evidence(
        &self,
        axis: &Axis,
        host: Option<&str>,
        most: usize,
    ) -> (Vec<verdict::ObservedDisk>, Vec<(String, Vec<f64>)>) {
        let series = self.series(axis).into_iter();
        let choice = ExaminedDisks { named: &[], most };
        (
            self.hosts(axis, host, choice).evidence(axis, most),
            series
                .map(|(name, values)| (name, values.means(axis.len())))
                .collect(),
        )
    }

    /// Lines of other series.
    pub(crate) fn series_lines(&self, axis: &Axis) -> Vec<SeriesLine> {
        let line = |(name, values): (String, SlotFigures)| SeriesLine {
            name,
            values: values.line(axis.len()),
        };
        self.series(axis).into_iter().map(line).collect()
    }

    /// The document of tags.
    ///
    /// # Errors
    /// When a store cannot be read.
    pub(crate) fn tag_list(&self, now: Seconds) -> anyhow::Result<documents::Tags> {
        let series = self.stores.series()?;
        let none = ExaminedDisks {
            named: &[],
            most: 0,
        };
        let hosts = self.hosts(&Axis::uniform(now - 600, now, 60), None, none);
        let disks: Vec<DiskName> = hosts.busiest();
        let row = |one: &Series| documents::TagRow {
            tag: one.tag.clone(),
            labels: one.labels.clone(),
            selection: service::written(one),
        };
        Ok(documents::Tags {
            tags: series.iter().map(row).collect(),
            hosts: hosts.hosts.keys().cloned().collect(),
            disks,
            series: self
                .prometheus
                .as_ref()
                .map_or_else(Vec::new, Prometheus::names),
        })
    }
}
