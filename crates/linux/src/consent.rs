//! Consent to overwrite.
//!
//! 1. An existing file or a block device is only read ([`open_for_reading`]), unless the user names
//!    it again: [`Consent`], the value of `--destroy PATH[=SIGNATURE]`.
//! 2. Even then it is refused when it, what it lies on, a partition of it or anything stacked on it
//!    is mounted, swap or held, when it cannot be opened with `O_EXCL`, and when it carries a
//!    signature that the consent does not name. The [`Refusal`] holds every [`Reason`] found.
//!    A target is its storage, not its name: what shares storage with it (loop devices over one
//!    file) counts as the target does; so does a program that has any of it open for writing,
//!    mapped or locked. For a file the kernel tells of writers that cannot be seen. What cannot be judged (FUSE, an
//!    overlay, lists that a mount hides) is refused.
//! 3. The root disk is never accepted, nor any part of it, whatever the consent says.
//! 4. The check is made on what was opened. [`PinnedTarget`] pins the inode, and for a device thereby its
//!    number; the device is claimed with `O_EXCL` (open(2)) before anything is examined, and the
//!    claim is held by the [`DestroyTarget`] until it is dropped, so nothing can mount the device
//!    or build on it after the check.
//!
//! Mounts in other mount namespaces and ZFS pools do not show in mountinfo or sysfs; `O_EXCL` is what
//! notices these.

mod commands;
mod exports;
mod file_system;
mod identity;
mod lease;
mod lock;
mod loop_backing;
mod open;
mod option;
mod programs;
mod reason;
mod related;
mod storage;
mod unjudged;
mod users;
mod uses;

pub use open::{
    DestroyTarget, PinnedTarget, ReadTarget, open_again, open_for_destroying, open_for_reading,
};
pub use option::{Consent, ConsentError};
pub use programs::ProgramUse;
pub use reason::{Reason, Refusal, Relation, decisive};
pub use unjudged::{BackingUnknown, OpenError};
pub use users::DeviceUsers;
pub use uses::why_not_writable;
