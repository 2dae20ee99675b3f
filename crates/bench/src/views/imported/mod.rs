//! Views of imported runs: the same tables as for measured runs, with a dash or a null where the tool
//! does not give a value.

mod rows;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod text;

pub(crate) use rows::{ImportedRow, rows};
