//! Types that capabilities share, below all of them.

pub mod filesystem;
pub mod planned;
pub mod raid;
pub mod ready_by;
pub mod values;
pub mod when;
