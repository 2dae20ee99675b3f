//! The verb `cost`: the volumes that carry a measured workload, the cheapest first, and for each other type and count
//! the reason why it does not.

pub mod args;
mod choose;
mod existing_volumes;
mod instance;
mod offer;
mod prices;
mod scaling;
mod views;
mod workload;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use args::CostArgs;
use choose::{CapacityVerdict, Goal};
use instance::InstanceLimits;
use offer::Offer;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use views::CostReport;
use workload::Workload;

/// Prints the volumes that carry a workload, with prices. Exit status 1 where none does.
pub fn cost(args: &CostArgs, context: &mut Context) -> Outcome {
    let offers = offers(args)?;
    let instance = args
        .instance
        .as_deref()
        .map(|name| InstanceLimits::find(name, args.instances.as_deref()))
        .transpose()?;
    let workload = workload(args, context)?;
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let report = report(args, &offers, instance, workload, today)?;
    let found = !report.choices.is_empty();
    let text = match args.json {
        true => views::json(&report),
        false => views::text(&report, context.columns),
    };
    context.print(&text)?;
    Ok(match found {
        true => CommandEnd::Done,
        false => CommandEnd::No,
    })
}

/// The workload, from a trace file or from the ledger.
fn workload(args: &CostArgs, context: &Context) -> Result<Workload, Failure> {
    let device = args.device.as_deref();
    if let Some(path) = Workload::trace_path(&args.workload) {
        return Workload::of_trace(path, device);
    }
    let ledger = context.open_ledger_if_there()?.ok_or_else(|| {
        Failure::refused("the ledger is empty: measure first ('disksmith bench TARGET'), or record ('disksmith watch --record')")
    })?;
    Workload::read(&ledger, &args.workload, args.phase.as_deref(), device)
}

/// Price for a month of the cheapest volumes that carry the base load alone; `None` for a workload that does not change
/// over time, and where no volumes carry it.
fn base_month(offers: &[Offer], workload: &Workload, goal: &Goal) -> Option<f64> {
    if workload.intervals.len() < 2 {
        return None;
    }
    let verdicts = choose::all(offers, &workload.base_alone(), goal).into_iter();
    let months = verdicts.filter_map(|verdict| match verdict {
        CapacityVerdict::Carries(choice) => Some(choice.month),
        CapacityVerdict::RuledOut(_) => None,
    });
    months.min_by(f64::total_cmp)
}

fn offers(args: &CostArgs) -> Result<Vec<Offer>, Failure> {
    let mut offers = offer::table();
    if let Some(path) = &args.prices {
        offer::merge(&mut offers, prices::read(path).refused()?);
    }
    let regions: Vec<String> = offers.iter().map(|offer| offer.region.clone()).collect();
    offers.retain(|offer| offer.region == args.region);
    if offers.is_empty() {
        let mut known = regions;
        known.sort();
        known.dedup();
        return Err(Failure::refused(format!(
            "there is no price of the region '{}'; there are prices of {}. Give others with --prices FILE",
            args.region,
            known.join(", ")
        )));
    }
    Ok(offers)
}

fn report(
    args: &CostArgs,
    offers: &[Offer],
    instance: Option<InstanceLimits>,
    workload: Workload,
    today: Date,
) -> Result<CostReport, Failure> {
    let goal = Goal {
        size_gib: args.size.0.0.div_ceil(record::Bytes::GIB.0),
        p99: args.p99.map(|latency| latency.0),
        most_volumes: args.volumes,
        instance: instance.clone(),
    };
    let verdicts = choose::all(offers, &workload, &goal);
    let (mut choices, mut ruled_out) = (Vec::new(), Vec::new());
    for verdict in verdicts {
        match verdict {
            CapacityVerdict::Carries(choice) => choices.push(*choice),
            CapacityVerdict::RuledOut(out) => ruled_out.push(out),
        }
    }
    choices.sort_by(|a, b| a.month.total_cmp(&b.month).then(a.count.cmp(&b.count)));
    let scaling = choices
        .first()
        .and_then(|best| scaling::best(best, &workload, &goal));
    let base_month = base_month(offers, &workload, &goal);
    let have = args
        .have
        .as_ref()
        .map(|have| scaling::idle(have, offers, &workload, &goal))
        .transpose()
        .map_err(Failure::refused)?;
    Ok(CostReport::new(
        args.region.clone(),
        offers,
        workload,
        instance,
        choices,
        ruled_out,
        base_month,
        scaling,
        have,
        today,
    ))
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![DocumentType::of::<views::Document>("cost")]
}
