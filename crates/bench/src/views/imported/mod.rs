//! Views of imported runs: the same tables and documents as for runs of our own, with a dash or a null where
//! the tool did not say.

pub(crate) mod json;
mod rows;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod text;

pub(crate) use rows::{ImportedRow, rows};
