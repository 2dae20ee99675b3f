//! Recorded block I/O: what a trace is ([`Io`], [`Header`], [`TraceReader`]). Capture, files of this and other
//! tools, and figures of a trace are modules of this crate; `replay` reads a trace through [`TraceReader`] only.

mod io;

pub use io::{Device, DeviceIndex, Header, Io, NameIndex, Op, ReadError, TraceReader};
