//! Threads replace io_uring if the kernel refuses it, as in containers.

use super::*;

#[allow(
    dead_code,
    reason = "tests of the whole program refuse it to another process"
)]
#[path = "../../../../tests/support/no_uring.rs"]
mod no_uring;

#[test]
fn threads_take_the_place_of_a_ring_that_is_refused() {
    let scratch = scratch(MIB);
    let file = open_direct(&scratch.path);
    let refused = std::thread::spawn(move || {
        if let Err(error) = no_uring::refuse_uring() {
            skip::skipped(&format!("no seccomp filter can be set here ({error})"));
            return;
        }
        let mut source = Script::new(pieces(MIB, 64 << 10), |_| 8);
        let end = run(&file, BufferMode::Reads, IoInterface::Auto, &mut source).unwrap();
        assert_eq!(end.kind.kind, EngineKind::Sync);
        let detail = end.kind.detail;
        assert!(detail.starts_with("io_uring is refused here"), "{detail}");
        assert_eq!(good_tags(&source.done), (0..16).collect::<Vec<_>>());
        let mut source = Script::new(pieces(MIB, 64 << 10), |_| 8);
        let error = run(&file, BufferMode::Reads, IoInterface::Uring, &mut source).unwrap_err();
        assert!(matches!(error, EngineError::NoUring(_)), "{error}");
        assert_eq!(source.done, []);
    });
    refused.join().unwrap();
}
