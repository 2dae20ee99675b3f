//! The kernel's interfaces: block devices and their stack, mounts, swap, diskstats, signatures, extents, used
//! space, processes, network traffic, load and machine facts; and, on top of these, consent to overwrite.
//!
//! The kernel's files are read under a [`Root`], which a test points at a captured tree. Nothing here decides
//! what a figure is worth, and nothing is printed.

pub mod aws;
pub mod block;
pub mod cache;
pub mod cloud;
pub mod consent;
pub mod datagrams;
pub mod diskstats;
pub mod ebs;
pub mod exec;
pub mod extents;
pub mod kernel;
pub mod machine;
pub mod mapping;
pub mod md;
pub mod mounts;
pub mod network;
pub mod offload;
pub mod process;
pub mod pulse;
pub mod remedy;
pub mod root;
pub mod signature;
pub mod space;
pub mod spacemap;
pub mod swaps;
pub mod tracefs;
pub mod volume_id;
pub mod zoned;

pub use root::{Error, Result, Root};
