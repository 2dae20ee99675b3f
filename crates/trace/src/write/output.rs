//! Writer of a format.

use std::io;

use crate::io::{Described, Io};

/// Writer of a format.
pub(super) trait Output {
    fn write(&mut self, io: &Io, described: &dyn Described) -> io::Result<()>;
    /// True if the time of issue of the last written I/O differs in the file by a microsecond or more.
    fn has_moved(&self, _io: &Io) -> bool {
        false
    }
    fn finish(self: Box<Self>) -> io::Result<()>;
}
