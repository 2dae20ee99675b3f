//! Formats of other tools.

pub(crate) mod blkreplay;
