//! Many hosts at the same time, each on a thread of its own: one that is slow or dead holds up
//! nothing but its own thread.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::hosts::Host;

/// The stack of a thread that talks with a host, in bytes: it also takes in the answers.
pub(crate) const STACK: usize = 512 << 10;
/// Interval at which the signal is polled.
const POLL: Duration = Duration::from_millis(100);

/// Does `work` for each host, at most `batch` at the same time and in their order, and hands what
/// comes of it to `done`, on the thread that calls, as soon as it comes.
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
                // Those that are there do the work of the others too.
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

/// Lets only so many hosts be connected to at the same time.
pub(crate) struct ConnectionLimit {
    free: Mutex<usize>,
    changed: Condvar,
}

impl ConnectionLimit {
    /// A limit of so many at a time.
    pub(crate) fn new(places: usize) -> ConnectionLimit {
        ConnectionLimit {
            free: Mutex::new(places.max(1)),
            changed: Condvar::new(),
        }
    }

    /// Does `work` in a place that is free; `None` where the end came before.
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
            // Until a whole batch was seen once, however late a busy host lets it begin.
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
