//! Kinds of requests.

/// The kinds of requests that the kernel counts separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowKind {
    /// Requests that read.
    Read,
    /// Requests that write.
    Write,
    /// Requests that discard blocks.
    Discard,
    /// Requests that make earlier writes durable.
    Flush,
}

impl FlowKind {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [FlowKind; 4] = [
        FlowKind::Read,
        FlowKind::Write,
        FlowKind::Discard,
        FlowKind::Flush,
    ];

    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            FlowKind::Read => "read",
            FlowKind::Write => "write",
            FlowKind::Discard => "discard",
            FlowKind::Flush => "flush",
        }
    }
}
