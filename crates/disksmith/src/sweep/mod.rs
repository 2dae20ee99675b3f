//! The verb `sweep`: which layout of these devices is best.
#![allow(dead_code, reason = "the parts of the verb are put together last")]

mod decide;
mod decided;
mod figure;
mod figures;
mod layout;
mod objective;
mod price;
mod record;
