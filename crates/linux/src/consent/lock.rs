//! Locks on what is to be overwritten, which tell of other programs and keep them away.

use std::fs::File;
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// The lock of fcntl(2) that a file is tried with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockKind {
    /// Exclusive lock, of a file that is open for writing.
    Exclusive,
    /// Shared lock, of a file that is open for reading only.
    Shared,
}

/// True if a condition lasts longer than a program needs that has just started or examines a device.
pub(super) fn persists(mut holds: impl FnMut() -> bool) -> bool {
    const MOMENT: Duration = Duration::from_millis(100);
    const ATTEMPTS: u32 = 20;
    (0..ATTEMPTS).all(|attempt| {
        if attempt > 0 {
            std::thread::sleep(MOMENT);
        }
        holds()
    })
}

/// Locks it as a whole, both ways in which programs do, which also tells udev to leave a device alone
/// (systemd, "Locking Block Device Access"). Whether that succeeded: a lock that lasts is a use, also where the
/// program that holds it is in a container and cannot be seen. The lock of flock(2) stays with the descriptor;
/// fcntl's would end whenever any descriptor of the file is closed, so that it is only tried.
pub(super) fn lock(file: &File, tried: LockKind) -> bool {
    let operation = match tried {
        LockKind::Exclusive => FlockOperation::NonBlockingLockExclusive,
        LockKind::Shared => FlockOperation::NonBlockingLockShared,
    };
    let by_record = || rustix::fs::fcntl_lock(file, operation);
    let whole = || rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
    if persists(|| is_locked(by_record())) || persists(|| is_locked(whole())) {
        return false;
    }
    let _ = rustix::fs::fcntl_lock(file, FlockOperation::NonBlockingUnlock);
    true
}

/// True if a lock was refused because another process holds one. File systems without locks return other errors.
fn is_locked(result: Result<(), Errno>) -> bool {
    matches!(result, Err(Errno::AGAIN | Errno::ACCESS))
}
