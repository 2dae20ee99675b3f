//! Notices about the hosts in progress, so that a host that hangs is named.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::hosts::Host;

/// Time before the first notice. It doubles each time, since work may take hours.
const FIRST_NOTICE: Duration = Duration::from_secs(30);
/// Maximum time between two notices.
const MAX_NOTICE_INTERVAL: Duration = Duration::from_secs(600);
/// Maximum number of hosts that are named; more are counted.
const MAX_NAMED_HOSTS: usize = 5;

/// The hosts in progress.
pub(crate) struct ProgressNotices<'a> {
    hosts: &'a [Host],
    began: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Start of the work on each host, by its index.
    working: BTreeMap<usize, Instant>,
    done: usize,
    over: bool,
}

impl<'a> ProgressNotices<'a> {
    /// No host is in progress yet.
    pub(crate) fn new(hosts: &'a [Host]) -> ProgressNotices<'a> {
        ProgressNotices {
            hosts,
            began: Instant::now(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on a host.
    pub(crate) fn work<R>(&self, at: usize, work: impl FnOnce() -> R) -> R {
        self.lock().working.insert(at, Instant::now());
        let result = work();
        let mut state = self.lock();
        state.working.remove(&at);
        state.done += 1;
        result
    }

    /// Ends the notices.
    pub(crate) fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    /// Reports the hosts in progress on standard error, until the end.
    pub(crate) fn report(&self) {
        let mut pause = FIRST_NOTICE;
        let mut next = self.began + pause;
        let mut state = self.lock();
        while !state.over {
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                if let Some(sentence) = sentence(&state, self.hosts, self.began.elapsed()) {
                    let line = ui::charset::printable(&sentence);
                    let _ = writeln!(std::io::stderr(), "{line}");
                }
                pause = (pause * 2).min(MAX_NOTICE_INTERVAL);
                next = Instant::now() + pause;
                continue;
            }
            let waited = self.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Notice about the hosts in progress, the longest-running first; `None` without any.
fn sentence(state: &State, hosts: &[Host], elapsed: Duration) -> Option<String> {
    let mut working: Vec<(&Instant, &str)> = state
        .working
        .iter()
        .filter_map(|(at, since)| Some((since, hosts.get(*at)?.name.as_str())))
        .collect();
    working.sort();
    let more = working.len().saturating_sub(MAX_NAMED_HOSTS);
    let named: Vec<&str> = working
        .iter()
        .map(|(_, name)| *name)
        .take(MAX_NAMED_HOSTS)
        .collect();
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| {
        format!(
            "disksmith: after {} s, {} of {} hosts are through; under way: {}{more}.",
            elapsed.as_secs(),
            state.done,
            hosts.len(),
            named.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::simulated_hosts;

    #[test]
    fn a_host_that_is_worked_on_is_named_the_longest_first() {
        let hosts = simulated_hosts(9);
        let begun = Instant::now();
        let mut state = State::default();
        assert_eq!(sentence(&state, &hosts, FIRST_NOTICE), None);
        for at in 0..7 {
            let since = begun + Duration::from_secs(10 - at as u64);
            state.working.insert(at, since);
        }
        state.done = 2;
        assert_eq!(
            sentence(&state, &hosts, FIRST_NOTICE).unwrap(),
            "disksmith: after 30 s, 2 of 9 hosts are through; under way: h6, h5, h4, h3, h2 and 2 more."
        );
    }

    #[test]
    fn a_host_that_is_through_is_not_under_way() {
        let hosts = simulated_hosts(2);
        let under_way = ProgressNotices::new(&hosts);
        under_way.work(1, || {
            let notice = sentence(&under_way.lock(), &hosts, FIRST_NOTICE).unwrap();
            assert!(notice.ends_with("under way: h1."), "{notice}");
        });
        assert_eq!(sentence(&under_way.lock(), &hosts, FIRST_NOTICE), None);
        under_way.end();
        under_way.report();
    }
}
