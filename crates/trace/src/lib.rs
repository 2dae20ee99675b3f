//! Recorded block I/O: what a trace is ([`Io`], [`Header`], [`TraceReader`]), and files of this and other tools.
//! `replay` reads a trace through [`TraceReader`] only.

mod decode;
mod event;
mod file;
mod foreign;
mod input;
mod io;
mod names;
mod open;
mod order;
mod pair;
mod text;
mod write;

pub use file::{Tick, TraceWriter};
pub use io::{
    Caveats, Described, Device, DeviceIndex, Header, Io, NameIndex, Op, ReadError, TraceReader,
    WriteCache,
};
pub use open::open;
