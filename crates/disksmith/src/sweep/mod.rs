//! The verb `sweep`: which layout of these devices is best.
#![allow(dead_code, reason = "the parts of the verb are put together last")]

mod decided;
mod figure;
mod layout;
mod objective;
mod price;
mod record;

#[cfg(test)]
pub(crate) use decided::Point;
pub(crate) use decided::{Curve, Decided, Drift, Effect, Row, Standing};
pub(crate) use figure::{Figure, Metric};
pub(crate) use layout::{Factor, Layout};
pub(crate) use objective::{Objective, Requirement, Side};
#[cfg(test)]
pub(crate) use price::Cost;
#[cfg(test)]
pub(crate) use record::Volume;
pub(crate) use record::{Cell, CellOutcome, LeftOut, Probe, Settings, SweepRecord, Value};
