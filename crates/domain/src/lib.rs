//! Types that several capabilities share.

pub mod bought;
pub mod filesystem;
pub mod moment;
pub mod plan_binding;
pub mod price;
pub mod raid;
pub mod ready_by;
pub mod values;
pub mod volume_type;
