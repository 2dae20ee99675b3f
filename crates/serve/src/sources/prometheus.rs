//! Disks of other hosts from Prometheus' query API (Prometheus, VictoriaMetrics, Mimir, Thanos), as `disksmith watch
//! --prometheus` and node_exporter name them.

mod answer;
mod client;
mod now;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use study::watch::EventCode;

use super::disks::{ExaminedDisks, Hosts, event_code};
use super::pool::{Pool, lock};
use crate::axis::{Axis, SlotFigures, Value, timestamp};
use crate::documents::{DiskName, OpenFinding, SourceDocument};
use answer::Series;
use client::Client;

pub(crate) use client::Address;

/// A series that the command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedExpression {
    /// Name of the series.
    pub(crate) name: String,
    /// Expression of the series in PromQL.
    pub(crate) query: String,
}

/// Time for which the measured scrape interval is reused.
const INTERVAL_KEPT: Duration = Duration::from_secs(300);
/// Scrape interval in seconds if it cannot be measured.
const DEFAULT_SCRAPE_INTERVAL_S: f64 = 15.0;
/// Minimum window of a rate in scrape intervals: long enough for two samples, even if a scrape is late.
const SAMPLES_OF_A_RATE: f64 = 2.5;
/// Number of parts of a slot, whose means give the slot's minimum and maximum.
const PARTS_PER_SLOT: i64 = 12;
/// Maximum number of series of an expression.
const MAX_SAME_NAME: usize = 8;

/// A server with Prometheus' query API.
pub(crate) struct Prometheus {
    address: Address,
    named: Vec<NamedExpression>,
    pool: Pool<Client>,
    interval: Mutex<Option<(Instant, f64)>>,
}

/// Expressions of the figures; `{D}` becomes the labels and `[W]` the window.
const BUSY_EXPRESSION: &str = "rate(node_disk_io_time_seconds_total{D}[W])";
const QUEUE: &str = "rate(node_disk_io_time_weighted_seconds_total{D}[W])";
const IOPS: &str =
    "(rate(node_disk_reads_completed_total{D}[W])+rate(node_disk_writes_completed_total{D}[W]))";
const AWAIT: &str = "1000*(rate(node_disk_read_time_seconds_total{D}[W])+rate(node_disk_write_time_seconds_total{D}[W]))/(rate(node_disk_reads_completed_total{D}[W])+rate(node_disk_writes_completed_total{D}[W]))";
const PRESSURE: &str = "rate(node_pressure_io_waiting_seconds_total{D}[W])";
const CPU: &str = "1-avg by (instance)(rate(node_cpu_seconds_total{mode=~\"idle|iowait\",D}[W]))*2";
const FINDINGS: &str = "disksmith_finding_active";

/// Expression of a disk's figure, and the field of its series.
type OfDisk = (
    &'static str,
    fn(&mut super::disks::DiskSeries) -> &mut SlotFigures,
);

/// The figure that is read for all disks, to choose the busiest.
const RANKING_FIGURE: OfDisk = (BUSY_EXPRESSION, |disk| &mut disk.busy);
/// Figures that are read for the chosen disks only.
const CHOSEN_DISK_FIGURES: [OfDisk; 3] = [
    (QUEUE, |disk| &mut disk.queue),
    (IOPS, |disk| &mut disk.iops),
    (AWAIT, |disk| &mut disk.await_ms),
];

/// An expression with its window, and the labels that its series must have.
fn expression(of: &str, window: i64, labels: &str) -> String {
    of.replace("{D}", &format!("{{{labels}}}"))
        .replace(",D}", &format!(",{labels}}}"))
        .replace("[W]", &format!("[{window}s]"))
}

impl Prometheus {
    /// A server, which is not contacted yet.
    pub(crate) fn new(address: Address, named: Vec<NamedExpression>) -> Prometheus {
        let name = address.to_string();
        Prometheus {
            address,
            named,
            pool: Pool::new(name, "prometheus"),
            interval: Mutex::new(None),
        }
    }

    /// The source and its state.
    pub(crate) fn source(&self) -> SourceDocument {
        self.pool.source()
    }

    /// Names of the series of the command line.
    pub(crate) fn names(&self) -> Vec<String> {
        self.named.iter().map(|one| one.name.clone()).collect()
    }

    fn ask<R>(&self, work: impl Fn(&mut Client) -> anyhow::Result<R>) -> anyhow::Result<R> {
        self.pool.with(|| Ok(Client::new(&self.address)), work)
    }

    /// Scrape interval in seconds, measured on the server's samples.
    fn interval(&self, client: &Client) -> anyhow::Result<f64> {
        if let Some((seen, interval)) = *lock(&self.interval)
            && seen.elapsed() < INTERVAL_KEPT
        {
            return Ok(interval);
        }
        let series = client.now("node_load1[10m]")?;
        let gaps = series.iter().flat_map(|one| {
            let pairs = one.values.windows(2);
            pairs.map(|pair| pair[1].0 - pair[0].0)
        });
        let mut gaps: Vec<f64> = gaps.collect();
        gaps.sort_by(f64::total_cmp);
        // Without samples, the next request measures again.
        let Some(interval) = gaps.get(gaps.len() / 2).copied() else {
            return Ok(DEFAULT_SCRAPE_INTERVAL_S);
        };
        *lock(&self.interval) = Some((Instant::now(), interval));
        Ok(interval)
    }

    /// Window of a rate in seconds: the slot, but at least the samples that a rate needs.
    fn window(&self, client: &Client, slot_s: i64) -> anyhow::Result<i64> {
        let least = (SAMPLES_OF_A_RATE * self.interval(client)?).ceil() as i64;
        Ok(slot_s.max(least).max(1))
    }

    /// Hosts with their disks on an axis. Disks that are not chosen have only the share of time in which they were
    /// busy.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) fn hosts(
        &self,
        axis: &Axis,
        host: Option<&str>,
        choice: ExaminedDisks<'_>,
    ) -> anyhow::Result<Hosts> {
        let labels = host.map_or_else(String::new, |host| format!("instance={}", quoted(host)));
        self.ask(|client| {
            let window = self.window(client, axis.slot_s())?;
            let mut hosts = Hosts::default();
            let gather = |hosts: &mut Hosts, (of, gathered): OfDisk, labels: &str| {
                for one in client.range(&expression(of, window, labels), axis)? {
                    let disk = hosts.hosts.entry(one.host()).or_default();
                    let disk = disk.disks.entry(one.label("device")).or_default();
                    add(&one, axis, gathered(disk));
                }
                anyhow::Ok(())
            };
            gather(&mut hosts, RANKING_FIGURE, &labels)?;
            let chosen = hosts.chosen(choice);
            if !chosen.is_empty() {
                let labels = labels_of(&chosen);
                for of in CHOSEN_DISK_FIGURES {
                    gather(&mut hosts, of, &labels)?;
                }
            }
            for one in client.range(&expression(PRESSURE, window, &labels), axis)? {
                let host = hosts.hosts.entry(one.host()).or_default();
                add(&one, axis, &mut host.io_pressure);
            }
            for one in client.range(&expression(CPU, window, &labels), axis)? {
                let host = hosts.hosts.entry(one.host()).or_default();
                add(&one, axis, &mut host.cpu_busy);
            }
            hosts.findings = self.findings(client, axis, &labels)?;
            Ok(hosts)
        })
    }

    /// Adds the extremes within slots to the chosen disks.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) fn add_extremes(
        &self,
        hosts: &mut Hosts,
        chosen: &[DiskName],
        axis: &Axis,
    ) -> anyhow::Result<()> {
        let part = axis.slot_s() / PARTS_PER_SLOT;
        let extremes = self.ask(|client| {
            let window = self.window(client, part)?;
            // A part that is shorter than a rate's window has no extremes of its own.
            if part < window || chosen.is_empty() {
                return Ok(Vec::new());
            }
            let labels = labels_of(chosen);
            let mut found = Vec::new();
            for (of, gathered) in std::iter::once(RANKING_FIGURE).chain(CHOSEN_DISK_FIGURES) {
                let inner = expression(of, window, &labels);
                for extreme in ["min_over_time", "max_over_time"] {
                    let query = format!("{extreme}(({inner})[{}s:{part}s])", axis.slot_s());
                    for one in client.range(&query, axis)? {
                        found.push((gathered, one));
                    }
                }
            }
            Ok(found)
        })?;
        for (gathered, one) in extremes {
            let host = hosts.hosts.get_mut(&one.host());
            if let Some(disk) = host.and_then(|host| host.disks.get_mut(&one.label("device"))) {
                widen(&one, axis, gathered(disk));
            }
        }
        Ok(())
    }

    fn findings(
        &self,
        client: &Client,
        axis: &Axis,
        labels: &str,
    ) -> anyhow::Result<Vec<OpenFinding>> {
        let mut found = Vec::new();
        let step = axis.slot_s() as f64;
        for one in client.range(&format!("{FINDINGS}{{{labels}}}"), axis)? {
            let mut rest = one.values.as_slice();
            while let Some((began, _)) = rest.first() {
                let length = rest
                    .windows(2)
                    .take_while(|pair| pair[1].0 - pair[0].0 < 1.5 * step)
                    .count();
                let last = rest[length].0;
                let lasts = last + step >= axis.to() as f64;
                found.push(OpenFinding {
                    disk: DiskName {
                        hostname: one.host(),
                        name: one.label("name"),
                    },
                    code: one.label("code"),
                    severity: one.label("severity"),
                    began: timestamp((began - step) as i64),
                    ended: (!lasts).then(|| timestamp(last as i64)),
                    text: meaning(&one.label("code")).to_owned(),
                    advice: String::new(),
                });
                rest = &rest[length + 1..];
            }
        }
        Ok(found)
    }

    /// The series of the command line on an axis. One that the server refuses is left out.
    pub(crate) fn named(&self, axis: &Axis) -> Vec<(String, SlotFigures)> {
        let read = |named: &NamedExpression| {
            // A refused query is an error of the expression, not of the server.
            let answer = self.ask(|client| Ok(client.range(&named.query, axis)));
            let series = answer.ok()?.ok()?;
            let is_one = series.len() == 1;
            let series = series.into_iter().take(MAX_SAME_NAME).map(move |one| {
                let mut gathered = SlotFigures::default();
                add(&one, axis, &mut gathered);
                let name = match is_one {
                    true => named.name.clone(),
                    false => format!("{} {}", named.name, one.labels_written()),
                };
                (name, gathered)
            });
            Some(series.collect::<Vec<_>>())
        };
        self.named.iter().filter_map(read).flatten().collect()
    }
}

/// Labels that some disks have, and others at most by chance.
fn labels_of(disks: &[DiskName]) -> String {
    let one_of = |of: fn(&DiskName) -> &String| {
        let mut names: Vec<String> = disks.iter().map(|disk| literal(of(disk))).collect();
        names.sort_unstable();
        names.dedup();
        quoted(&names.join("|"))
    };
    format!(
        "instance=~{},device=~{}",
        one_of(|disk| &disk.hostname),
        one_of(|disk| &disk.name)
    )
}

/// Adds a series whose values stand at the ends of slots.
fn add(series: &Series, axis: &Axis, to: &mut SlotFigures) {
    for (at, value) in &series.values {
        if let Some(slot) = axis.slot(at - axis.slot_s() as f64 / 2.0) {
            to.add(slot, Value::single(*value), 1.0);
        }
    }
}

/// Widens the extremes of slots, whose means stay.
fn widen(series: &Series, axis: &Axis, to: &mut SlotFigures) {
    for (at, value) in &series.values {
        if let Some(slot) = axis.slot(at - axis.slot_s() as f64 / 2.0) {
            to.widen(slot, *value);
        }
    }
}

/// A text as a quoted string of PromQL.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}

/// A name as a regular expression that matches only this name.
fn literal(name: &str) -> String {
    let escape = |c: char| match c.is_alphanumeric() || c == '_' {
        true => c.to_string(),
        false => format!("\\{c}"),
    };
    name.chars().map(escape).collect()
}

/// Meaning of a finding's code, since metrics do not have the finding's own sentence.
fn meaning(code: &str) -> &'static str {
    event_code(code).map_or("A finding of a newer version.", EventCode::meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_stay_strings() {
        assert_eq!(quoted("a\"}\\"), "\"a\\\"}\\\\\"");
        assert_eq!(literal("db-1.x|y"), "db\\-1\\.x\\|y");
        assert_eq!(
            expression(BUSY_EXPRESSION, 60, "a=\"b\""),
            "rate(node_disk_io_time_seconds_total{a=\"b\"}[60s])"
        );
    }
}
