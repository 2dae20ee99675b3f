//! Formats of other tools.

pub(crate) mod blkparse;
pub(crate) mod blkreplay;
pub(crate) mod blktrace;
pub(crate) mod csv;
pub(crate) mod fio;
pub(crate) mod hfplayer;
mod ordered;

#[cfg(test)]
mod tests;
