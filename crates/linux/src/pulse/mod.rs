//! Files of the kernel with the state of the host that are read once or ten times a second.
//!
//! Each is opened once and read repeatedly from its start, which makes the kernel generate it again, into a reused
//! buffer. If a file does not exist, as in a container, its reader cannot be created, and the error has the reason.

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
