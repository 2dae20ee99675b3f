//! Views of imported runs: the same tables and documents as for measured runs, with a dash or a null where the tool
//! does not give a value.

pub(crate) mod json;
mod rows;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod text;

pub(crate) use rows::{ImportedRow, rows};
