//! Tracepoints of the kernel through tracefs (Documentation/trace/ftrace.rst, events.rst): a separate instance, whose
//! events are read in the binary form of the kernel's ring buffer.

mod format;
mod instance;
mod mount;
mod page;

pub use format::{EventFormat, Field};
pub use instance::{Instance, LostEvents, Readers};
pub use mount::Tracefs;
pub use page::{RawEvent, TracePage};

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use record::Nanos;
use rustix::fs::OFlags;
use rustix::time::{ClockId, clock_gettime};

/// Present time on the clock of instances.
pub fn now() -> Nanos {
    nanos(ClockId::Monotonic)
}

/// Processor time of this process.
pub fn cpu_time() -> Nanos {
    nanos(ClockId::ProcessCPUTime)
}

/// Processor time of this thread.
pub fn thread_cpu_time() -> Nanos {
    nanos(ClockId::ThreadCPUTime)
}

fn nanos(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Nanos(seconds * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

/// Size of the read of [`read_directly`], which every device supports.
pub const CHECKED: usize = 4096;

/// Reads 4 KiB of a device with direct I/O, so that one request reaches the device.
///
/// # Errors
/// When the device cannot be read with direct I/O.
pub fn read_directly(node: &Path, offset: u64) -> io::Result<()> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::DIRECT.bits().cast_signed())
        .open(node)?;
    let mut room = vec![0; 2 * CHECKED];
    let start = room.as_ptr().align_offset(CHECKED);
    let aligned = room.get_mut(start..start + CHECKED);
    file.read_exact_at(aligned.unwrap_or_default(), offset)
}

/// Reason why events cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    /// The process is not root.
    #[error("tracing needs root (CAP_SYS_ADMIN); {}", crate::remedy::as_root())]
    NotRoot,
    /// The kernel has no tracefs.
    #[error("this kernel has no tracefs: it was built without CONFIG_TRACING")]
    NoTracefs,
    /// The kernel is locked down.
    #[error(
        "the kernel is locked down for confidentiality, which forbids tracing (kernel_lockdown(7)); boot with \
         lockdown=none or lockdown=integrity"
    )]
    LockedDown,
    /// The kernel has no such event.
    #[error("this kernel has no event {0}: it was built without CONFIG_BLK_DEV_IO_TRACE")]
    NoEvent(String),
    /// A format that cannot be parsed.
    #[error("{}: {detail}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The reason.
        detail: String,
    },
    /// An error of a file of tracefs.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}
