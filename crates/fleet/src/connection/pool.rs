//! Work on many hosts at the same time, each on a separate thread: a slow or dead host only delays its own thread.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::hosts::Host;

/// Stack size of a thread that communicates with a host, in bytes; it also parses the answers.
pub(crate) const STACK: usize = 512 << 10;
/// Interval at which the signal is polled.
const POLL: Duration = Duration::from_millis(100);

/// Does `work` for each host, at most `batch` at the same time and in order, and passes each result to `done` on the
/// calling thread as soon as it is available.
///
/// # Errors
/// When no thread can be started.
pub(crate) fn each<R: Send>(
    hosts: &[Host],
    batch: usize,
    work: impl Fn(usize, &Host) -> R + Sync,
    mut done: impl FnMut(usize, R),
) -> std::io::Result<()> {
    let next = AtomicUsize::new(0);
    let (sender, results) = channel();
    thread::scope(|scope| {
        let mut started = 0;
        let mut failed = None;
        for _ in 0..batch.clamp(1, hosts.len().max(1)) {
            let sender = sender.clone();
            let (next, work) = (&next, &work);
            let go = move || {
                loop {
                    let at = next.fetch_add(1, Relaxed);
                    let Some(host) = hosts.get(at) else { return };
                    let result = work(at, host);
                    if sender.send((at, result)).is_err() {
                        return;
                    }
                }
            };
            let thread = thread::Builder::new()
                .name("host".to_owned())
                .stack_size(STACK);
            match thread.spawn_scoped(scope, go) {
                Ok(_) => started += 1,
                // The existing threads do the work of the others too.
                Err(why) => {
                    failed = Some(why);
                    break;
                }
            }
        }
        drop(sender);
        for (at, result) in results {
            done(at, result);
        }
        match failed {
            Some(why) if started == 0 => Err(why),
            _ => Ok(()),
        }
    })
}

/// Limits the number of hosts that are connected to at the same time.
pub(crate) struct ConnectionLimit {
    free: Mutex<usize>,
    changed: Condvar,
}

impl ConnectionLimit {
    /// A limit of `places` hosts.
    pub(crate) fn new(places: usize) -> ConnectionLimit {
        ConnectionLimit {
            free: Mutex::new(places.max(1)),
            changed: Condvar::new(),
        }
    }

    /// Does `work` when a place is free; `None` if `over` is set before.
    pub(crate) fn pass<R>(&self, over: &AtomicBool, work: impl FnOnce() -> R) -> Option<R> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            if over.load(Relaxed) {
                return None;
            }
            let waited = self.changed.wait_timeout(free, POLL);
            (free, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        drop(free);
        let result = work();
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_one();
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn hosts(count: usize) -> Vec<Host> {
        vec![Host::default(); count]
    }

    #[test]
    fn each_host_is_done_once() {
        for batch in [1, 3, 100] {
            let mut seen = Vec::new();
            each(
                &hosts(20),
                batch,
                |at, _| at * 2,
                |at, result| seen.push((at, result)),
            )
            .unwrap();
            seen.sort_unstable();
            let all: Vec<(usize, usize)> = (0..20).map(|at| (at, 2 * at)).collect();
            assert_eq!(seen, all);
        }
    }

    #[test]
    fn no_more_than_a_batch_is_under_way() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |_, _: &Host| {
            most.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
            // Until a whole batch was seen once, however late a busy machine starts it.
            let began = Instant::now();
            while most.load(Relaxed) < 4 && began.elapsed() < Duration::from_secs(600) {
                thread::sleep(Duration::from_millis(1));
            }
            now.fetch_sub(1, Relaxed);
        };
        each(&hosts(24), 4, work, |_, ()| {}).unwrap();
        assert_eq!(most.load(Relaxed), 4);
    }

    #[test]
    fn one_that_is_slow_holds_up_no_other() {
        let (mut order, done) = (Vec::new(), AtomicUsize::new(0));
        // The first one waits for all others.
        let work = |at: usize, _: &Host| {
            let began = Instant::now();
            while at == 0 && done.load(Relaxed) < 49 {
                assert!(
                    began.elapsed() < Duration::from_secs(600),
                    "they wait for it"
                );
                thread::sleep(Duration::from_millis(1));
            }
            done.fetch_add(1, Relaxed);
        };
        each(&hosts(50), 2, work, |at, ()| order.push(at)).unwrap();
        assert_eq!(order.len(), 50);
    }
}
