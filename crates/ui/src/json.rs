//! The documents that `--json` prints.

/// The version of the document's form.
pub const SCHEMA: u32 = 1;
