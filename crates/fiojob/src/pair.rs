//! Values with parts: for reads and writes, in bytes or percent.

/// A size: in bytes, or as a share of the file or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A size in bytes.
    Bytes(u64),
    /// A share in percent, 0 to 100.
    Percent(u64),
}

/// A value for reads and a value for writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PerDirection<T> {
    /// Value for reads.
    pub read: T,
    /// Value for writes.
    pub write: T,
}
