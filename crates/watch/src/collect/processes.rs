//! The I/O of each process in an interval: bytes from the kernel's counters, requests from its events.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linux::Root;
use linux::pulse::{ProcessIo, process_group, process_io, process_name, process_of_thread};
use record::sample::ProcessSample;
use record::{Bytes, Nanos};

/// Maximum number of processes in a sample.
const MAX_PROCESSES: usize = 10;
/// Divisor of the time that may be spent on reading counters, which takes long with thousands of processes: at most one
/// part in this number.
const COUNTERS_TIME_DIVISOR: u32 = 50;

/// Reader of processes' counters.
pub(super) struct Processes {
    root: Root,
    last: Option<(Nanos, HashMap<u32, ProcessIo>)>,
    /// Number of requests of each process or thread since the last poll.
    requests: HashMap<u32, u64>,
    /// Process of each known thread.
    known: HashMap<u32, u32>,
    /// Names of processes, which may have ended.
    names: HashMap<u32, Arc<str>>,
    next: Instant,
}

impl Processes {
    /// A reader without earlier counters.
    pub(super) fn new(root: &Root) -> Processes {
        Processes {
            root: root.clone(),
            last: None,
            requests: HashMap::new(),
            known: HashMap::new(),
            names: HashMap::new(),
            next: Instant::now(),
        }
    }

    /// The processes with the most I/O since the last poll, and the time since then. Empty where the last poll was too
    /// recent, compared with its duration.
    pub(super) fn poll(
        &mut self,
        threads: HashMap<u32, u64>,
        now: Nanos,
        name: impl Fn(u32) -> Option<Arc<str>>,
    ) -> (Vec<ProcessSample>, Nanos) {
        let seen: HashSet<u32> = threads.keys().copied().collect();
        self.known.retain(|thread, _| seen.contains(thread));
        for (thread, requests) in threads {
            let process = *self.known.entry(thread).or_insert_with(|| {
                let process = process_of_thread(&self.root, thread).unwrap_or(thread);
                self.names.extend(name(thread).map(|name| (process, name)));
                process
            });
            *self.requests.entry(process).or_default() += requests;
        }
        let began = Instant::now();
        if began < self.next {
            return (Vec::new(), Nanos(0));
        }
        let counters = process_io(&self.root);
        let before = self.last.replace((now, counters));
        let requests = std::mem::take(&mut self.requests);
        let (Some((then, before)), Some((_, counters))) = (before, &self.last) else {
            return (Vec::new(), Nanos(0));
        };
        let found = self.busiest(&before, counters, &requests);
        self.names
            .retain(|process, _| requests.contains_key(process));
        let took = began.elapsed();
        self.next = began + (took * COUNTERS_TIME_DIVISOR).min(Duration::from_secs(60));
        (found, now - then)
    }

    fn busiest(
        &self,
        before: &HashMap<u32, ProcessIo>,
        counters: &HashMap<u32, ProcessIo>,
        requests: &HashMap<u32, u64>,
    ) -> Vec<ProcessSample> {
        let pids: HashSet<u32> = counters.keys().chain(requests.keys()).copied().collect();
        let moved = |pid: u32| {
            let since = before.get(&pid).copied().unwrap_or_default();
            let io = counters.get(&pid).copied().unwrap_or_default();
            // Another process with the same id counts from zero.
            let since = match io.read.0 < since.read.0 || io.written.0 < since.written.0 {
                true => ProcessIo::default(),
                false => since,
            };
            ProcessSample {
                pid,
                name: String::new(),
                group: None,
                read: Bytes(io.read.0 - since.read.0),
                written: Bytes(io.written.0 - since.written.0),
                requests: requests.get(&pid).copied().unwrap_or(0),
            }
        };
        let mut all: Vec<ProcessSample> = pids.into_iter().map(moved).collect();
        all.retain(|one| one.weight() > 0);
        all.sort_by_key(|one| (Reverse(one.weight()), one.pid));
        all.truncate(MAX_PROCESSES);
        for one in &mut all {
            let name = process_name(&self.root, one.pid);
            let name = name.or_else(|| self.names.get(&one.pid).map(ToString::to_string));
            one.name = name.unwrap_or_else(|| "(ended)".to_owned());
            one.group = process_group(&self.root, one.pid);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn bytes_and_requests_of_a_process_come_together() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        let process = root.proc.join("12");
        fs::create_dir_all(root.proc.join("13")).unwrap();
        fs::create_dir_all(&process).unwrap();
        let put = |read: u64| {
            let text = format!("read_bytes: {read}\nwrite_bytes: 0\n");
            fs::write(process.join("io"), text).unwrap();
        };
        fs::write(process.join("comm"), "mariadbd\n").unwrap();
        fs::write(root.proc.join("13").join("status"), "Tgid:\t12\n").unwrap();
        put(4096);
        let mut processes = Processes::new(&root);
        let name = |_: u32| Some(Arc::from("worker"));
        let first = processes.poll(HashMap::new(), Nanos::from_secs(1), name);
        assert_eq!(first, (Vec::new(), Nanos(0)));
        put(12_288);
        processes.next = Instant::now();
        let threads = HashMap::from([(13, 5), (99, 1)]);
        let (found, over) = processes.poll(threads, Nanos::from_secs(3), name);
        assert_eq!(over, Nanos::from_secs(2));
        let figures: Vec<(u32, &str, u64, u64)> = found
            .iter()
            .map(|one| (one.pid, one.name.as_str(), one.read.0, one.requests))
            .collect();
        assert_eq!(figures, [(12, "mariadbd", 8192, 5), (99, "worker", 0, 1)]);
    }
}
