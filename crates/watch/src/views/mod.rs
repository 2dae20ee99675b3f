//! Views of a watch, one file per output form.

pub(crate) mod journal;
pub(crate) mod json;
pub(crate) mod plain;
pub(crate) mod prometheus;
pub(crate) mod replay;
