//! A request of a client.

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Data.
    Read,
    /// To put data there.
    Write,
    /// To put zeros there, which counts as writing them.
    Zero,
    /// To discard.
    Trim,
    /// To have what was written kept.
    Flush,
}

/// One request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Kind.
    pub kind: RequestKind,
    /// The first byte.
    pub offset: u64,
    /// Length in bytes; the end is inside the volume.
    pub length: u64,
}
