//! The verb `bench`: suites, the preparation of a target, and what is concluded of a run.

pub(crate) mod conclusion;
