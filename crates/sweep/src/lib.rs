//! The verb `sweep`, which finds the best layout of devices.

mod answer;
pub mod args;
mod built_layout;
mod check;
mod checkpoint;
mod commands;
mod decide;
mod decision;
mod ec2;
mod figure;
mod figures;
mod html;
mod layout;
mod measure;
mod objective;
mod order;
mod plan;
mod price;
mod probe;
mod progress;
mod ready;
mod record;
mod resume;
mod run;
mod saved;
mod settings;
mod start;
mod testbed;
mod views;

use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use engine::Engine;

#[cfg(test)]
pub(crate) use decide::survivors;
pub(crate) use decision::{
    BaselineDrift, FactorEffect, LayoutOutcome, LayoutResult, ScalingCurve, Survivor, SweepDecision,
};
pub use figure::{Figure, Metric};
pub use figures::{figures_of, reason_never_measured};
pub(crate) use layout::{Factor, Layout};
pub use objective::{Objective, Requirement, ThresholdSide};
pub(crate) use record::{
    Cell, CellOutcome, ExcludedSetting, Probe, SweepRecord, SweepSettings, Value,
};
pub use saved::{document, report_page};
#[cfg(test)]
pub(crate) use {decision::Point, layout::Factors, price::Cost, record::SweptVolume};

use crate::args::SweepArgs;
use answer::answer;
use array::programs::InstalledPrograms;
use run::SweepEnd;
use ui::context::Context;
use ui::exit::{CommandEnd, Failure, Outcome};
use ui::output::{OutputFile, OutputFormat};

/// Finds the best layout of devices, or the best type of volume; or shows an earlier sweep.
pub fn sweep(
    args: &SweepArgs,
    context: &mut Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Outcome {
    let of_ec2 = |word: &&String| ec2::is_named(word);
    if let Some(word) = args.abandon.as_ref().filter(of_ec2) {
        return ec2::abandon(args, word, context, interrupt);
    }
    if let Some(word) = args.show.as_ref().filter(of_ec2) {
        return ec2::show(args, word, context);
    }
    if !args.ec2.is_empty() {
        return ec2::sweep(args, context, engine, interrupt);
    }
    let page = OutputFile::check_if_any(args.report.as_ref(), OutputFormat::Page, args.force)?;
    if let Some(word) = &args.show {
        return saved::show(args, word, page.as_ref(), context);
    }
    let mut programs = InstalledPrograms;
    if let Some(word) = &args.abandon {
        return saved::abandon(args, word, context, &mut programs);
    }
    if let Some(trace) = &args.replay {
        bench::check_trace(trace, &args.replay_options, interrupt)?;
    }
    let Some(ready) = start::start(args, context, &mut programs)? else {
        return Ok(CommandEnd::Done);
    };
    let mut sweep = ready.sweep(context, &mut programs, engine, interrupt);
    match sweep.run()? {
        SweepEnd::Over => {
            let (record, ledger) = sweep.finish()?;
            answer(args, page.as_ref(), context, &record, &ledger)
        }
        SweepEnd::Interrupted => {
            let ledger = sweep.job.suspend().into_ledger();
            let record = sweep.checkpoint.record;
            if !record.cells.is_empty() {
                answer(args, page.as_ref(), context, &record, &ledger)?;
            }
            Err(Failure::Midway(anyhow!(
                "interrupted; nothing is left assembled, and the same command continues where this \
                 stopped"
            )))
        }
    }
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![
        DocumentType::whole::<views::json::SweepDocument>("sweep", None),
        DocumentType::of::<start::DryRunBody>("sweep"),
        DocumentType::of::<saved::AbandonedBody>("sweep"),
        DocumentType::of::<ec2::answer::TypeComparison>("sweep ec2"),
        DocumentType::of::<ec2::plan::PlanDocument>("sweep ec2"),
        DocumentType::of::<saved::AbandonedBody>("sweep ec2"),
    ]
}
