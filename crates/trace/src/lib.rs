//! Recorded block I/O: what a trace is ([`Io`], [`Header`], [`TraceReader`]), and files of this and other tools.
//! `replay` reads a trace through [`TraceReader`] only.

#[allow(dead_code, reason = "for the formats that come next")]
mod decode;
mod file;
mod foreign;
mod input;
mod io;
mod names;
mod open;
mod order;
#[allow(dead_code, unused_imports, reason = "for the formats that come next")]
mod text;

pub use file::{Tick, TraceWriter};
pub use io::{
    Caveats, Described, Device, DeviceIndex, Header, Io, NameIndex, Op, ReadError, TraceReader,
    WriteCache,
};
pub use open::open;
