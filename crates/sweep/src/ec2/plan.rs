//! The plan of a sweep of volume types, with its price, which the user confirms before anything is created.

use std::fmt::Write as _;

use domain::bought::BoughtVolumes;
use record::Bytes;
use serde::Serialize;

use super::checkpoint::{DOCUMENT, VolumeSpec};
use super::cloud::{HostInstance, TAG};
use crate::args::SweepArgs;
use crate::figure::{Figure, Metric};
use crate::objective::{Objective, Requirement};
use bench::suite;
use ui::table::{Column, layout, wrap};

/// Approximate time to create, attach, detach and delete a volume, in seconds.
const OVERHEAD_S: f64 = 60.0;
/// Name of the phase of a workload given by the user.
const OWN_WORKLOAD: &str = "workload";
/// Hours of a month, as billed by AWS.
pub(crate) const MONTH_H: f64 = 730.0;
/// Default of the part of each volume that is written and measured.
const DEFAULT_SPAN: Bytes = Bytes::gib(1);

/// Plan of a sweep over types of volumes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TypeSweepPlan {
    pub(crate) specs: Vec<VolumeSpec>,
    pub(crate) objective: Objective,
    pub(crate) requires: Vec<Requirement>,
    pub(crate) phases: Vec<String>,
    pub(crate) span: Bytes,
    pub(crate) rounds: usize,
    /// Approximate duration in seconds.
    pub(crate) seconds: f64,
    /// Region, currency and date of the prices.
    pub(crate) prices_of: String,
}

impl TypeSweepPlan {
    /// The plan of these arguments.
    ///
    /// # Errors
    /// All errors in them, as sentences.
    pub(crate) fn of(args: &SweepArgs) -> Result<TypeSweepPlan, Vec<String>> {
        let mut problems = Vec::new();
        let mut keep = |result: Result<(), String>| problems.extend(result.err());
        let mut specs: Vec<VolumeSpec> = Vec::new();
        for volume in &args.ec2 {
            let spec = spec(volume);
            keep(check_single_volume(volume, &spec));
            if specs.contains(&spec) {
                keep(Err(format!("{} is named twice", spec.text)));
            }
            specs.push(spec);
        }
        let span = args.size.map_or(DEFAULT_SPAN, |size| size.0);
        for spec in specs.iter().filter(|spec| span > spec.size()) {
            keep(Err(format!(
                "{} has no room for --size {}",
                spec.text,
                span.exact()
            )));
        }
        let objective = objective(args);
        let requires: Result<Vec<Requirement>, String> =
            args.require.iter().map(|text| text.parse()).collect();
        let (objective, requires) = match (objective, requires) {
            (Ok(objective), Ok(requires)) => (objective, requires),
            (objective, requires) => {
                problems.extend(objective.err());
                problems.extend(requires.err());
                return Err(problems);
            }
        };
        if objective == Objective::Cost && requires.is_empty() {
            problems.push(
                "the objective cost alone would choose the cheapest without measuring anything; give with --require \
                 what a volume must reach"
                    .to_owned(),
            );
        }
        let phases = phases(args, &objective, &requires);
        let mut seconds = 0.0;
        let planned = super::host::bench_args(args, &phases, span, std::path::Path::new("/"), 0)
            .and_then(|bench| {
                let own = args.workload.is_some();
                suite::plan(&bench, if own { &[] } else { &phases })
            });
        match planned {
            Ok(planned) => {
                let each = planned.len() as f64 * args.seconds.0.0 as f64 / 1e9;
                let rounds = (args.blocks * specs.len()) as f64;
                seconds = each * rounds + OVERHEAD_S * specs.len() as f64;
                let never = |figure: &Figure| {
                    let phase = planned.iter().find(|phase| phase.name == figure.phase)?;
                    crate::figures::reason_never_measured(figure, &phase.workload)
                };
                problems.extend(figures(&objective, &requires).into_iter().filter_map(never));
            }
            Err(why) => problems.push(why),
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(TypeSweepPlan {
            prices_of: args
                .ec2
                .first()
                .map(BoughtVolumes::price_source)
                .unwrap_or_default(),
            specs,
            objective,
            requires,
            phases,
            span,
            rounds: args.blocks,
            seconds,
        })
    }

    fn per_hour(&self) -> f64 {
        self.specs.iter().map(|spec| spec.per_hour).sum()
    }

    fn cost(&self) -> f64 {
        self.per_hour() * self.seconds / 3600.0
    }

    fn currency(&self) -> &str {
        self.specs.first().map_or("USD", |spec| &spec.currency)
    }

    /// The plan as text.
    pub(crate) fn text(&self, place: &HostInstance, sweep: &str, columns: usize) -> String {
        const COLUMNS: [Column; 5] = [
            Column::text("volume"),
            Column::numbers("GiB", 0),
            Column::numbers("IOPS", 0),
            Column::numbers("MiB/s", 0),
            Column::numbers("an hour", 0),
        ];
        let number = |number: Option<u64>| number.map_or("–".to_owned(), |it| it.to_string());
        let row = |spec: &VolumeSpec| {
            vec![
                spec.text.clone(),
                spec.gib.to_string(),
                number(spec.iops),
                number(spec.mibps),
                format!("{:.4} {}", spec.per_hour, spec.currency),
            ]
        };
        let rows: Vec<Vec<String>> = self.specs.iter().map(row).collect();
        let mut text = layout(&COLUMNS, &rows, columns);
        let question = format!(
            "These volumes are created in {}, attached to {}, written and measured in {} of {}, detached and deleted \
             again, also when it is interrupted. They carry the tag {TAG}={sweep}. That takes some {} min and costs \
             about {:.2} {currency} (prices of {}), and {:.4} {currency} for each hour that they exist longer.",
            place.zone,
            place.id,
            ui::format::count(self.rounds, "round"),
            self.phases.join(", "),
            (self.seconds / 60.0).ceil(),
            (self.cost() * 100.0).ceil() / 100.0,
            self.prices_of,
            self.per_hour(),
            currency = self.currency(),
        );
        let _ = writeln!(text, "{}", wrap(&question, columns, ""));
        text
    }

    /// The plan as a document.
    pub(crate) fn document(&self, place: &HostInstance) -> String {
        ui::json::document(
            DOCUMENT,
            &PlanDocument {
                dry_run: true,
                instance: &place.id,
                zone: &place.zone,
                volumes: &self.specs,
                seconds: self.seconds,
                cost: self.cost(),
                cost_per_hour: self.per_hour(),
                currency: self.currency(),
            },
        )
    }
}

/// Body of the document of `sweep --ec2 --dry-run --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PlanDocument<'a> {
    /// Always true: nothing was created.
    dry_run: bool,
    /// Id of the instance that the volumes would be attached to.
    instance: &'a str,
    /// Availability zone of the instance.
    zone: &'a str,
    /// The types that would be compared, a volume each.
    volumes: &'a [VolumeSpec],
    /// Estimated duration, in seconds.
    seconds: f64,
    /// Estimated cost of the volumes for that long, in `currency`.
    cost: f64,
    /// Cost of all volumes for an hour, in `currency`.
    cost_per_hour: f64,
    /// Currency of the prices.
    currency: &'a str,
}

fn spec(volume: &BoughtVolumes) -> VolumeSpec {
    let mut text = volume.kind().to_owned();
    let mibps = volume.throughput().map(|it| it.0 / Bytes::MIB.0);
    // Rates included with the type are not listed.
    if let Some(iops) = volume.iops() {
        let _ = write!(text, ",iops={iops}");
    }
    if let Some(mibps) = mibps {
        let _ = write!(text, ",throughput={mibps}MiB");
    }
    let gib = volume.size().0 / Bytes::GIB.0;
    let _ = write!(text, ":{gib}GiB");
    VolumeSpec {
        text,
        kind: volume.kind().to_owned(),
        gib,
        iops: volume.iops(),
        mibps,
        per_hour: volume.per_hour(),
        currency: volume.currency().to_owned(),
    }
}

/// Checks that a specification is of one volume, with a size that EC2 sells.
fn check_single_volume(volume: &BoughtVolumes, spec: &VolumeSpec) -> Result<(), String> {
    if volume.count() != 1 {
        return Err(format!(
            "{} volumes of {} are no type; name one, since each type is measured by one volume",
            volume.count(),
            spec.text
        ));
    }
    match volume.size() == spec.size() {
        true => Ok(()),
        false => Err(format!(
            "a volume of {} is not sold; its size is in whole GiB",
            volume.size().exact()
        )),
    }
}

fn objective(args: &SweepArgs) -> Result<Objective, String> {
    match &args.objective {
        Some(text) => text.parse(),
        None if args.workload.is_some() => {
            Ok(Objective::Figure(Figure::of(OWN_WORKLOAD, Metric::Iops)))
        }
        None => Ok(Objective::Figure(Figure::of("page-mixed", Metric::Iops))),
    }
}

/// The requested figures, without duplicates.
pub(crate) fn figures<'a>(
    objective: &'a Objective,
    requires: &'a [Requirement],
) -> Vec<&'a Figure> {
    let mut figures: Vec<&Figure> = Vec::new();
    let all = objective
        .figure()
        .into_iter()
        .chain(requires.iter().map(|require| &require.figure));
    for figure in all {
        if !figures.contains(&figure) {
            figures.push(figure);
        }
    }
    figures
}

/// The phases of the figures, and those named by the user, without duplicates.
fn phases(args: &SweepArgs, objective: &Objective, requires: &[Requirement]) -> Vec<String> {
    let mut phases: Vec<String> = Vec::new();
    let named = figures(objective, requires);
    for phase in named
        .into_iter()
        .map(|figure| &figure.phase)
        .chain(&args.phase)
    {
        if !phases.contains(phase) {
            phases.push(phase.clone());
        }
    }
    phases
}
