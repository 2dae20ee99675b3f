//! A kernel that refuses io_uring, as the seccomp profiles of containers do.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Has the kernel refuse io_uring to the command.
#[allow(
    unsafe_code,
    reason = "a filter must be set between fork and exec, by calls that Rust does not wrap"
)]
pub(crate) fn without_uring(command: &mut Command) -> &mut Command {
    // SAFETY: the closure runs in the child between fork and exec. It only makes two system calls,
    // which are async-signal-safe, and reads memory of its own.
    unsafe { command.pre_exec(refuse_uring) }
}

/// Has the kernel answer EPERM to io_uring_setup on this thread, and on those that it starts, from here on.
#[allow(unsafe_code, reason = "prctl is not wrapped")]
pub(crate) fn refuse_uring() -> std::io::Result<()> {
    // The call's number is the first word of what the filter is given (seccomp(2)).
    let word = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut steps = [
        step(word, 0, 0, 0),
        step(equal, libc::SYS_io_uring_setup as u32, 0, 1),
        step(answer, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        step(answer, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let filter = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: PR_SET_NO_NEW_PRIVS takes numbers only; PR_SET_SECCOMP reads `filter` and the steps
    // that it points to, which both live until it returns.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const filter,
            ) != 0
    };
    if failed {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}
