//! Threads take io_uring's place where the kernel refuses it, as in containers.

#![allow(unsafe_code)]

use super::*;

/// Has the kernel refuse io_uring_setup with EPERM on the calling thread and those that it starts
/// (seccomp(2), with a filter of four steps: load the call's number, compare, refuse, allow).
fn refuse_io_uring() -> std::io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let number = libc::SYS_io_uring_setup as u32;
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, refused),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the program points to its steps, which live until the calls have returned; the kernel
    // copies them.
    let answers = unsafe {
        [
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ),
        ]
    };
    if answers == [0, 0] {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

#[test]
fn threads_take_the_place_of_a_ring_that_is_refused() {
    let scratch = scratch(MIB);
    let file = open_direct(&scratch.path);
    let refused = std::thread::spawn(move || {
        if let Err(error) = refuse_io_uring() {
            skip::skipped(&format!("no seccomp filter can be set here ({error})"));
            return;
        }
        let mut feed = Script::new(pieces(MIB, 64 << 10), |_| 8);
        let end = run(&file, Memory::Reads, Choice::Auto, &mut feed).unwrap();
        assert_eq!(end.kind.kind, EngineKind::Sync);
        let detail = end.kind.detail;
        assert!(detail.starts_with("io_uring is refused here"), "{detail}");
        assert_eq!(good_tags(&feed.done), (0..16).collect::<Vec<_>>());
        let mut feed = Script::new(pieces(MIB, 64 << 10), |_| 8);
        let error = run(&file, Memory::Reads, Choice::Uring, &mut feed).unwrap_err();
        assert!(matches!(error, EngineError::NoUring(_)), "{error}");
        assert_eq!(feed.done, []);
    });
    refused.join().unwrap();
}
