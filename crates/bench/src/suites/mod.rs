//! The classic suites: what each measures, and in which order. `answer` says what came of it.

pub(crate) mod bonnie;
pub(crate) mod curve;
pub(crate) mod seek;
pub(crate) mod sysbench;
#[cfg(test)]
mod tests;
pub(crate) mod zones;
