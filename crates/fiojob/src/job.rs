//! A job as fio understands it.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{FioError, JobFileLine};
use crate::pair::{Amount, PerDirection};
use crate::rules::Rules;

/// Value of `rw=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoPattern {
    /// True if positions are random.
    pub random: bool,
    /// True if it reads.
    pub reads: bool,
    /// True if it writes.
    pub writes: bool,
    /// True if its writes are discards, which fio calls trims.
    pub trims: bool,
    /// True if each write follows a trim of its blocks.
    pub trims_first: bool,
}

/// A size of requests, and how often it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeSplit {
    /// The size, in bytes; above 0.
    pub bytes: u64,
    /// Percentage of the requests of its direction.
    pub percent: f64,
}

/// The option that gives the sizes of a direction. As in fio a later variant takes precedence over an earlier one,
/// whatever their order in the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SizeOption {
    /// `bs=`.
    #[default]
    Block,
    /// `bsrange=`.
    Range,
    /// `bssplit=`.
    Split,
}

/// Value of `ioengine=`, by its effect on the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoEngine {
    /// `io_uring` and `libaio`: `iodepth` requests in flight.
    Queued,
    /// `psync`, `sync`, `pvsync` and `pvsync2`: one request after another, whatever `iodepth` is.
    Blocking,
}

/// System call of `fsync=` and `fdatasync=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncCall {
    /// fsync(2).
    Full,
    /// fdatasync(2).
    Data,
}

/// Value of `rate_process=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// Requests at equal intervals.
    Linear,
    /// Requests at exponentially distributed intervals, as from many independent users.
    Poisson,
}

/// Value of `random_distribution=`.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// All blocks with equal probability.
    Uniform,
    /// Zipf's law with this exponent.
    Zipf(f64),
    /// A power law: the share `h` of the blocks gets the share `1 - h` of the draws.
    Pareto(f64),
    /// A normal distribution, with this percentage of the file as deviation.
    Normal(f64),
    /// Parts of the file, in order.
    Zoned(Vec<ZonePart>),
    /// Parts from the start of the file on, each with its length in bytes; there are no requests beyond them.
    ZonedBytes(Vec<ZoneBytes>),
}

/// A part of the file in `random_distribution=zoned`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZonePart {
    /// Percentage of the requests.
    pub access_percent: f64,
    /// Percentage of the file.
    pub size_percent: f64,
}

/// A part of the file in `random_distribution=zoned_abs`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZoneBytes {
    /// Percentage of the requests.
    pub access_percent: f64,
    /// Length of the part.
    pub bytes: u64,
}

/// Value of `zonemode=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZoneMode {
    /// `none`.
    #[default]
    None,
    /// `strided`.
    Strided,
    /// `zbd`: zones of a zoned block device, or a target that is used as one.
    Zoned,
}

/// Zones of a job, in bytes; 0 where not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// `zonemode=`.
    pub mode: ZoneMode,
    /// `zonesize=`: bytes transferred in a zone before the next one; with `zbd` the length of a zone.
    pub size: u64,
    /// `zonerange=`: length of a zone; by default `zonesize`.
    pub range: u64,
    /// `zoneskip=`: distance between two zones.
    pub skip: u64,
    /// `zonecapacity=`: bytes written in each zone; by default `zonesize`.
    pub capacity: u64,
    /// `read_beyond_wp=`: true if unwritten positions are read too.
    pub reads_unwritten: bool,
    /// `max_open_zones=`: maximum number of zones that are partly written.
    pub open: u64,
    /// `job_max_open_zones=`: the same limit for each clone.
    pub open_by_clone: u64,
}

impl Zones {
    /// Bytes that a job writes in each zone.
    pub fn filled(&self) -> u64 {
        match self.capacity {
            0 => self.size,
            capacity => capacity,
        }
    }
}

/// A job section with the global ones before it. Clones by `numjobs` are not separate jobs here.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name of the job: the section's, or the value of `name=`.
    pub name: String,
    /// Start of its section.
    pub place: JobFileLine,
    /// `description=`, a text for users.
    pub description: Option<String>,
    /// `rw=`.
    pub pattern: IoPattern,
    /// `rwmixread=`, in percent; it is used if the pattern both reads and writes.
    pub read_percent: u64,
    /// `bs=`, `bsrange=` and `bssplit=`: at least one for each direction.
    pub sizes: PerDirection<Vec<SizeSplit>>,
    /// `bs_is_seq_rand=`: sizes for reads are used for sequential requests, and those for writes for random requests.
    pub(crate) sizes_by_order: bool,
    /// The option that gave the sizes.
    pub(crate) sizes_by: PerDirection<SizeOption>,
    /// Bytes that `rw=PATTERN:STEP` adds after each request of a sequential job.
    pub step: i64,
    /// `rw=PATTERN:NUMBER` of a random job: number of requests for each random position.
    pub every: u32,
    /// `rw_sequencer=identical`: the requests between random positions repeat the last position, instead of following
    /// it.
    pub repeats_places: bool,
    /// `percentage_random=`: percentage of the requests of a random job with a random position.
    pub random_percent: PerDirection<u64>,
    /// `blockalign=`; `None` for the smallest block.
    pub align: PerDirection<Option<u64>>,
    /// Options of zones.
    pub zones: Zones,
    /// `ioengine=`.
    pub engine: IoEngine,
    /// Difference between the named engine and the one used.
    pub engine_note: Option<&'static str>,
    /// `iodepth=`.
    pub iodepth: u32,
    /// `numjobs=`.
    pub numjobs: u32,
    /// `nrfiles=`.
    pub nrfiles: u32,
    /// `loops=`.
    pub loops: u64,
    /// `size=`: size of the job over all its files.
    pub size: Option<Amount>,
    /// `filesize=`: the smallest and the largest size of a file.
    pub filesize: Option<(u64, u64)>,
    /// `io_size=`: transferred bytes, if not `size`.
    pub io_size: Option<Amount>,
    /// `offset=`.
    pub offset: Amount,
    /// `offset_increment=`: distance between the offsets of two clones, in bytes.
    pub offset_increment: u64,
    /// `number_ios=`.
    pub number_ios: Option<u64>,
    /// `filename=`, split at its colons.
    pub filename: Vec<String>,
    /// `directory=`.
    pub directory: Option<String>,
    /// `filename_format=`: names of the files that the job creates, in which `$jobname`, `$jobnum` and `$filenum` are
    /// replaced.
    pub filename_format: Option<String>,
    /// `direct=` and `buffered=`.
    pub direct: bool,
    /// `invalidate=`: true if the page cache of the file is dropped first.
    pub invalidate: bool,
    /// `fadvise_hint=`: true if the kernel is advised how a file will be read.
    pub advise: bool,
    /// `fsync=`: number of writes before each fsync; 0 for no fsync.
    pub fsync: u32,
    /// `fdatasync=`: number of writes before each fdatasync; 0 for no fdatasync.
    pub fdatasync: u32,
    /// `end_fsync=`: true if the job syncs after its last write.
    pub end_fsync: bool,
    /// `fsync_on_close=`: true if the job syncs a file before closing it.
    pub fsync_on_close: bool,
    /// `runtime=`, in microseconds; 0 for no limit.
    pub runtime_us: u64,
    /// `time_based`.
    pub time_based: bool,
    /// `ramp_time=`, in microseconds.
    pub ramp_us: u64,
    /// `thinktime=`, in microseconds.
    pub think_us: u64,
    /// `thinktime_blocks=`.
    pub think_every: u32,
    /// `thinktime_blocks_type=issue`: requests count when they are issued.
    pub think_counts_issued: bool,
    /// `thinktime_iotime=`, in microseconds; 0 if not given.
    pub think_io_us: u64,
    /// `rate_ignore_thinktime=`: requests that a rate has due during a pause are not made up for.
    pub think_stops_rate: bool,
    /// `wait_for=`.
    pub wait_for: Option<String>,
    /// `rate=`, in bytes a second; 0 for no limit.
    pub rate: PerDirection<u64>,
    /// `rate_iops=`, in requests a second; 0 for no limit.
    pub rate_iops: PerDirection<u64>,
    /// `rate_process=`.
    pub cadence: RateProcess,
    /// `random_distribution=`.
    pub distribution: Distribution,
    /// `norandommap`: a block may be drawn again before all were.
    pub with_replacement: bool,
    /// `randseed=`.
    pub randseed: Option<u64>,
    /// `randrepeat=`: the same positions in every run.
    pub randrepeat: bool,
    /// `allrandrepeat=`: the same for everything that is random, and for positions whatever `randrepeat` is.
    pub allrandrepeat: bool,
    /// `stonewall`: the job begins when all jobs before it have ended.
    pub stonewall: bool,
    /// `new_group`: its figures are not summed with those of the jobs before it.
    pub new_group: bool,
    /// `group_reporting`.
    pub group_reporting: bool,
    /// `kb_base=`: meaning of `k`, 1000 or 1024.
    pub kb_base: u64,
    /// Options that concern neither positions nor sizes.
    pub rules: Rules,
    /// Notes on options that are replaced by the nearest equivalent, by their main names.
    pub notes: BTreeMap<&'static str, &'static str>,
    /// Options of the command line that the job file overrides.
    pub overridden: BTreeSet<&'static str>,
    /// Line of each option, by its main name.
    pub places: BTreeMap<&'static str, JobFileLine>,
    /// Value of each supported option, by its main name, with variables and keywords replaced; a switch without a
    /// value has `1`.
    pub given: BTreeMap<&'static str, String>,
}

impl Default for Job {
    /// fio's defaults.
    fn default() -> Job {
        let page = vec![SizeSplit {
            bytes: 4096,
            percent: 100.0,
        }];
        Job {
            name: String::new(),
            place: JobFileLine::default(),
            description: None,
            pattern: IoPattern {
                random: false,
                reads: true,
                writes: false,
                trims: false,
                trims_first: false,
            },
            read_percent: 50,
            sizes: PerDirection {
                read: page.clone(),
                write: page,
            },
            sizes_by_order: false,
            sizes_by: PerDirection::default(),
            step: 0,
            every: 1,
            repeats_places: false,
            random_percent: PerDirection {
                read: 100,
                write: 100,
            },
            align: PerDirection::default(),
            zones: Zones::default(),
            engine: IoEngine::Blocking,
            engine_note: None,
            iodepth: 1,
            numjobs: 1,
            nrfiles: 1,
            loops: 1,
            size: None,
            filesize: None,
            io_size: None,
            offset: Amount::Bytes(0),
            offset_increment: 0,
            number_ios: None,
            filename: Vec::new(),
            directory: None,
            filename_format: None,
            direct: false,
            invalidate: true,
            advise: true,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            fsync_on_close: false,
            runtime_us: 0,
            time_based: false,
            ramp_us: 0,
            think_us: 0,
            think_every: 1,
            think_counts_issued: false,
            think_io_us: 0,
            think_stops_rate: false,
            wait_for: None,
            rate: PerDirection::default(),
            rate_iops: PerDirection { read: 0, write: 0 },
            cadence: RateProcess::Linear,
            distribution: Distribution::Uniform,
            with_replacement: false,
            randseed: None,
            randrepeat: true,
            allrandrepeat: false,
            stonewall: false,
            new_group: false,
            group_reporting: false,
            kb_base: 1024,
            rules: Rules::default(),
            notes: BTreeMap::new(),
            overridden: BTreeSet::new(),
            places: BTreeMap::new(),
            given: BTreeMap::new(),
        }
    }
}

impl Job {
    /// True if it uses one file.
    pub(crate) fn has_one_file(&self) -> bool {
        self.nrfiles == 1 && self.filename.len() <= 1
    }

    /// True if every position of a random job is random.
    pub fn draws_all(&self) -> bool {
        let percent = self.random_percent;
        self.every == 1
            && (!self.pattern.reads || percent.read == 100)
            && (!self.pattern.writes || percent.write == 100)
    }

    /// Number of passes over the size. An SSD ages by being overwritten: a second pass finds no empty block.
    pub fn passes(&self) -> u64 {
        match self.rules.ages {
            true => self.loops.max(2),
            false => self.loops,
        }
    }

    /// An error in an option, with the line of that option, or of the job's section if the option is not given.
    pub fn error(&self, option: &str, text: impl Into<String>) -> FioError {
        self.places
            .get(option)
            .unwrap_or(&self.place)
            .error_in(option, text)
    }

    /// The sync call, and the number of writes before each; `None` if the job makes none.
    pub fn sync(&self) -> Option<(SyncCall, u32)> {
        match (self.fsync, self.fdatasync) {
            (0, 0) => None,
            (0, every) => Some((SyncCall::Data, every)),
            (every, _) => Some((SyncCall::Full, every)),
        }
    }

    /// True if it syncs when its last write has completed. Either option requests that, and neither cancels the other.
    pub fn syncs_at_end(&self) -> bool {
        self.end_fsync || self.fsync_on_close
    }

    /// True if every run has the same random positions.
    pub fn repeats(&self) -> bool {
        self.randrepeat || self.allrandrepeat
    }

    /// Checks options that are not compatible with all others.
    pub(crate) fn check(&self) -> Result<(), FioError> {
        if self.fsync > 0 && self.fdatasync > 0 {
            return Err(self.error("fdatasync", "the job has fsync too; keep one of them"));
        }
        if self.time_based && self.runtime_us == 0 {
            return Err(self.error("time_based", "there is no runtime; give one"));
        }
        self.check_rate()?;
        match self.pattern.trims && self.rules.verify.is_some() {
            true => Err(self.error("verify", "what is trimmed has no content; leave it out")),
            false => Ok(()),
        }
    }

    fn check_rate(&self) -> Result<(), FioError> {
        let limits = |pair: PerDirection<u64>| pair.read > 0 || pair.write > 0;
        match limits(self.rate_iops) && limits(self.rate) {
            true => Err(self.error("rate", "the job has rate_iops too; keep one of them")),
            false => Ok(()),
        }
    }
}
