//! What a job was asked for: fio repeats the options that were given, of the job and of `[global]`,
//! as texts. An option that is not there has fio's default (fio's HOWTO).

use record::{Bytes, Pattern, WorkSummary};

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

    /// Whether the options are in the document at all: those before fio 2.16 are not.
    fn are_known(&self) -> bool {
        self.job.is_some() || self.global.is_some()
    }

    /// The value of an option that was given.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let sections = [&self.job, &self.global].into_iter().flatten();
        sections
            .filter_map(|section| section.value(name))
            .find_map(|value| value.as_str())
    }

    fn is_given(&self, name: &str) -> bool {
        let mut sections = [&self.job, &self.global].into_iter().flatten();
        sections.any(|section| section.entries().any(|(key, _)| key == name))
    }

    /// A number that was given, or else fio's default.
    fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> Option<T> {
        match self.get(name) {
            Some(text) => text.trim().parse().ok(),
            None => self.are_known().then_some(default),
        }
    }

    fn size(&self, name: &str) -> Option<Bytes> {
        // With another base a "k" is not 1024 bytes.
        let binary = self.get("kb_base").is_none_or(|base| base == "1024");
        self.get(name)?.parse().ok().filter(|_| binary)
    }

    /// What was measured: the file or the directory.
    pub(crate) fn target(&self) -> Option<&'a str> {
        self.get("filename").or_else(|| self.get("directory"))
    }

    /// What was asked for.
    pub(crate) fn work(&self) -> WorkSummary {
        let rw = self.get("rw").or_else(|| self.get("readwrite"));
        let rw = rw.or_else(|| self.are_known().then_some("read"));
        let rw = rw.map(|word| word.split(':').next().unwrap_or_default());
        let grouped = self.is_given("group_reporting");
        WorkSummary {
            files: None,
            pattern: rw.and_then(pattern),
            read_fraction: rw.and_then(|rw| self.read_fraction(rw)),
            block: self.size("bs").or_else(|| self.size("blocksize")),
            // Without group_reporting each of the processes has an entry of its own.
            threads: match grouped {
                true => self.number("numjobs", 1),
                false => self.are_known().then_some(1),
            },
            depth: self.number("iodepth", 1),
            rate_per_s: self.get("rate_iops").and_then(|rate| rate.parse().ok()),
            span: self.size("size"),
            sync_every: self.sync_every(),
            direct: self.number("direct", 0_u8).map(|direct| direct != 0),
            engine: self.get("ioengine").map(str::to_owned),
        }
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

    fn sync_every(&self) -> Option<u32> {
        let given = self.get("fdatasync").or_else(|| self.get("fsync"));
        match given {
            Some(text) => text.parse().ok(),
            None => self.are_known().then_some(0),
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
