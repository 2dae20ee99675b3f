//! Output of `cost`: text and JSON.

use jiff::ToSpan as _;
use jiff::civil::Date;
use serde::Serialize;

use crate::choose::{RuledOut, VolumeChoice};
use crate::instance::InstanceLimits;
use crate::offer::Offer;
use crate::scaling::{IdleCapacity, Scaling};
use crate::workload::{Demand, Workload};
use ui::format::{date, number};
use ui::table::{Column, layout, wrap};

/// Maximum number of choices that the text shows.
const MAX_TEXT_CHOICES: usize = 10;

/// Data of the output.
pub(crate) struct CostReport {
    region: String,
    sources: Vec<Source>,
    warnings: Vec<String>,
    workload: Workload,
    instance: Option<InstanceLimits>,
    pub(crate) choices: Vec<VolumeChoice>,
    ruled_out: Vec<RuledOut>,
    /// Price for a month of the cheapest volumes that carry the base load alone.
    base_month: Option<f64>,
    scaling: Option<Scaling>,
    have: Option<IdleCapacity>,
}

/// Source of the prices of a volume type.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Source {
    /// Volume type, such as `gp3`.
    #[serde(rename = "type")]
    name: String,
    /// Date on which the source had this price, such as `2024-07-01`.
    as_of: String,
    /// Place from which the price was taken.
    source: String,
}

impl CostReport {
    #[allow(clippy::too_many_arguments, reason = "each is one part of the answer")]
    pub(crate) fn new(
        region: String,
        offers: &[Offer],
        workload: Workload,
        instance: Option<InstanceLimits>,
        choices: Vec<VolumeChoice>,
        ruled_out: Vec<RuledOut>,
        base_month: Option<f64>,
        scaling: Option<Scaling>,
        have: Option<IdleCapacity>,
        today: Date,
    ) -> CostReport {
        let source = |offer: &Offer| Source {
            name: offer.name.clone(),
            as_of: offer.as_of.clone(),
            source: offer.source.clone(),
        };
        CostReport {
            region,
            sources: offers.iter().map(source).collect(),
            warnings: old_prices(offers, today).into_iter().collect(),
            workload,
            instance,
            choices,
            ruled_out,
            base_month,
            scaling,
            have,
        }
    }
}

/// The warning that prices are more than a year old.
fn old_prices(offers: &[Offer], today: Date) -> Option<String> {
    let a_year_ago = today.checked_sub(1.year()).ok()?;
    let is_old = |offer: &&Offer| {
        offer
            .as_of
            .parse::<Date>()
            .is_ok_and(|as_of| as_of < a_year_ago)
    };
    let old: Vec<&Offer> = offers.iter().filter(is_old).collect();
    let oldest = old.iter().map(|offer| offer.as_of.as_str()).min()?;
    let names: Vec<&str> = old.iter().map(|offer| offer.name.as_str()).collect();
    Some(format!(
        "The prices of {} are of {oldest}, more than a year old. Compare them with your bill, or give your own with \
         --prices FILE.",
        names.join(", ")
    ))
}

/// The results as one JSON document.
pub(crate) fn json(report: &CostReport) -> String {
    let workload = &report.workload;
    let document = Document {
        region: &report.region,
        prices: &report.sources,
        warnings: &report.warnings,
        workload: WorkloadDocument {
            kind: workload.kind,
            name: &workload.name,
            host: &workload.host,
            at: workload.at.map(|at| at.to_string()),
            seconds: workload.seconds(),
            base: Rates::of(workload.base()),
            peak: Rates::of(workload.peak()),
            month_ops: workload.month_ops(),
        },
        instance: report.instance.as_ref(),
        choices: report
            .choices
            .iter()
            .map(|it| ChoiceDocument::of(it, workload))
            .collect(),
        ruled_out: report
            .ruled_out
            .iter()
            .map(|out| RuledOutDocument {
                name: &out.name,
                count: out.count,
                reason: &out.reason,
            })
            .collect(),
        base_month: report.base_month,
        scaling: report.scaling.as_ref().map(|scaling| ScalingDocument {
            from_hour_utc: scaling.from_hour,
            to_hour_utc: scaling.to_hour,
            iops: scaling.low.iops,
            mib_per_s: scaling.low.mibps,
            month: scaling.month,
            saved_month: scaling.saved,
        }),
        have: report.have.as_ref().map(|idle| ExistingVolumesDocument {
            month: idle.month,
            needed_month: idle.needed_month,
            idle_month: idle.needed_month.map(|needed| idle.month - needed),
            iops_beyond_instance: idle.iops_beyond_instance,
            mib_per_s_beyond_instance: idle.mibps_beyond_instance,
        }),
    };
    ui::json::document("cost", &document)
}

/// Body of the document of `cost --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// Region of the prices, as the provider names it.
    region: &'a str,
    /// Sources of the prices, of each volume type in the region.
    prices: &'a [Source],
    /// Reasons to doubt the prices, as sentences.
    warnings: &'a [String],
    workload: WorkloadDocument<'a>,
    /// Limits of the instance of `--instance`; null without that option.
    instance: Option<&'a InstanceLimits>,
    /// Volumes that carry the workload, the cheapest first.
    choices: Vec<ChoiceDocument<'a>>,
    /// Types and counts that do not carry it, with the reason.
    ruled_out: Vec<RuledOutDocument<'a>>,
    /// Price for a month of the cheapest volumes that carry the base load alone; null for a workload of a single
    /// rate, such as a run, and where none do.
    base_month: Option<f64>,
    /// Cheaper provision for some hours of each day; null where it saves nothing or nothing can be provisioned, with
    /// `--p99`, and where less than a day is known.
    scaling: Option<ScalingDocument>,
    /// Idle part of the volumes of `--have`; null without that option.
    have: Option<ExistingVolumesDocument>,
}

/// I/O that volumes must carry.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Rates {
    /// Reads and writes a second.
    iops: f64,
    /// Bytes a second.
    bytes_per_s: f64,
}

impl Rates {
    fn of(demand: Demand) -> Rates {
        Rates {
            iops: demand.iops,
            bytes_per_s: demand.bytes_per_s,
        }
    }
}

/// The workload, and where it was measured.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WorkloadDocument<'a> {
    /// `run`, `recording` or `trace`.
    kind: &'a str,
    /// Id and phase of the run, number of the recording, or path of the trace.
    name: &'a str,
    /// Host on which it was measured; empty for a trace.
    host: &'a str,
    /// Start of the measurement; null for a trace whose start is not known.
    at: Option<String>,
    /// Measured time.
    seconds: f64,
    /// Rates that are not exceeded for half of the time.
    base: Rates,
    /// Highest rates of any interval.
    peak: Rates,
    /// I/O in a month of 730 hours at the mean rate.
    month_ops: f64,
}

/// Volumes of one type that carry the workload together.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ChoiceDocument<'a> {
    /// Volume type, such as `gp3`.
    #[serde(rename = "type")]
    name: &'a str,
    /// Number of volumes.
    count: u32,
    /// `single`, or `raid0` for several volumes.
    layout: String,
    /// Size of each volume, in GiB.
    size_gib_each: u64,
    /// IOPS of each volume, provisioned or included.
    iops_each: f64,
    /// Throughput of each volume, in MiB/s, provisioned or included.
    mib_per_s_each: f64,
    /// Currency of the prices (ISO 4217).
    currency: &'a str,
    /// Price of all volumes for a month.
    month: f64,
    /// Price for a million I/O at the mean rate; null for a workload without I/O.
    per_million_io: Option<f64>,
    /// Price for a GiB and a month.
    per_gib: f64,
}

impl<'a> ChoiceDocument<'a> {
    fn of(choice: &'a VolumeChoice, workload: &Workload) -> ChoiceDocument<'a> {
        let millions = workload.month_ops() / 1e6;
        ChoiceDocument {
            name: &choice.offer.name,
            count: choice.count,
            layout: layout_of(choice.count),
            size_gib_each: choice.each.gib,
            iops_each: choice.each.iops,
            mib_per_s_each: choice.each.mibps,
            currency: &choice.offer.currency,
            month: choice.month,
            per_million_io: (millions > 0.0).then(|| choice.month / millions),
            per_gib: choice.month / (choice.each.gib * u64::from(choice.count)) as f64,
        }
    }
}

/// A type and count that does not carry the workload.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RuledOutDocument<'a> {
    /// Volume type, such as `gp3`.
    #[serde(rename = "type")]
    name: &'a str,
    /// Number of volumes.
    count: u32,
    /// Reason, such as the limit that is exceeded.
    reason: &'a str,
}

/// A smaller provision of the cheapest volumes for some hours of each day.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ScalingDocument {
    /// First hour of the smaller provision, 0 to 23.
    from_hour_utc: u8,
    /// First hour after it, 0 to 23.
    to_hour_utc: u8,
    /// IOPS of each volume in these hours.
    iops: f64,
    /// Throughput of each volume in these hours, in MiB/s.
    mib_per_s: f64,
    /// Price of all volumes for a month, with both provisions.
    month: f64,
    /// Amount by which this is cheaper in a month.
    saved_month: f64,
}

/// The volumes of `--have`, and the part of them that is idle.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ExistingVolumesDocument {
    /// Price of these volumes for a month.
    month: f64,
    /// Price of the least provision of these volumes that carries the peak; null where they do not carry it.
    needed_month: Option<f64>,
    /// Difference between the two prices; null where they do not carry the peak.
    idle_month: Option<f64>,
    /// IOPS beyond what the instance carries; 0 where its limits are not known.
    iops_beyond_instance: f64,
    /// MiB/s beyond what the instance carries; 0 where its limits are not known.
    mib_per_s_beyond_instance: f64,
}

fn layout_of(count: u32) -> String {
    match count {
        1 => "single".to_owned(),
        _ => "raid0".to_owned(),
    }
}

const COLUMNS: [Column; 9] = [
    Column::text("type"),
    Column::numbers("count", 0),
    Column::numbers("GiB each", 0),
    Column::numbers("IOPS each", 1),
    Column::numbers("MiB/s each", 1),
    Column::numbers("a month", 0),
    Column::text("").ranked(1),
    Column::numbers("per million I/O", 2),
    Column::numbers("per GiB", 2),
];

/// The results as text.
pub(crate) fn text(report: &CostReport, columns: usize) -> String {
    let workload = &report.workload;
    let mut paragraphs = vec![format!(
        "{} {}{}{}: {} IOPS and {} MiB/s at the peak, {} IOPS and {} MiB/s for half of the time.",
        match workload.kind {
            "run" => "Run",
            "trace" => "Trace",
            _ => "Recording",
        },
        workload.name,
        match workload.host.as_str() {
            "" => String::new(),
            host => format!(" at {host}"),
        },
        workload
            .at
            .map_or(String::new(), |at| format!(", {}", date(at))),
        number(workload.peak().iops),
        number(workload.peak().mibps()),
        number(workload.base().iops),
        number(workload.base().mibps()),
    )];
    let mut text = wrap(&paragraphs.remove(0), columns, "") + "\n\n";
    if report.choices.is_empty() {
        text.push_str("No volume type carries it.\n");
    } else {
        let rows: Vec<Vec<String>> = report
            .choices
            .iter()
            .take(MAX_TEXT_CHOICES)
            .map(|it| row(it, workload))
            .collect();
        text.push_str(&layout(&COLUMNS, &rows, columns));
        let more = report.choices.len().saturating_sub(MAX_TEXT_CHOICES);
        if more > 0 {
            paragraphs.push(format!(
                "{more} more cost more; --json lists them. Several volumes are striped (RAID 0)."
            ));
        }
    }
    for (name, counts, reason) in grouped(&report.ruled_out) {
        paragraphs.push(format!("{counts} {name}: {reason}."));
    }
    let cheapest = report.choices.first();
    paragraphs.extend(report.base_month.zip(cheapest).map(|(month, best)| {
        format!(
            "The base load alone, what half of the time needs, would cost {month:.2} a month; the peak costs {:.2} more.",
            best.month - month
        )
    }));
    paragraphs.extend(report.scaling.as_ref().map(|scaling| {
        format!(
            "Time of day: with {} IOPS and {} MiB/s each from {:02}:00 to {:02}:00 UTC, the cheapest of these costs {:.2} a \
             month, {:.2} less.",
            number(scaling.low.iops),
            number(scaling.low.mibps),
            scaling.from_hour,
            scaling.to_hour,
            scaling.month,
            scaling.saved
        )
    }));
    if let Some(idle) = &report.have {
        paragraphs.push(format!(
            "Paid for now: {:.2} a month. {}",
            idle.month,
            idle.sentences.join(" ")
        ));
    }
    let mut dates: Vec<&str> = report
        .sources
        .iter()
        .map(|source| source.as_of.as_str())
        .collect();
    dates.sort_unstable();
    dates.dedup();
    paragraphs.push(format!(
        "Prices of {} as of {}.",
        report.region,
        dates.join(", ")
    ));
    paragraphs.extend(
        report
            .warnings
            .iter()
            .map(|warning| format!("warning: {warning}")),
    );
    for paragraph in paragraphs {
        text.push_str(&wrap(&paragraph, columns, "  "));
        text.push('\n');
    }
    text
}

fn row(choice: &VolumeChoice, workload: &Workload) -> Vec<String> {
    let of = ChoiceDocument::of(choice, workload);
    vec![
        of.name.to_owned(),
        of.count.to_string(),
        number(of.size_gib_each as f64)
            .trim_end_matches(".0")
            .to_owned(),
        number(of.iops_each),
        number(of.mib_per_s_each),
        format!("{:.2}", of.month),
        of.currency.to_owned(),
        of.per_million_io
            .map_or("–".to_owned(), |price| format!("{price:.4}")),
        format!("{:.3}", of.per_gib),
    ]
}

/// Ruled-out types, where consecutive counts with the same kind of reason are grouped: name, counts, and the reason for
/// the highest count.
fn grouped(ruled_out: &[RuledOut]) -> Vec<(&str, String, &str)> {
    let kind = |out: &RuledOut| out.reason.split(':').next().unwrap_or_default().to_owned();
    let mut groups: Vec<(&RuledOut, &RuledOut)> = Vec::new();
    for out in ruled_out {
        match groups.last_mut() {
            Some((first, last)) if first.name == out.name && kind(first) == kind(out) => {
                *last = out
            }
            _ => groups.push((out, out)),
        }
    }
    let counts = |first: u32, last: u32| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    };
    groups
        .into_iter()
        .map(|(first, last)| {
            (
                first.name.as_str(),
                counts(first.count, last.count),
                last.reason.as_str(),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offer::table;

    #[test]
    fn prices_of_more_than_a_year_are_called_old() {
        let offers = table();
        let on = |text: &str| old_prices(&offers, text.parse().unwrap());
        assert_eq!(on("2025-07-01"), None);
        assert!(
            on("2025-07-02")
                .unwrap()
                .contains("2024-07-01, more than a year old")
        );
    }
}
