//! The workload of a job of fio, from its options.

use record::{Bytes, Pattern, WorkSummary};

use super::details;
use super::group::SummedJobs;
use super::options::Options;

impl Options<'_> {
    /// Workload of the jobs that `summed` names.
    pub(crate) fn work(&self, summed: SummedJobs) -> WorkSummary {
        if summed == SummedJobs::Sections || !self.are_known() {
            return WorkSummary::default();
        }
        let rw = self.get("rw").or_else(|| self.get("readwrite"));
        let rw = rw.unwrap_or("read").split(':').next().unwrap_or_default();
        let read_fraction = self.read_fraction(rw);
        let threads = summed.clones();
        WorkSummary {
            files: details::files(self),
            pattern: pattern(rw),
            read_fraction,
            block: self.size("bs").or_else(|| self.size("blocksize")),
            threads,
            depth: self.depth(),
            rate_per_s: threads.and_then(|clones| self.rate(clones, read_fraction)),
            span: self.span(threads),
            sync_every: self.sync_every(read_fraction),
            direct: self.number("direct", 0_u8).map(|direct| direct != 0),
            engine: self.get("ioengine").map(str::to_owned),
            sync_at_end: self.number("end_fsync", 0_u8).map(|sync| sync != 0),
            details: details::details(self),
            options: self.all(),
        }
    }

    /// Bytes that all clones use together. Each has its own files, unless they share a file name, or a file name format
    /// without the clone's number.
    fn span(&self, clones: Option<u32>) -> Option<Bytes> {
        let size = self.size("size")?;
        let form = self.get("filename_format");
        let share = form.is_some_and(|form| !form.contains("$jobnum"));
        let times = match share || self.get("filename").is_some() {
            true => 1,
            false => clones?,
        };
        size.0.checked_mul(u64::from(times)).map(Bytes)
    }

    /// Number of requests that each process keeps in flight. It is 1 whatever `iodepth` is if the engine is
    /// synchronous, as fio's default on Linux is (fio's HOWTO, `iodepth`).
    fn depth(&self) -> Option<u32> {
        const WAITING: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];
        let asked = self.number("iodepth", 1)?;
        let waits = WAITING.contains(&self.get("ioengine").unwrap_or("psync"));
        match self.get("io_submit_mode").unwrap_or("inline") {
            "inline" if waits => Some(1),
            "inline" => Some(asked),
            // An unknown engine may be synchronous.
            _ if asked > 1 => None,
            _ => Some(1),
        }
    }

    /// Requests a second over all of `clones`: `rate_iops` is for each of them, and in a mixed job
    /// for reads and for writes (seen with fio 3.33).
    fn rate(&self, clones: u32, reads: Option<f64>) -> Option<f64> {
        /// Options that slow a job down other than by a rate of requests.
        const THROTTLING_OPTIONS: [&str; 4] = ["rate", "thinktime", "latency_target", "flow"];
        let Some(given) = self.get("rate_iops") else {
            let slowed = THROTTLING_OPTIONS
                .iter()
                .any(|name| self.get(name).is_some());
            return (!slowed).then_some(0.0);
        };
        let mut rates = given.split(',').map(|rate| match rate {
            "" => Some(0.0),
            rate => rate.parse::<u64>().ok().map(|rate| rate as f64),
        });
        let of_reads = rates.next()??;
        let of_writes = match rates.next() {
            Some(rate) => rate?,
            None => of_reads,
        };
        let each = match reads? {
            reads if reads >= 1.0 => of_reads,
            reads if reads <= 0.0 => of_writes,
            _ if (of_reads > 0.0) == (of_writes > 0.0) => of_reads + of_writes,
            // Only one of the directions is limited.
            _ => return None,
        };
        Some(each * f64::from(clones))
    }

    fn read_fraction(&self, rw: &str) -> Option<f64> {
        match rw {
            "read" | "randread" => Some(1.0),
            "write" | "randwrite" | "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
                Some(0.0)
            }
            "rw" | "readwrite" | "randrw" => {
                let writes = self.get("rwmixwrite").map(|text| text.parse::<f64>().ok());
                let reads = match writes {
                    Some(writes) => 100.0 - writes?,
                    None => self.number("rwmixread", 50.0)?,
                };
                (0.0..=100.0).contains(&reads).then_some(reads / 100.0)
            }
            _ => None,
        }
    }

    fn sync_every(&self, reads: Option<f64>) -> Option<u32> {
        if reads.is_some_and(|reads| reads >= 1.0) {
            return Some(0);
        }
        match self.number("fdatasync", 0)? {
            0 => self.number("fsync", 0),
            every => Some(every),
        }
    }
}

fn pattern(rw: &str) -> Option<Pattern> {
    match rw {
        "randread" | "randwrite" | "randrw" | "randtrim" | "randtrimwrite" => Some(Pattern::Random),
        "read" | "write" | "rw" | "readwrite" | "trim" | "trimwrite" => Some(Pattern::Sequential),
        _ => None,
    }
}
