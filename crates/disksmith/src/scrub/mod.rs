//! The verb `scrub`: checks an array without hurting what runs on it.

pub(crate) mod locate;
pub(crate) mod schedule;
pub(crate) mod timer;
