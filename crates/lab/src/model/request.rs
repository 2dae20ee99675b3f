//! A request of a client.

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Writes zeros; counts as a write.
    Zero,
    /// Discards.
    Trim,
    /// Flushes: makes earlier writes durable.
    Flush,
}

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Operation of the request.
    pub kind: RequestKind,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes; the end is inside the volume.
    pub length: u64,
}
