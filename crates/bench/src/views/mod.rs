//! Output formats of runs, one file each. Views only present: nothing here measures or decides.

pub(crate) mod answer;
pub(crate) mod formatted;
pub mod html;
pub(crate) mod imported;
pub mod json;
pub(crate) mod logs;
#[cfg(any(test, feature = "testing"))]
pub mod sample;
pub(crate) mod text;
