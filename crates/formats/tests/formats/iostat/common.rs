//! Code that the tests share.

use formats::disk_log::{LogReport, Notes, Options, Reader};
use record::sample::{DeviceSample, Flow, Sample};

pub(crate) fn fixture(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/iostat");
    std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
}

pub(crate) fn read_with(text: &str, options: Options) -> (Vec<LogReport>, Notes) {
    let mut reader = Reader::new(text.as_bytes(), options);
    let readings = reader.by_ref().map(|reading| reading.unwrap()).collect();
    (readings, reader.notes().clone())
}

pub(crate) fn read(name: &str) -> (Vec<LogReport>, Notes) {
    read_with(&fixture(name), Options::default())
}

pub(crate) fn intervals(readings: &[LogReport]) -> Vec<&Sample> {
    let real = readings.iter().filter(|reading| !reading.since_boot);
    real.map(|reading| &reading.sample).collect()
}

pub(crate) fn device<'a>(sample: &'a Sample, name: &str) -> &'a DeviceSample {
    sample
        .named(name)
        .unwrap_or_else(|| panic!("no {name} in {sample:?}"))
}

/// IOPS, KiB/s and mean wait in milliseconds of a flow.
pub(crate) fn flow(flow: &Flow) -> (Option<f64>, Option<f64>, Option<f64>) {
    let round = |value: f64| (value * 1000.0).round() / 1000.0;
    (
        flow.iops.map(|iops| round(iops.0)),
        flow.bytes.map(|bytes| round(bytes.0 / 1024.0)),
        flow.wait.map(|wait| round(wait.0 as f64 / 1e6)),
    )
}

/// Value of a sample by iostat's column name; zero if it is unknown since there was no I/O.
pub(crate) fn by_name(sample: &DeviceSample, name: &str) -> Option<f64> {
    let flow = match name.trim_start_matches('%').chars().next()? {
        _ if ["tps", "kB/s", "rqm/s", "await", "areq-sz"].contains(&name) => &sample.all,
        'r' => &sample.read,
        'w' => &sample.write,
        'd' => &sample.discard,
        'f' => &sample.flush,
        'a' if name == "aqu-sz" => return sample.mean_in_flight,
        '%' | 'u' => return sample.busy.map(|busy| busy.percent()),
        _ => return None,
    };
    let kib = |bytes: f64| bytes / 1024.0;
    Some(match name {
        "r/s" | "w/s" | "d/s" | "f/s" | "tps" => flow.iops?.0,
        "kB/s" | "rkB/s" | "wkB/s" | "dkB/s" => kib(flow.bytes?.0),
        "rMB/s" | "wMB/s" | "dMB/s" => kib(kib(flow.bytes?.0)),
        "rsec/s" | "wsec/s" | "dsec/s" => 2.0 * kib(flow.bytes?.0),
        "rrqm/s" | "wrqm/s" | "drqm/s" | "rqm/s" => flow.merged?.0,
        "r_await" | "w_await" | "d_await" | "f_await" | "await" => {
            flow.wait.map_or(0.0, |wait| wait.0 as f64 / 1e6)
        }
        // Sizes are whole bytes here.
        "rareq-sz" | "wareq-sz" | "dareq-sz" | "areq-sz" => {
            let size = flow.size.map_or(0.0, |size| kib(size.0 as f64));
            (size * 100.0).round() / 100.0
        }
        _ => return None,
    })
}
