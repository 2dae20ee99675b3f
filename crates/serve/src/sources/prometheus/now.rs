//! Hosts and their disks now, from the latest samples.

use jiff::Timestamp;

use super::answer::Series;
use super::{
    AWAIT, BUSY_EXPRESSION, CPU, FINDINGS, PRESSURE, Prometheus, QUEUE, expression, meaning,
};
use crate::documents::{
    Array, DiskNow, Finding, Flow, HostNow, HostSource, HostState, RoundedFigure,
};

impl Prometheus {
    /// Hosts and their disks now.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) fn now(&self) -> anyhow::Result<Vec<HostNow>> {
        self.ask(|client| {
            let window = self.window(client, 1)?;
            let mut hosts: Vec<HostNow> = Vec::new();
            for (of, set) in DISK_FIGURES {
                for one in client.now(&expression(of, window, ""))? {
                    let value = RoundedFigure(one.last());
                    let host = host_of(&mut hosts, &one);
                    set(disk_of(host, one.label("device")), value);
                }
            }
            for (of, set) in HOST_FIGURES {
                for one in client.now(&expression(of, window, ""))? {
                    let value = RoundedFigure(one.last());
                    set(host_of(&mut hosts, &one), value);
                }
            }
            for (of, set) in ARRAY_FIGURES {
                for one in client.now(of)? {
                    let disk = disk_of(host_of(&mut hosts, &one), one.label("device"));
                    set(disk.array.get_or_insert_with(unknown_array), &one);
                }
            }
            for one in client.now(FINDINGS)? {
                let host = host_of(&mut hosts, &one);
                let (code, name) = (one.label("code"), one.label("name"));
                if let Some(disk) = host.disks.iter_mut().find(|disk| disk.name == name) {
                    disk.findings.push(code.clone());
                }
                host.findings.push(Finding {
                    text: meaning(&code).to_owned(),
                    severity: one.label("severity"),
                    code,
                    name,
                    began: None,
                    advice: String::new(),
                    figures: Vec::new(),
                });
            }
            for host in &mut hosts {
                host.disks.sort_by(|a, b| a.name.cmp(&b.name));
            }
            hosts.sort_by(|a, b| a.hostname.cmp(&b.hostname));
            Ok(hosts)
        })
    }
}

/// Expression of a disk's current figure, and the field that it sets.
type NowOfDisk = (&'static str, fn(&mut DiskNow, RoundedFigure));

const DISK_FIGURES: [NowOfDisk; 7] = [
    (BUSY_EXPRESSION, |disk, value| disk.busy_fraction = value),
    (QUEUE, |disk, value| disk.queue = value),
    (AWAIT, |disk, value| disk.await_ms = value),
    (
        "rate(node_disk_reads_completed_total{D}[W])",
        |disk, value| {
            disk.read.iops = value;
        },
    ),
    (
        "rate(node_disk_writes_completed_total{D}[W])",
        |disk, value| {
            disk.write.iops = value;
        },
    ),
    ("rate(node_disk_read_bytes_total{D}[W])", |disk, value| {
        disk.read.bytes_per_s = value;
    }),
    (
        "rate(node_disk_written_bytes_total{D}[W])",
        |disk, value| {
            disk.write.bytes_per_s = value;
        },
    ),
];

/// Expression of a host's current figure, and the field that it sets.
type NowOfHost = (&'static str, fn(&mut HostNow, RoundedFigure));

const HOST_FIGURES: [NowOfHost; 4] = [
    (PRESSURE, |host, value| host.io_pressure_fraction = value),
    (CPU, |host, value| host.cpu_busy_fraction = value),
    ("node_load1", |host, value| host.load_1 = value),
    ("node_memory_Dirty_bytes", |host, value| {
        host.dirty_bytes = value
    }),
];

/// Expression of an array's current figure, and the field that it sets.
type NowOfArray = (&'static str, fn(&mut Array, &Series));

const ARRAY_FIGURES: [NowOfArray; 2] = [
    ("node_md_state==1", |array, one| {
        let state = one.label("state");
        array.action = match state.as_str() {
            "active" | "inactive" => "idle".to_owned(),
            _ => state,
        };
    }),
    ("disksmith_md_done_ratio", |array, one| {
        array.done_fraction = RoundedFigure(one.last());
    }),
];

fn unknown_array() -> Array {
    Array {
        action: "idle".to_owned(),
        done_fraction: UNKNOWN,
        speed_bytes_per_s: UNKNOWN,
        missing_members: UNKNOWN,
    }
}

const UNKNOWN: RoundedFigure = RoundedFigure(f64::NAN);

fn host_of<'a>(hosts: &'a mut Vec<HostNow>, series: &Series) -> &'a mut HostNow {
    let hostname = series.host();
    let place = match hosts.iter().position(|host| host.hostname == hostname) {
        Some(place) => place,
        None => {
            hosts.push(HostNow {
                hostname,
                source: HostSource::Prometheus,
                state: HostState::Live,
                age_s: RoundedFigure(
                    (Timestamp::now().as_second() as f64 - series.last_at()).max(0.0),
                ),
                cpu_busy_fraction: UNKNOWN,
                iowait_fraction: UNKNOWN,
                io_pressure_fraction: UNKNOWN,
                load_1: UNKNOWN,
                dirty_bytes: UNKNOWN,
                disks: Vec::new(),
                findings: Vec::new(),
            });
            hosts.len() - 1
        }
    };
    &mut hosts[place]
}

fn disk_of(host: &mut HostNow, name: String) -> &mut DiskNow {
    let place = match host.disks.iter().position(|disk| disk.name == name) {
        Some(place) => place,
        None => {
            let flow = Flow {
                iops: UNKNOWN,
                bytes_per_s: UNKNOWN,
                await_ms: UNKNOWN,
            };
            host.disks.push(DiskNow {
                kind: record::sample::DeviceKind::by_name(&name).name(),
                name,
                alias: None,
                model: None,
                size_bytes: None,
                lies_on: Vec::new(),
                read: flow.clone(),
                write: flow,
                await_ms: UNKNOWN,
                queue: UNKNOWN,
                busy_fraction: UNKNOWN,
                findings: Vec::new(),
                array: None,
            });
            host.disks.len() - 1
        }
    };
    &mut host.disks[place]
}
