//! Shares of jobs that run at the same time: each issues at most its weight's share of all requests (fio's `flow`).

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Groups of jobs that share their number of requests, by the number of the group.
#[derive(Default)]
pub(crate) struct FlowGroups(Mutex<Vec<(u32, Arc<Group>)>>);

#[derive(Default)]
struct Group(Mutex<Vec<Arc<Member>>>);

struct Member {
    weight: u32,
    issued: AtomicU64,
    gone: AtomicBool,
    /// Number of handles.
    held: AtomicU32,
}

/// Handle of a job in its group. When all handles of a job are dropped, the other jobs no longer wait for it.
pub(crate) struct FlowHandle {
    group: Arc<Group>,
    mine: Arc<Member>,
    /// Pause of a job that is ahead, in ticks.
    pause: u64,
    /// End of the pause; 0 without one.
    until: u64,
}

impl FlowGroups {
    /// Adds a job to group `id`.
    pub(crate) fn join(&self, id: u32, weight: u32, pause: u64) -> FlowHandle {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = groups.iter().find(|(known, _)| *known == id);
        let group = match known {
            Some((_, group)) => Arc::clone(group),
            None => {
                let group = Arc::<Group>::default();
                groups.push((id, Arc::clone(&group)));
                group
            }
        };
        let mine = Arc::new(Member {
            weight: weight.max(1),
            issued: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            held: AtomicU32::new(1),
        });
        group.members().push(Arc::clone(&mine));
        FlowHandle {
            group,
            mine,
            pause: pause.max(1),
            until: 0,
        }
    }
}

impl Group {
    fn members(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Member>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FlowHandle {
    /// True if nothing may be issued at `now`.
    pub(crate) fn is_blocked(&mut self, now: u64) -> bool {
        if now < self.until {
            return true;
        }
        self.until = if self.is_ahead() { now + self.pause } else { 0 };
        self.until > 0
    }

    /// Counts an issued request.
    pub(crate) fn issued(&self) {
        self.mine.issued.fetch_add(1, Relaxed);
    }

    /// End of the current pause.
    pub(crate) fn resumes_at(&self) -> Option<u64> {
        (self.until > 0).then_some(self.until)
    }

    /// True if the job has issued more than its share. One request is added to the total, so that a single job is
    /// never ahead.
    fn is_ahead(&self) -> bool {
        let (mut issued, mut weights) = (1_u128, 0_u128);
        for member in self.group.members().iter() {
            if !member.gone.load(Relaxed) {
                issued += u128::from(member.issued.load(Relaxed));
                weights += u128::from(member.weight);
            }
        }
        let mine = u128::from(self.mine.issued.load(Relaxed));
        mine * weights > u128::from(self.mine.weight) * issued
    }
}

impl Clone for FlowHandle {
    fn clone(&self) -> FlowHandle {
        self.mine.held.fetch_add(1, Relaxed);
        FlowHandle {
            group: Arc::clone(&self.group),
            mine: Arc::clone(&self.mine),
            ..*self
        }
    }
}

impl Drop for FlowHandle {
    fn drop(&mut self) {
        if self.mine.held.fetch_sub(1, Relaxed) == 1 {
            self.mine.gone.store(true, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_issue_by_their_weights_and_do_not_wait_for_ended_ones() {
        let flows = FlowGroups::default();
        let mut jobs =
            [(3, 1), (2, 1), (1, 1), (1, 9)].map(|(weight, id)| flows.join(id, weight, 5));
        let mut counts = [0_u64; 4];
        for round in 0..6000 {
            let now = round * 10;
            for (job, count) in jobs.iter_mut().zip(&mut counts) {
                if !job.is_blocked(now) {
                    job.issued();
                    *count += 1;
                }
            }
        }
        assert_eq!(counts[3], 6000, "it is alone in its group");
        let total: u64 = counts[..3].iter().sum();
        for (count, weight) in counts.iter().zip([3, 2, 1]) {
            assert!(count.abs_diff(total * weight / 6) <= 2, "{counts:?}");
        }
        let [mut first, second, third, _] = jobs;
        drop((second, third));
        let free = (0..100).filter(|at| {
            let free = !first.is_blocked(1_000_000 + at * 10);
            first.issued();
            free
        });
        assert_eq!(free.count(), 100);
    }

    #[test]
    fn a_job_counts_until_its_last_worker_has_ended() {
        let flows = FlowGroups::default();
        let (one, mut other) = (flows.join(0, 1, 5), flows.join(0, 1, 5));
        let worker = one.clone();
        drop(one);
        other.issued();
        other.issued();
        assert!(other.is_blocked(10) && other.resumes_at() == Some(15));
        drop(worker);
        assert!(!other.is_blocked(20));
    }
}
