//! The verb `sweep`: which layout of these devices is best.
#![allow(dead_code, reason = "the parts of the verb are put together last")]

mod decided;
mod figure;
mod figures;
mod layout;
mod objective;
mod price;
mod record;
pub(crate) fn sweep(
    _: &crate::cli::SweepArgs,
    _: &mut crate::context::Context,
    _: &dyn engine::Engine,
    _: &std::sync::atomic::AtomicBool,
) -> crate::failure::Outcome {
    Ok(crate::failure::Answer::Done)
}
mod order;
mod plan;
