//! Waits and interrupts of a list.

use super::*;

/// A source that issues a request, waits, and issues another; or waits with a depth of 0.
struct Pause {
    began: Instant,
    until: Nanos,
    by_depth: bool,
    calls: u32,
    given: u64,
    done: Vec<CompletedRequest>,
}

impl Pause {
    fn over(&self) -> bool {
        self.began.elapsed() >= Duration::from(self.until)
    }
}

impl RequestSource for Pause {
    fn depth(&self) -> u32 {
        let paused = self.by_depth && self.given == 1 && !self.over();
        if paused { 0 } else { 4 }
    }

    fn next(&mut self, now: Nanos) -> Next {
        self.calls += 1;
        if self.given == 0 {
            // The list's own clock began at its setup.
            self.began = Instant::now().checked_sub(Duration::from(now)).unwrap();
        }
        match self.given {
            1 if !self.by_depth && now < self.until => return Next::Wait(self.until),
            2 => return Next::End,
            _ => self.given += 1,
        }
        Next::Request(Request::read(self.given * 4096, 4096, self.given))
    }

    fn done(&mut self, _: Nanos, done: CompletedRequest) {
        self.done.push(done);
    }
}

fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_wait_passes_without_spinning_and_then_it_continues() {
    let scratch = scratch(MIB);
    let file = open_direct(&scratch.path);
    for (interface, by_depth) in BOTH.into_iter().flat_map(|c| [(c, false), (c, true)]) {
        // The first call tests the clock, which takes time.
        run(
            &file,
            BufferMode::Reads,
            interface,
            &mut Script::new([], |_| 1),
        )
        .unwrap();
        let mut source = Pause {
            began: Instant::now(),
            until: Nanos(500_000_000),
            by_depth,
            calls: 0,
            given: 0,
            done: Vec::new(),
        };
        let cpu = thread_cpu_time();
        run(&file, BufferMode::Reads, interface, &mut source).unwrap();
        let cpu = thread_cpu_time() - cpu;
        assert_eq!(good_tags(&source.done), [1, 2]);
        // A slow disk may complete the first request after the second.
        source.done.sort_by_key(|done| done.request.tag);
        assert!(
            source.done[0].began < source.done[1].began,
            "{:?}",
            source.done
        );
        assert!(
            source.done[1].began >= Nanos(499_000_000),
            "{:?}",
            source.done
        );
        // First, wait, wait again after the first has completed, second, end; and a few to spare.
        assert!(source.calls <= 9, "{} calls", source.calls);
        assert!(
            cpu < Duration::from_millis(100),
            "{cpu:?} with {interface:?}"
        );
    }
}

/// A source without an end, which sets the interrupt after a number of requests.
struct Endless<'a> {
    interrupt: &'a AtomicBool,
    after: u64,
    given: u64,
    back: u64,
}

impl RequestSource for Endless<'_> {
    fn depth(&self) -> u32 {
        32
    }

    fn next(&mut self, _: Nanos) -> Next {
        assert!(self.given < self.after, "called after the interrupt");
        self.given += 1;
        if self.given == self.after {
            self.interrupt.store(true, Relaxed);
        }
        let offset = self.given % 16 * 65536;
        Next::Request(Request::read(offset, 65536, self.given))
    }

    fn done(&mut self, _: Nanos, done: CompletedRequest) {
        assert_eq!(done.result, Ok(()));
        self.back += 1;
    }
}

#[test]
fn an_interrupt_lets_requests_in_flight_complete_and_issues_no_more() {
    let scratch = scratch(MIB);
    let file = open_direct(&scratch.path);
    for interface in BOTH {
        let interrupt = AtomicBool::new(false);
        let mut source = Endless {
            interrupt: &interrupt,
            after: 1000,
            given: 0,
            back: 0,
        };
        let end = run_with(&file, BufferMode::Reads, interface, &interrupt, &mut source).unwrap();
        assert_eq!(end.ended, EndReason::Interrupted);
        assert_eq!((source.given, source.back), (1000, 1000));
    }
}

#[test]
fn an_interrupt_ends_a_long_wait() {
    struct Sleeper;
    impl RequestSource for Sleeper {
        fn depth(&self) -> u32 {
            1
        }
        fn next(&mut self, _: Nanos) -> Next {
            Next::Wait(Nanos::from_secs(3600))
        }
        fn done(&mut self, _: Nanos, _: CompletedRequest) {}
    }
    let scratch = scratch(MIB);
    let file = open_direct(&scratch.path);
    for interface in BOTH {
        let (interrupt, began) = (AtomicBool::new(false), Instant::now());
        let end = std::thread::scope(|scope| {
            let list = scope.spawn(|| {
                run_with(
                    &file,
                    BufferMode::Reads,
                    interface,
                    &interrupt,
                    &mut Sleeper,
                )
            });
            std::thread::sleep(Duration::from_millis(100));
            interrupt.store(true, Relaxed);
            list.join().unwrap().unwrap()
        });
        assert_eq!(end.ended, EndReason::Interrupted);
        assert!(began.elapsed() < Duration::from_secs(1800));
    }
}
