//! Both ways to the kernel, and which one a run says that it took.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::support::{Place, Running, SHORT, said, skipped};

fn kind(place: &Place, engine: &str) -> String {
    let run = place.document(&[&SHORT[..], &["--engine", engine]].concat());
    let kind = run["phases"][0]["engine"]["kind"].as_str().unwrap();
    kind.to_owned()
}

/// True if io_uring is available here, as the program itself finds; containers often refuse it.
fn has_uring(place: &Place) -> bool {
    let run = place.document(&SHORT);
    let has = run["phases"][0]["engine"]["kind"] == "uring";
    if !has {
        skipped("io_uring is refused here");
    }
    has
}

#[test]
fn threads_are_used_and_named_when_they_are_requested() {
    assert_eq!(kind(&Place::new(), "sync"), "sync");
}

#[test]
fn io_uring_is_used_and_named_when_it_is_requested() {
    let place = Place::new();
    if has_uring(&place) {
        assert_eq!(kind(&place, "uring"), "uring");
    }
}

#[test]
fn where_io_uring_is_refused_threads_do_the_work_and_the_answer_says_so() {
    let place = Place::new();
    let arguments = [&["bench", "data", "--json"], &SHORT[..]].concat();
    let run = said(without_uring(&mut place.command(&arguments)))
        .ends_with(0)
        .json();
    let engine = &run["phases"][0]["engine"];
    assert_eq!(engine["kind"], "sync");
    let detail = engine["detail"].as_str().unwrap();
    assert!(detail.contains("io_uring is refused"), "{detail}");
    assert!(run["phases"][0]["read"]["ops"].as_u64().unwrap() > 0);

    let arguments = [&["bench", "data"], &SHORT[..]].concat();
    let text = said(without_uring(&mut place.command(&arguments))).ends_with(0);
    assert!(
        text.prose().contains("pread/pwrite threads")
            && text.prose().contains("io_uring is refused here"),
        "{text:#?}"
    );
    place.assert_nothing_left();
}

#[test]
fn where_io_uring_is_refused_asking_for_it_is_an_error_that_names_the_way_out() {
    let place = Place::new();
    let arguments = [&["bench", "data", "--engine", "uring"], &SHORT[..]].concat();
    let said = Running::start(without_uring(&mut place.command(&arguments))).end();
    // Nothing was laid out for it.
    let said = said.ends_with(2);
    assert!(said.err.contains("leave out --engine uring"), "{said:#?}");
    assert_eq!(said.out, "");
    assert_eq!(place.runs(), [""; 0]);
    place.assert_nothing_left();
}

/// Has the kernel refuse io_uring to the command, as the seccomp profiles of containers do.
#[allow(
    unsafe_code,
    reason = "a filter must be set between fork and exec, by calls that Rust does not wrap"
)]
fn without_uring(command: &mut Command) -> &mut Command {
    // SAFETY: the closure runs in the child between fork and exec. It only makes two system calls,
    // which are async-signal-safe, and reads memory of its own.
    unsafe { command.pre_exec(|| refuse(libc::SYS_io_uring_setup as u32)) }
}

/// Has the kernel answer EPERM to one system call from here on.
#[allow(unsafe_code, reason = "prctl is not wrapped")]
fn refuse(call: u32) -> std::io::Result<()> {
    // The call's number is the first word of what the filter is given (seccomp(2)).
    let word = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut steps = [
        step(word, 0, 0, 0),
        step(equal, call, 0, 1),
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
