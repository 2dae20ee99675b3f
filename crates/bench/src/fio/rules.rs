//! Options of a job other than positions and sizes, converted to those of a workload.

use fiojob::{
    FioError, IoEngine, IoPattern, Job, NumaMode, PerDirection, PrioritySplit, Rules,
    SteadyStateFigure, SteadyStateRule, VerifyMethod, ZoneMode,
};
use linux::Root;
use record::{
    Bytes, Contents, DepthSearch, FlowShare, JobOptions, MaxLatency, MemoryPolicy, Nanos, NonFatal,
    Priority, PriorityShare, RateFloor, SteadyFigure, SteadyState, ThreadSettings, Verify,
};

use super::blocks::Blocks;

/// Adds the rules of a job to the details of one of its clones, whose files have `span` bytes together.
pub(super) fn put(job: &Job, clone: usize, blocks: &Blocks, span: Bytes, details: &mut JobOptions) {
    let rules = &job.rules;
    // Trims carry no data.
    details.contents = contents(rules, blocks, span).filter(|_| !job.pattern.trims);
    details.verify = verify(rules);
    details.thread_settings = threads(rules, clone);
    details.priority_shares = priorities(rules);
    details.delay = Nanos(delay_us(job, clone) * 1000);
    details.flow = (rules.flow > 0).then(|| FlowShare {
        id: rules.flow_id,
        weight: rules.flow,
        pause: Nanos(rules.flow_sleep_us * 1000),
    });
    details.depth_search = (rules.latency_us > 0).then(|| DepthSearch {
        latency: Nanos(rules.latency_us * 1000),
        window: Nanos(rules.latency_window_us * 1000),
        share: rules.latency_percentile / 100.0,
        continues: rules.latency_run,
    });
    details.steady_state = rules.steady.map(|steady| steady_state(rules, steady));
    details.floor = floor(rules, job.pattern);
    details.max_latency = max_latency(rules);
    details.non_fatal = non_fatal(rules);
}

/// Delay after which a clone begins, in microseconds. fio draws one from a range: here the clones are spread evenly
/// over the range, and clones that are reported as one, which must begin together, begin in its middle.
fn delay_us(job: &Job, clone: usize) -> u64 {
    let (number, of) = match job.group_reporting {
        true => (0, 1),
        false => (clone as u64, u64::from(job.numjobs)),
    };
    job.rules.start_delay_us + job.rules.start_delay_spread_us / (2 * of) * (2 * number + 1)
}

fn non_fatal(rules: &Rules) -> Option<NonFatal> {
    let PerDirection { read, write } = rules.non_fatal.numbers();
    (!read.is_empty() || !write.is_empty()).then_some(NonFatal {
        reads: read,
        writes: write,
    })
}

/// Data that compresses or repeats; `None` if neither is requested. Data that is verified is made for the
/// verification.
fn contents(rules: &Rules, blocks: &Blocks, span: Bytes) -> Option<Contents> {
    let is_shaped = rules.zeros || !rules.buffer_pattern.is_empty();
    let percent = match (rules.compress_percent, is_shaped) {
        (Some(percent), _) => percent,
        (None, true) => 100,
        (None, false) => 0,
    };
    if percent == 0 && rules.dedupe_percent == 0 {
        return None;
    }
    let writes = span.0 / blocks.mean.max(1);
    Some(Contents {
        compressible: percent as f64 / 100.0,
        chunk: Bytes(rules.compress_chunk),
        repeated: rules.dedupe_percent as f64 / 100.0,
        working_set: match rules.dedupe_set {
            true => (writes * rules.dedupe_set_percent / 100).max(1),
            false => 0,
        },
        shared: rules.dedupe_set && rules.dedupe_global,
        pattern: match rules.zeros {
            true => Vec::new(),
            false => rules.buffer_pattern.clone(),
        },
    })
}

fn verify(rules: &Rules) -> Option<Verify> {
    let sum = rules.verify?;
    Some(Verify {
        interval: (rules.verify_interval > 0).then_some(Bytes(rules.verify_interval)),
        header_at: rules.verify_offset as u32,
        pattern: rules.verify_pattern.clone(),
        pattern_only: sum == VerifyMethod::Pattern,
        reads_back: rules.reads_back,
        backlog: rules.verify_backlog,
        in_sequence: rules.verify_sequence,
        fatal: rules.verify_fatal,
    })
}

fn threads(rules: &Rules, clone: usize) -> Option<ThreadSettings> {
    let settings = ThreadSettings {
        cpus: match rules.cpus_split && !rules.cpus.is_empty() {
            true => vec![rules.cpus[clone % rules.cpus.len()]],
            false => rules.cpus.clone(),
        },
        nice: rules.nice,
        priority: priority(rules),
        memory: rules.memory.as_ref().map(|memory| MemoryPolicy {
            mode: match memory.mode {
                NumaMode::Default => record::MemoryMode::Default,
                NumaMode::Prefer => record::MemoryMode::Prefer,
                NumaMode::Bind => record::MemoryMode::Bind,
                NumaMode::Interleave => record::MemoryMode::Interleave,
                NumaMode::Local => record::MemoryMode::Local,
            },
            nodes: memory.nodes.clone(),
        }),
    };
    (settings != ThreadSettings::default()).then_some(settings)
}

/// Priority of all I/O of a job. As in fio, a level without a class is of the class best effort.
fn priority(rules: &Rules) -> Option<Priority> {
    /// IOPRIO_CLASS_BE.
    const BEST_EFFORT: u8 = 2;
    if rules.priority_class.or(rules.priority_level).is_none() && rules.priority_hint == 0 {
        return None;
    }
    Some(Priority {
        class: rules.priority_class.unwrap_or(BEST_EFFORT),
        level: rules.priority_level.unwrap_or(0),
        hint: rules.priority_hint,
    })
}

fn priorities(rules: &Rules) -> Vec<PriorityShare> {
    let default = PerDirection {
        read: own(rules.request_priority.read),
        write: own(rules.request_priority.write),
    };
    let shares = |splits: &[PrioritySplit], writes: bool, default: Priority| {
        let share = |split: &PrioritySplit| PriorityShare {
            writes,
            size: split.bytes.map(Bytes),
            share: split.percent as f64 / 100.0,
            priority: split.priority.map_or(default, own),
        };
        splits.iter().map(share).collect::<Vec<_>>()
    };
    let mut all = shares(&rules.priorities.read, false, default.read);
    all.extend(shares(&rules.priorities.write, true, default.write));
    all
}

fn own(priority: fiojob::Priority) -> Priority {
    Priority {
        class: priority.class,
        level: priority.level,
        hint: priority.hint,
    }
}

fn steady_state(rules: &Rules, steady: SteadyStateRule) -> SteadyState {
    SteadyState {
        of: match steady.of {
            SteadyStateFigure::Iops => SteadyFigure::Iops,
            SteadyStateFigure::Bandwidth => SteadyFigure::Bandwidth,
            SteadyStateFigure::Latency => SteadyFigure::Latency,
        },
        slope: steady.slope,
        limit: match steady.percent {
            true => steady.limit / 100.0,
            false => steady.limit,
        },
        relative: steady.percent,
        duration: Nanos(rules.steady_us * 1000),
        ramp: Nanos(rules.steady_ramp_us * 1000),
        interval: Nanos(rules.steady_interval_us * 1000),
    }
}

/// The minimum rate of a job. A single number applies to both directions, even if the job has only one.
fn floor(rules: &Rules, pattern: IoPattern) -> Option<RateFloor> {
    let of_reads = |least: u64| if pattern.reads { least } else { 0 };
    let of_writes = |least: u64| if pattern.writes { least } else { 0 };
    let floor = RateFloor {
        read_bytes: of_reads(rules.rate_min.read),
        write_bytes: of_writes(rules.rate_min.write),
        read_ops: of_reads(rules.rate_iops_min.read),
        write_ops: of_writes(rules.rate_iops_min.write),
        cycle: Nanos(rules.rate_cycle_ms * 1_000_000),
    };
    let none = RateFloor {
        cycle: floor.cycle,
        ..RateFloor::default()
    };
    (floor != none).then_some(floor)
}

fn max_latency(rules: &Rules) -> Option<MaxLatency> {
    let PerDirection { read, write } = rules.max_latency_us;
    (read > 0 || write > 0).then_some(MaxLatency {
        reads: Nanos(read.saturating_mul(1000)),
        writes: Nanos(write.saturating_mul(1000)),
    })
}

/// Notes on options that are replaced by similar ones, as sentences.
pub(super) fn notes(job: &Job) -> Vec<String> {
    let name = &job.name;
    let mut notes: Vec<String> = job
        .notes
        .iter()
        .map(|(option, note)| format!("{name}: {option} has no effect here: {note}."))
        .collect();
    if !job.overridden.is_empty() {
        let options: Vec<&str> = job.overridden.iter().copied().collect();
        notes.push(format!(
            "{name}: the job file has values of its own for {}, which go before those of the command line, as in fio.",
            options.join(", ")
        ));
    }
    if let Some(VerifyMethod::Header(Some(sum))) = job.rules.verify {
        notes.push(format!(
            "{name}: verify={sum} is done by crc32c, which finds damage as well; the processor does other work."
        ));
    }
    if job.engine == IoEngine::Queued && job.iodepth > 1 {
        let depth = job.iodepth;
        if job.pattern.trims {
            notes.push(format!(
                "{name}: trims are issued one after another; iodepth={depth} has no effect on them."
            ));
        } else if job.pattern.trims_first {
            notes.push(format!(
                "{name}: iodepth={depth} keeps so many blocks in work, each of which is trimmed and then written."
            ));
        }
    }
    match (job.zones.mode, job.pattern.reads) {
        (ZoneMode::Zoned, true) => notes.push(format!(
            "{name}: zonemode=zbd has no effect on what is read but that it ends with a whole zone, as the target has no zones."
        )),
        (ZoneMode::Zoned, false) => {
            let how = match job.pattern.random {
                true => "each write behind the last one in its zone",
                false => "one after another",
            };
            notes.push(format!(
                "{name}: the target has no zones; as by fio it is written as if it had some, {how}."
            ));
        }
        (ZoneMode::None | ZoneMode::Strided, _) => {}
    }
    if job.rules.ages {
        notes.push(format!(
            "{name}: sprandom is done by writing each block up to {} times, each time in another order. An SSD comes to \
             its steady state by that too, in more time than by fio's, which writes its flash once.",
            job.passes()
        ));
    }
    if job.rules.start_delay_spread_us > 0 {
        let when = match job.group_reporting || job.numjobs == 1 {
            true => "begins in the middle of it",
            false => "its clones are spread evenly over it",
        };
        notes.push(format!(
            "{name}: of startdelay, a range, no time is drawn: {when}."
        ));
    }
    if let Some((low, high)) = job.filesize
        && low < high
    {
        notes.push(format!(
            "{name}: all files have the mean size of filesize, {}, where fio draws one for each.",
            Bytes(low + (high - low) / 2)
        ));
    }
    if !job.rules.counted {
        notes.push(format!(
            "{name}: stats=0 leaves it out of every sum; it is a phase of its own."
        ));
    }
    notes
}

/// The job with the processors of the nodes that it names.
///
/// # Errors
/// When the host does not have the processors or nodes.
pub(super) fn on_host(job: &Job, root: &Root) -> Result<Job, FioError> {
    let mut job = job.clone();
    let mut cpus = Vec::new();
    for node in job.rules.cpu_nodes.clone() {
        let of_node = listed(root, &format!("node/node{node}/cpulist"));
        cpus.extend(of_node.ok_or_else(|| no_node(&job, "numa_cpu_nodes", node))?);
    }
    if !cpus.is_empty() {
        job.rules.cpus = cpus;
    }
    let nodes = job.rules.memory.iter().flat_map(|memory| &memory.nodes);
    for node in nodes {
        if listed(root, &format!("node/node{node}/cpulist")).is_none() {
            return Err(no_node(&job, "numa_mem_policy", *node));
        }
    }
    if let Some(online) = listed(root, "cpu/online")
        && let Some(missing) = job.rules.cpus.iter().find(|cpu| !online.contains(cpu))
    {
        let option = match job.places.contains_key("cpus_allowed") {
            true => "cpus_allowed",
            false => "cpumask",
        };
        return Err(job.error(
            option,
            format!("this host has no processor {missing} online"),
        ));
    }
    Ok(job)
}

fn no_node(job: &Job, option: &str, node: u32) -> FioError {
    job.error(option, format!("this host has no NUMA node {node}"))
}

/// The numbers in a list of the kernel, such as `0-3,8`.
fn listed(root: &Root, name: &str) -> Option<Vec<u32>> {
    let path = root.sys.join("devices/system").join(name);
    let text = std::fs::read_to_string(path).ok()?;
    match text.trim() {
        "" => Some(Vec::new()),
        list => fiojob::numbers(list).ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fio::tests::jobs;

    fn job(lines: &str) -> Job {
        let text = format!("[j]\nsize=1m\nioengine=libaio\n{lines}\n");
        jobs(&text).remove(0)
    }

    fn details(lines: &str, clone: usize) -> JobOptions {
        let job = job(lines);
        let mut details = JobOptions::default();
        put(&job, clone, &Blocks::of(&job), Bytes::mib(1), &mut details);
        details
    }

    #[test]
    fn each_rule_comes_into_the_workload() {
        let asked = details(
            "rw=randrw\nstartdelay=2\nflow=3\nflow_id=1\nrate_min=1m,2m\nprio=5\ncpus_allowed=0-1\n\
             cpus_allowed_policy=split\nsteadystate=iops_slope:2%\nss_dur=5\nnice=-3\n\
             latency_target=500\nlatency_window=2s\nlatency_percentile=99\n\
             max_latency=,2ms",
            3,
        );
        let latest = MaxLatency {
            reads: Nanos(0),
            writes: Nanos(2_000_000),
        };
        assert_eq!(asked.max_latency, Some(latest));
        assert_eq!(asked.delay, Nanos::from_secs(2));
        assert_eq!(asked.flow.map(|flow| (flow.id, flow.weight)), Some((1, 3)));
        let floor = asked.floor.unwrap();
        assert_eq!((floor.read_bytes, floor.write_bytes), (1 << 20, 2 << 20));
        let floor = details("rw=write\nrate_min=1m,2m", 0).floor.unwrap();
        assert_eq!((floor.read_bytes, floor.write_bytes), (0, 2 << 20));
        let threads = asked.thread_settings.unwrap();
        assert_eq!((threads.cpus, threads.nice), (vec![1], Some(-3)));
        let priority = threads.priority.unwrap();
        assert_eq!((priority.class, priority.level), (2, 5));
        let steady = asked.steady_state.unwrap();
        assert!(steady.slope && steady.relative && (steady.limit - 0.02).abs() < 1e-9);
        let search = asked.depth_search.unwrap();
        assert_eq!((search.latency, search.share), (Nanos(500_000), 0.99));
        assert_eq!(details("bs=4k", 0), JobOptions::default());
    }

    #[test]
    fn notes_are_true_of_the_job_that_has_them() {
        let notes = |lines: &str| notes(&job(lines));
        assert_eq!(notes("max_open_zones=4\nspr_op=0.1\nrw=randwrite"), [""; 0]);
        let [random] = &notes("zonemode=zbd\nzonesize=64k\nrw=randwrite")[..] else {
            panic!()
        };
        assert!(random.ends_with("each write behind the last one in its zone."));
        let [aged] = &notes("sprandom=1\nspr_op=0.1\nrw=randwrite")[..] else {
            panic!()
        };
        assert!(aged.starts_with("j: sprandom is done by writing each block up to 2 times"));
    }

    #[test]
    fn of_a_range_of_delays_clones_have_even_parts_and_those_of_a_sum_its_middle() {
        let delay = |lines: &str, clone| {
            details(&format!("startdelay=1-5\nnumjobs=2\n{lines}"), clone).delay
        };
        let seconds = [0, 1].map(|clone| delay("", clone).0 / 1_000_000_000);
        assert_eq!(seconds, [2, 4]);
        assert_eq!(delay("group_reporting", 1), Nanos::from_secs(3));
        let noted = notes(&job("startdelay=1-5\nfilesize=4k-12k"));
        assert!(
            noted[0].contains("startdelay") && noted[1].contains("8 KiB"),
            "{noted:?}"
        );
    }

    #[test]
    fn data_is_shaped_as_the_options_say_together() {
        let of = |lines: &str| details(lines, 0).contents;
        let half = of("buffer_compress_percentage=50\nbuffer_compress_chunk=4k").unwrap();
        assert_eq!((half.compressible, half.chunk), (0.5, Bytes(4096)));
        assert_eq!(of("zero_buffers").unwrap().compressible, 1.0);
        assert_eq!(of("buffer_pattern=0xab").unwrap().pattern, [0xab]);
        let set =
            of("dedupe_percentage=30\ndedupe_mode=working_set\ndedupe_working_set_percentage=50");
        assert_eq!(set.unwrap().working_set, 128);
        assert_eq!(of("dedupe_percentage=30").unwrap().working_set, 0);
        assert_eq!(of("refill_buffers=1\nzero_buffers=0"), None);
    }

    #[test]
    fn processors_and_nodes_are_those_of_the_host() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        let system = root.sys.join("devices/system");
        fs::create_dir_all(system.join("node/node1")).unwrap();
        fs::create_dir_all(system.join("cpu")).unwrap();
        fs::write(system.join("node/node1/cpulist"), "2-3,7\n").unwrap();
        fs::write(system.join("cpu/online"), "0-7\n").unwrap();
        let on = |lines: &str| on_host(&job(lines), &root);
        assert_eq!(on("numa_cpu_nodes=1").unwrap().rules.cpus, [2, 3, 7]);
        for (lines, expected) in [
            (
                "numa_cpu_nodes=0-1",
                "line 4: numa_cpu_nodes: this host has no NUMA node 0",
            ),
            (
                "numa_mem_policy=bind:1,2",
                "numa_mem_policy: this host has no NUMA node 2",
            ),
            (
                "cpus_allowed=6-9",
                "cpus_allowed: this host has no processor 8 online",
            ),
        ] {
            let error = on(lines).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
