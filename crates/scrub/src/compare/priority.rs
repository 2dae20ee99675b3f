//! Priority of threads that compare.

/// Lowers the priority of this thread below that of other programs.
pub(super) fn give_way_to_others() {
    // Of Linux a thread is meant (setpriority(2), "C library/kernel differences").
    let _ = rustix::process::setpriority_process(None, 19);
}
