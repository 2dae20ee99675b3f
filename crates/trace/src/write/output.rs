//! Writer of a format.

use std::io;

use crate::io::{Described, Io};

/// Writer of a format.
pub(super) trait Output {
    fn write(&mut self, io: &Io, described: &dyn Described) -> io::Result<()>;
    fn finish(self: Box<Self>) -> io::Result<()>;
}
