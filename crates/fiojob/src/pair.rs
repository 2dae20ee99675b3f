//! Values that have parts: of reads and writes, in bytes or percent.

/// A size: in bytes, or as a share of the file or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// In bytes.
    Bytes(u64),
    /// In percent, 0 to 100.
    Percent(u64),
}

/// A value for reads and one for writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PerDirection<T> {
    /// For reads.
    pub read: T,
    /// For writes.
    pub write: T,
}
