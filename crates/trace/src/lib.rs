//! Traces of block I/O: their types ([`Io`], [`Header`], [`TraceReader`]), and files of this and other tools. `replay`
//! reads a trace through [`TraceReader`] only.

pub mod args;
mod class;
mod convert;
mod decode;
mod event;
mod figures;
mod file;
mod foreign;
mod html;
mod input;
mod io;
pub mod live;
mod names;
mod open;
mod order;
mod pair;
mod recorder;
mod show;
mod text;
mod tracepoints;
mod views;
mod write;

pub use class::{Class, SizeClass};
pub use file::{Tick, TraceWriter};
pub use io::{
    Caveats, Described, Device, DeviceIndex, Header, Io, NameIndex, Op, ReadError, TraceReader,
    WriteCache,
};
pub use open::open;

use std::sync::atomic::AtomicBool;

use args::{TraceAction, TraceArgs};
use ui::context::Context;
use ui::exit::Outcome;

/// Records, shows or converts a trace.
pub fn trace(args: &TraceArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    match &args.action {
        TraceAction::Record(args) => recorder::record(args, context, interrupt),
        TraceAction::Show(args) => show::show(args, context, interrupt),
        TraceAction::Convert(args) => convert::convert(args, context, interrupt),
    }
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![
        DocumentType::of::<convert::Document>("trace convert"),
        DocumentType::of::<recorder::Document>("trace record"),
        DocumentType::of::<views::TraceDocument>("trace show"),
    ]
}
