//! Checks of a host and its database against what its disks were measured to do.
