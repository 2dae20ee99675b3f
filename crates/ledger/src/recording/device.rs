//! A device's figures as a row of a table, and back.
//!
//! The kernel counts whole requests, sectors and milliseconds; a sample's rates and means are quotients of these. The
//! row holds the counts again, since they are whole and small, and leaves out figures that follow from others, where
//! they agree with them: a mean size, the sum of all kinds, and by Little's law the mean number in flight.

use record::sample::{
    ArraySample, BytesPerSecond, DeviceSample, Flow, Fraction, PerSecond, Progress, TimeOverLimits,
    VendorPage, VendorSample,
};
use record::{Bytes, Nanos};

use super::table::{ColumnUnit, Row};

/// Number of figures in a row.
pub(super) const FIGURES: usize = 48;

/// Number of figures of a flow: requests, bytes, merged requests, sum of the requests' times in milliseconds, and, if
/// they do not follow from these, mean time and mean size.
const FLOW: usize = 6;
const ALL: usize = 4 * FLOW;
const MEAN_IN_FLIGHT: usize = 29;
const IN_FLIGHT: usize = 30;
const BUSY: usize = 31;
const ARRAY: usize = 32;
const VENDOR: usize = 36;

/// Bits of the mask that are flags, beyond those of the figures.
const RESET: usize = FIGURES;
const SIZE_FOLLOWS: usize = FIGURES + 1;
const ALL_FOLLOWS: usize = FIGURES + 5;
const MEAN_FOLLOWS: usize = FIGURES + 6;
const HAS_ARRAY: usize = FIGURES + 7;
const HAS_VENDOR: usize = FIGURES + 8;
const IS_EBS: usize = FIGURES + 9;

const COUNT: ColumnUnit = ColumnUnit {
    coarse: 1.0,
    fine: 1.0 / 1024.0,
};
const SECTORS: ColumnUnit = ColumnUnit {
    coarse: 512.0,
    fine: 1.0,
};
const MILLISECONDS: ColumnUnit = ColumnUnit {
    coarse: 1.0,
    fine: 1e-6,
};
const ONE: ColumnUnit = ColumnUnit::only(1.0);
/// Maximum number of milliseconds, some 30 years: more do not fit the fine unit.
const MAX_MILLISECONDS: f64 = 1e12;

/// The units of the figures.
pub(super) const UNITS: [ColumnUnit; FIGURES] = units();

const fn units() -> [ColumnUnit; FIGURES] {
    let mut units = [ONE; FIGURES];
    let mut flow = 0;
    while flow < 4 {
        units[flow * FLOW] = COUNT;
        units[flow * FLOW + 1] = SECTORS;
        units[flow * FLOW + 2] = COUNT;
        units[flow * FLOW + 3] = MILLISECONDS;
        flow += 1;
    }
    units[ALL] = COUNT;
    units[ALL + 1] = SECTORS;
    units[ALL + 2] = COUNT;
    units[MEAN_IN_FLIGHT] = MILLISECONDS;
    units[BUSY] = MILLISECONDS;
    units
}

/// The row of a device in an interval of `seconds`.
pub(super) fn row(sample: &DeviceSample, seconds: f64) -> Row<FIGURES> {
    let mut row = Row::default();
    row.mark(RESET, sample.reset);
    let flows = [&sample.read, &sample.write, &sample.discard, &sample.flush];
    for (nth, flow) in flows.into_iter().enumerate() {
        put_flow(&mut row, nth, flow, seconds);
    }
    let is_counted = is_counted(sample, seconds);
    if is_counted && follows(sample) {
        row.mark(ALL_FOLLOWS, true);
    } else {
        let all = &sample.all;
        row.set(ALL, all.iops.map(|iops| iops.0 * seconds));
        row.set(ALL + 1, all.bytes.map(|bytes| bytes.0 * seconds));
        row.set(ALL + 2, all.merged.map(|merged| merged.0 * seconds));
        row.set(ALL + 3, all.wait.map(|wait| wait.0 as f64));
        row.set(ALL + 4, all.size.map(|size| size.0 as f64));
    }
    if let Some(mean) = sample.mean_in_flight {
        // The kernel truncates the times of the four kinds to milliseconds each, and their sum once.
        let near = 0.001 * mean + 0.004;
        let follows = little(sample).is_some_and(|of| (of - mean).abs() <= near);
        if is_counted && follows {
            row.mark(MEAN_FOLLOWS, true);
        } else {
            row.set(MEAN_IN_FLIGHT, Some(mean * seconds * 1e3));
        }
    }
    row.set(IN_FLIGHT, sample.in_flight.map(|count| count as f64));
    row.set(BUSY, sample.busy.map(|busy| busy.0 * seconds * 1e3));
    if let Some(array) = &sample.array {
        put_array(&mut row, array);
    }
    if let Some(vendor) = &sample.vendor {
        put_vendor(&mut row, vendor);
    }
    row
}

/// Fills a sample with the figures of a row. `known` has the parts of an array's state that are not figures.
pub(super) fn fill(known: &mut DeviceSample, row: &Row<FIGURES>, seconds: f64) {
    known.reset = row.has(RESET);
    known.read = flow(row, 0, seconds);
    known.write = flow(row, 1, seconds);
    known.discard = flow(row, 2, seconds);
    known.flush = flow(row, 3, seconds);
    if row.has(ALL_FOLLOWS) {
        known.sum_up();
    } else {
        known.all = Flow {
            iops: row.get(ALL).map(|count| PerSecond(count / seconds)),
            bytes: row
                .get(ALL + 1)
                .map(|bytes| BytesPerSecond(bytes / seconds)),
            merged: row.get(ALL + 2).map(|count| PerSecond(count / seconds)),
            wait: row.get(ALL + 3).map(|wait| Nanos(wait as u64)),
            size: row.get(ALL + 4).map(|size| Bytes(size as u64)),
        };
    }
    known.mean_in_flight = if row.has(MEAN_FOLLOWS) {
        little(known)
    } else {
        row.get(MEAN_IN_FLIGHT)
            .map(|milliseconds| milliseconds / seconds / 1e3)
    };
    known.in_flight = row.get(IN_FLIGHT).map(|count| count as u64);
    known.busy = row
        .get(BUSY)
        .map(|milliseconds| Fraction(milliseconds / seconds / 1e3));
    if row.has(HAS_ARRAY) {
        fill_array(known.array.get_or_insert_default(), row);
    } else {
        known.array = None;
    }
    known.vendor = row.has(HAS_VENDOR).then(|| vendor(row));
}

fn put_flow(row: &mut Row<FIGURES>, nth: usize, flow: &Flow, seconds: f64) {
    let at = nth * FLOW;
    let count = flow.iops.map(|iops| iops.0 * seconds);
    let bytes = flow.bytes.map(|bytes| bytes.0 * seconds);
    row.set(at, count);
    row.set(at + 1, bytes);
    row.set(at + 2, flow.merged.map(|merged| merged.0 * seconds));
    // With less than one request, the mean cannot be computed from the sum.
    let count = count.filter(|count| *count >= 0.999_999);
    let time = flow
        .wait
        .zip(count)
        .map(|(wait, count)| (wait.0 as f64 * count / 1e6, count));
    match (flow.wait, time.filter(|(time, _)| *time < MAX_MILLISECONDS)) {
        (_, Some((time, count))) => {
            // The mean was rounded to a nanosecond, while the kernel's sum is whole milliseconds.
            let whole = time.round();
            let is_whole = (time - whole).abs() <= count * 0.51e-6;
            row.set(at + 3, Some(if is_whole { whole } else { time }));
        }
        (wait, _) => row.set(at + 4, wait.map(|wait| wait.0 as f64)),
    }
    let quotient = bytes.zip(count).map(|(bytes, count)| bytes / count);
    match (flow.size, quotient) {
        (Some(size), Some(quotient)) if (size.0 as f64 - quotient).abs() <= 1.0 => {
            row.mark(SIZE_FOLLOWS + nth, true);
        }
        (size, _) => row.set(at + 5, size.map(|size| size.0 as f64)),
    }
}

fn flow(row: &Row<FIGURES>, nth: usize, seconds: f64) -> Flow {
    let at = nth * FLOW;
    let (count, bytes) = (row.get(at), row.get(at + 1));
    let many = count.filter(|count| *count > 0.0);
    let wait = match (row.get(at + 3), many) {
        (Some(time), Some(count)) => Some(Nanos((time * 1e6 / count).round() as u64)),
        _ => row.get(at + 4).map(|wait| Nanos(wait as u64)),
    };
    let size = if row.has(SIZE_FOLLOWS + nth) {
        // The collector truncates the quotient to whole bytes; a little is added for rounding errors of the division.
        bytes
            .zip(many)
            .map(|(bytes, count)| Bytes((bytes / count + 1e-6) as u64))
    } else {
        row.get(at + 5).map(|size| Bytes(size as u64))
    };
    Flow {
        iops: count.map(|count| PerSecond(count / seconds)),
        bytes: bytes.map(|bytes| BytesPerSecond(bytes / seconds)),
        merged: row.get(at + 2).map(|count| PerSecond(count / seconds)),
        wait,
        size,
    }
}

/// False if a kind has a fraction of one request, as in a mean over a long time. Such a count is not restored exactly
/// enough to compute other figures from it.
fn is_counted(sample: &DeviceSample, seconds: f64) -> bool {
    let flows = [&sample.read, &sample.write, &sample.discard, &sample.flush];
    let mut counts = flows.iter().filter_map(|flow| Some(flow.iops?.0 * seconds));
    counts.all(|count| count <= 0.0 || count >= 0.999_999)
}

/// True if the total is the sum of the kinds.
fn follows(sample: &DeviceSample) -> bool {
    let mut again = DeviceSample::unknown(std::sync::Arc::clone(&sample.device));
    again.read = sample.read;
    again.write = sample.write;
    again.discard = sample.discard;
    again.sum_up();
    let (of, is) = (again.all, sample.all);
    let near = |a: Option<f64>, b: Option<f64>, slack: f64| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * a.abs().max(b.abs()) + slack,
        (None, None) => true,
        _ => false,
    };
    let nanos = |wait: Option<Nanos>| wait.map(|wait| wait.0 as f64);
    let bytes = |size: Option<Bytes>| size.map(|size| size.0 as f64);
    near(of.iops.map(|x| x.0), is.iops.map(|x| x.0), 0.0)
        && near(of.bytes.map(|x| x.0), is.bytes.map(|x| x.0), 0.0)
        && near(of.merged.map(|x| x.0), is.merged.map(|x| x.0), 0.0)
        && near(nanos(of.wait), nanos(is.wait), 1.0)
        && near(bytes(of.size), bytes(is.size), 1.0)
}

/// Mean number of requests in flight by Little's law: rate times time, over all kinds.
fn little(sample: &DeviceSample) -> Option<f64> {
    let flows = [&sample.read, &sample.write, &sample.discard, &sample.flush];
    let known = flows
        .iter()
        .filter_map(|flow| Some((flow.iops?.0, flow.wait)));
    let mut sum = None;
    for (iops, wait) in known {
        let share = iops * wait.map_or(0.0, |wait| wait.0 as f64) / 1e9;
        sum = Some(sum.unwrap_or(0.0) + share);
    }
    sum
}

fn put_array(row: &mut Row<FIGURES>, array: &ArraySample) {
    row.mark(HAS_ARRAY, true);
    row.set(ARRAY, array.position.map(|position| position.done.0 as f64));
    row.set(
        ARRAY + 1,
        array.position.map(|position| position.of.0 as f64),
    );
    row.set(ARRAY + 2, array.speed.map(|speed| speed.0));
    row.set(ARRAY + 3, array.mismatched.map(|count| count as f64));
}

fn fill_array(array: &mut ArraySample, row: &Row<FIGURES>) {
    array.position = row
        .get(ARRAY)
        .zip(row.get(ARRAY + 1))
        .map(|(done, of)| Progress {
            done: Bytes(done as u64),
            of: Bytes(of as u64),
        });
    array.speed = row.get(ARRAY + 2).map(BytesPerSecond);
    array.mismatched = row.get(ARRAY + 3).map(|count| count as u64);
}

fn put_vendor(row: &mut Row<FIGURES>, vendor: &VendorSample) {
    row.mark(HAS_VENDOR, true);
    row.mark(IS_EBS, vendor.page == VendorPage::Ebs);
    let exceeded = &vendor.exceeded;
    let figures = [
        Some(vendor.length.0),
        Some(vendor.reads),
        Some(vendor.writes),
        Some(vendor.read_bytes),
        Some(vendor.write_bytes),
        Some(vendor.read_time.0),
        Some(vendor.write_time.0),
        Some(exceeded.volume_iops.0),
        Some(exceeded.volume_bytes.0),
        exceeded.instance_iops.map(|time| time.0),
        exceeded.instance_bytes.map(|time| time.0),
        Some(vendor.queue),
    ];
    for (nth, figure) in figures.into_iter().enumerate() {
        row.set(VENDOR + nth, figure.map(|figure| figure as f64));
    }
}

fn vendor(row: &Row<FIGURES>) -> VendorSample {
    let figure = |nth: usize| row.get(VENDOR + nth).map(|figure| figure as u64);
    let known = |nth: usize| figure(nth).unwrap_or(0);
    VendorSample {
        page: if row.has(IS_EBS) {
            VendorPage::Ebs
        } else {
            VendorPage::InstanceStore
        },
        length: Nanos(known(0)),
        reads: known(1),
        writes: known(2),
        read_bytes: known(3),
        write_bytes: known(4),
        read_time: Nanos(known(5)),
        write_time: Nanos(known(6)),
        exceeded: TimeOverLimits {
            volume_iops: Nanos(known(7)),
            volume_bytes: Nanos(known(8)),
            instance_iops: figure(9).map(Nanos),
            instance_bytes: figure(10).map(Nanos),
        },
        queue: known(11),
        read_latency: Vec::new(),
        write_latency: Vec::new(),
    }
}
