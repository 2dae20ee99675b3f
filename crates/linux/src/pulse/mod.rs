//! The kernel's files about a host that are read every second, or ten times a second.
//!
//! Each is opened once and read again from its start, which makes the kernel fill it again, into a buffer that
//! is kept. Where a file is missing, as in a container, its reader is not made, and the error says why.

mod groups;
mod kernel_log;
mod mdstat;
mod memory;
mod network;
mod polled_file;
mod pressure;
mod processes;
mod processors;
mod sizes;

pub use groups::{GroupLimit, GroupReader};
pub use kernel_log::{KernelLog, LogRecord};
pub use mdstat::{ArrayLine, MdStat, MemberWord};
pub use memory::{MemoryCounts, MemoryReader};
pub use network::{DirectionCounts, Interface, NetReader};
pub use polled_file::PolledFile;
pub use pressure::{PressureCounts, PressureReader, StallTimes, load};
pub use processes::{ProcessIo, process_group, process_io, process_name, process_of_thread};
pub use processors::ProcessorTime;
pub use sizes::SizedReader;
