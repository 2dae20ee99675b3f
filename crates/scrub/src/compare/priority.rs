//! Priority of threads that compare.

/// Lowers the priority of this thread below that of other programs.
pub(super) fn lower_priority() {
    // On Linux this sets the priority of the calling thread (setpriority(2), "C library/kernel differences").
    let _ = rustix::process::setpriority_process(None, 19);
}
