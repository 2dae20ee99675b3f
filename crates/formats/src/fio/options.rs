//! Options of a job: fio repeats those that were given, of the job and of `[global]`, as texts. An option
//! that does not exist has fio's default (fio's HOWTO).

use record::{Bytes, Pattern, TargetKind, WorkSummary};

use super::details;
use super::group::Summed;
use super::node::Node;
use crate::ReadError;

/// The options of one job.
pub(crate) struct Options<'a> {
    job: Option<Node<'a>>,
    global: Option<Node<'a>>,
}

impl<'a> Options<'a> {
    /// The options of `job`, and of its document's `[global]`.
    pub(crate) fn of(job: &Node<'a>, document: &Node<'a>) -> Result<Options<'a>, ReadError> {
        Ok(Options {
            job: job.object("job options")?,
            // A client writes a list, one for each of its servers.
            global: document.objects("global options")?.into_iter().next(),
        })
    }

    /// True if the options are in the document at all: those before fio 2.16 are not.
    fn are_known(&self) -> bool {
        let mut sections = [&self.job, &self.global].into_iter().flatten();
        sections.any(|section| section.entries().next().is_some())
    }

    /// The value of an option that was given.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let sections = [&self.job, &self.global].into_iter().flatten();
        sections
            .filter_map(|section| section.value(name))
            .find_map(|value| value.as_str())
    }

    /// The value of an option that was given to the job itself.
    pub(crate) fn own(&self, name: &str) -> Option<&'a str> {
        self.job.as_ref()?.value(name)?.as_str()
    }

    /// All that were given, each once: what the job was given itself goes first.
    fn all(&self) -> Vec<(String, String)> {
        let sections = [&self.job, &self.global].into_iter().flatten();
        let mut all: Vec<(String, String)> = Vec::new();
        for (name, value) in sections.flat_map(|section| section.entries()) {
            let known = all.iter().any(|(known, _)| known == name);
            if let Some(value) = value.as_str().filter(|_| !known) {
                all.push((name.to_owned(), value.to_owned()));
            }
        }
        all
    }

    /// A number that was given, or else fio's default.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> Option<T> {
        match self.get(name) {
            Some(text) => text.trim().parse().ok(),
            None => self.are_known().then_some(default),
        }
    }

    /// A size that was given.
    pub(super) fn size(&self, name: &str) -> Option<Bytes> {
        self.size_of(self.get(name)?)
    }

    /// The size that a text means in this job.
    pub(super) fn size_of(&self, text: &str) -> Option<Bytes> {
        // With another base a "k" is not 1024 bytes.
        let binary = self.get("kb_base").is_none_or(|base| base == "1024");
        text.parse().ok().filter(|_| binary)
    }

    /// Measured file or directory.
    pub(crate) fn target(&self) -> Option<&'a str> {
        self.get("filename").or_else(|| self.get("directory"))
    }

    /// Kind of the target: a directory is one in which fio makes its files.
    pub(crate) fn target_kind(&self) -> Option<TargetKind> {
        let named = self.get("filename").is_some();
        let within = self.get("directory").filter(|_| !named);
        within.map(|_| TargetKind::Directory)
    }

    /// Workload of the jobs that `summed` names.
    pub(crate) fn work(&self, summed: Summed) -> WorkSummary {
        if summed == Summed::Sections || !self.are_known() {
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

    /// Bytes that all clones use together. Each has files of its own, unless a name or a form for names
    /// without the clone's number makes them share.
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

    /// Number of requests that each process keeps in flight. Whatever `iodepth` says, it is one where the
    /// engine waits for each, as fio's default on Linux does (fio's HOWTO, `iodepth`).
    fn depth(&self) -> Option<u32> {
        const WAITING: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];
        let asked = self.number("iodepth", 1)?;
        let waits = WAITING.contains(&self.get("ioengine").unwrap_or("psync"));
        match self.get("io_submit_mode").unwrap_or("inline") {
            "inline" if waits => Some(1),
            "inline" => Some(asked),
            // Other threads may issue what one waits for.
            _ if asked > 1 => None,
            _ => Some(1),
        }
    }

    /// Requests a second over all of `clones`: `rate_iops` is for each of them, and in a mixed job
    /// for reads and for writes (seen with fio 3.33).
    fn rate(&self, clones: u32, reads: Option<f64>) -> Option<f64> {
        /// Options that slow a job down and are no number of requests a second.
        const SLOWING: [&str; 4] = ["rate", "thinktime", "latency_target", "flow"];
        let Some(given) = self.get("rate_iops") else {
            let slowed = SLOWING.iter().any(|name| self.get(name).is_some());
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
            // One of the directions alone is limited.
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
