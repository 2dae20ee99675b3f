//! Long-running work: who does it, and how its state is kept.

pub mod checkpoint;
pub mod process;
