//! The options, and the treatment of each. `docs/fio.md` shows these tables; a test compares them with it.

use crate::option_row::{OptionRow, done, harmless, noted, stops};

const OUTPUT: &str = "it is about fio's own output";
const MEMORY: &str = "buffers are aligned, in huge pages if available, and registered";
const OLD: &str = "fio itself ignores it";
const OWN_FILES: &str = "files in a directory are disksmith's own: laid out fully, and removed";
const DATA: &str = "each write has different data, unless repetition is requested";
const VERIFIERS: &str = "blocks are read back by threads of disksmith's own";
const ALIGNED: &str = "reads are aligned to the smallest read, writes to the smallest write";
const BATCH: &str = "requests are submitted as soon as there is room and taken as they come back, so that iodepth of them \
     are in flight";
const POLLED: &str = "the disk interrupts when a request is done, and nothing polls for it";
const CONTENT: &str = "each 4 KiB of a write differ from all others";
const VERIFY: &str = "all written blocks are read back and compared with the record of this run; a job that reads \
     verifies what an earlier run has written";
const ZONES: &str = "zones are not reset before they are full";
const WRITE_POINTERS: &str = "no target has zones with a write pointer of their own";
const REGIONS: &str =
    "sprandom is replaced by several passes over the whole target, without regions";
const TRIMS: &str = "a job either trims, or reads and writes";
const REPLAY: &str = "a job does not replay recorded I/O; disksmith bench --replay does";
const FOREIGN: &str = "a job file starts no program and changes no setting of the machine";
const HARDWARE: &str =
    "requests are reads, writes and trims of a block device, and no commands of NVMe";
const ZERO: &[&str] = &["0"];
const NONE: &[&str] = &["none"];

/// Options of job files that are known by name.
pub const OPTIONS: &[OptionRow] = &[
    done("name", &[]),
    done("description", &[]),
    done("rw", &["readwrite"]),
    done("rw_sequencer", &[]),
    done("percentage_random", &[]),
    done("rwmixread", &[]),
    done("rwmixwrite", &[]),
    done("bs", &["blocksize"]),
    done("bssplit", &[]),
    done("bsrange", &["blocksize_range"]),
    done("bs_is_seq_rand", &[]),
    done("blockalign", &["ba"]),
    done("size", &[]),
    done("filesize", &[]),
    done("io_size", &["io_limit"]),
    done("offset", &["fileoffset"]),
    done("offset_increment", &[]),
    done("number_ios", &[]),
    done("filename", &[]),
    done("directory", &[]),
    done("nrfiles", &["nr_files"]),
    done("numjobs", &[]),
    done("iodepth", &[]),
    done("ioengine", &[]),
    done("direct", &[]),
    done("buffered", &[]),
    done("invalidate", &[]),
    done("fadvise_hint", &["fadvise"]),
    done("fsync", &[]),
    done("fdatasync", &[]),
    done("end_fsync", &[]),
    done("fsync_on_close", &[]),
    done("runtime", &["timeout"]),
    done("time_based", &[]).switch(),
    done("ramp_time", &[]),
    done("loops", &[]),
    done("rate", &[]),
    done("rate_iops", &[]),
    done("rate_process", &[]),
    done("random_distribution", &[]),
    done("norandommap", &[]).switch(),
    done("thinktime", &[]),
    done("thinktime_blocks", &[]),
    done("thinktime_blocks_type", &[]),
    done("thinktime_iotime", &[]),
    done("rate_ignore_thinktime", &[]),
    done("zonemode", &[]),
    done("zonesize", &[]),
    done("zonerange", &[]),
    done("zoneskip", &[]),
    done("zonecapacity", &[]),
    done("read_beyond_wp", &[]),
    done("max_open_zones", &[]),
    done("job_max_open_zones", &[]),
    done("randseed", &[]),
    done("randrepeat", &[]),
    done("allrandrepeat", &[]),
    done("stonewall", &["wait_for_previous"]).switch(),
    done("wait_for", &[]),
    done("new_group", &[]).switch(),
    done("group_reporting", &[]).switch(),
    done("kb_base", &[]),
    done("sync", &[]),
    done("startdelay", &[]),
    done("exitall", &[]).switch(),
    done("exit_what", &[]),
    done("rate_min", &["ratemin"]),
    done("rate_iops_min", &[]),
    done("rate_cycle", &["ratecycle"]),
    done("flow", &[]),
    done("flow_id", &[]),
    done("flow_sleep", &[]),
    done("steadystate", &["ss"]),
    done("steadystate_duration", &["ss_dur"]),
    done("steadystate_ramp_time", &["ss_ramp"]),
    done("steadystate_check_interval", &["ss_interval"]),
    done("latency_target", &[]),
    done("latency_window", &[]),
    done("latency_percentile", &[]),
    done("latency_run", &[]),
    done("max_latency", &[]),
    done("cpus_allowed", &[]),
    done("cpumask", &[]),
    done("cpus_allowed_policy", &[]),
    done("numa_cpu_nodes", &[]),
    done("numa_mem_policy", &[]),
    done("nice", &[]),
    done("prio", &[]),
    done("prioclass", &[]),
    done("priohint", &[]),
    done("cmdprio_percentage", &[]),
    done("cmdprio_bssplit", &[]),
    done("cmdprio_class", &[]),
    done("cmdprio", &[]),
    done("cmdprio_hint", &[]),
    done("buffer_compress_percentage", &[]),
    done("buffer_compress_chunk", &[]),
    done("buffer_pattern", &[]),
    done("zero_buffers", &[]).switch(),
    done("dedupe_percentage", &[]),
    done("dedupe_mode", &[]),
    done("dedupe_working_set_percentage", &[]),
    done("dedupe_global", &[]),
    done("fill_device", &["fill_fs"]),
    done("filename_format", &[]),
    done("stats", &[]),
    done("verify", &[]),
    done("verify_interval", &["header_interval"]),
    done("verify_offset", &[]),
    done("verify_pattern", &[]),
    done("do_verify", &[]),
    done("verify_fatal", &[]),
    done("verify_backlog", &[]),
    done("verify_write_sequence", &[]),
    done("continue_on_error", &[]),
    done("ignore_error", &[]),
    done("sprandom", &[]),
    harmless(
        "thread",
        "all workers are threads; fio's processes differ from them in memory only",
    )
    .switch(),
    harmless(
        "threads",
        "all workers are threads; fio's processes differ from them in memory only",
    ),
    harmless(
        "softrandommap",
        "it is for fio's map of blocks, which is not needed here",
    ),
    harmless(
        "random_generator",
        "the generator does not change the probabilities of positions",
    ),
    harmless("overwrite", OWN_FILES),
    harmless("fallocate", OWN_FILES),
    harmless("create_serialize", OWN_FILES),
    harmless("create_fsync", OWN_FILES),
    harmless("unlink", OWN_FILES),
    harmless(
        "allow_mounted_write",
        "--destroy decides what is written, with stricter rules",
    ),
    harmless(
        "exitall_on_error",
        "the first fatal error of a job always ends the run",
    )
    .switch(),
    harmless(
        "ignore_zone_limits",
        "they are limits of zoned block devices, which are not supported as targets",
    ),
    harmless("spr_op", REGIONS),
    harmless("spr_num_regions", REGIONS),
    harmless("spr_cs", REGIONS),
    harmless("refill_buffers", DATA).switch(),
    harmless("mem", MEMORY),
    harmless("iomem", MEMORY),
    harmless("iomem_align", MEMORY),
    harmless("mem_align", MEMORY),
    harmless("hugepage-size", MEMORY),
    harmless("fixedbufs", MEMORY).switch(),
    harmless("registerfiles", "files are always registered with the ring").switch(),
    harmless("nonvectored", "each request always has one buffer"),
    harmless(
        "userspace_reap",
        "answers of io_uring are always taken without a call",
    )
    .switch(),
    harmless(
        "clocksource",
        "the clock is the best that the machine has, and the record names it",
    ),
    harmless("gtod_cpu", "the clock is read without a call"),
    harmless("verify_async", VERIFIERS),
    harmless("verify_async_cpus", VERIFIERS),
    harmless("verify_backlog_batch", VERIFIERS),
    harmless("experimental_verify", VERIFIERS),
    harmless(
        "verify_dump",
        "the finding names the first block that fails",
    ),
    harmless("verify_state_save", "it is for a later run"),
    harmless("verify_header_seed", "headers have no seed"),
    harmless(
        "allow_file_create",
        "files in a directory are created, and a named file or device exists",
    ),
    harmless("filetype", "the kernel reports the type of the target"),
    harmless("comm", "threads have names of disksmith's own"),
    harmless(
        "thp",
        "ioengine=mmap is run by pread and pwrite, and nothing is mapped",
    ),
    harmless("libaio_vectored", "each request always has one buffer"),
    harmless("flow_watermark", OLD),
    harmless("verifysort", OLD),
    harmless("verifysort_nr", OLD),
    harmless(
        "gtod_reduce",
        "every request is always timed, at negligible cost",
    ),
    harmless(
        "unique_filename",
        "it is for the names of files of fio's clients on other hosts",
    ),
    harmless(
        "unified_rw_reporting",
        "reads and writes are always distinguished, and their sum is theirs",
    ),
    harmless("write_bw_log", OUTPUT),
    harmless("write_lat_log", OUTPUT),
    harmless("write_iops_log", OUTPUT),
    harmless("write_hist_log", OUTPUT),
    harmless("per_job_logs", OUTPUT),
    harmless("log_avg_msec", OUTPUT),
    harmless("log_hist_msec", OUTPUT),
    harmless("log_hist_coarseness", OUTPUT),
    harmless("log_entries", OUTPUT),
    harmless("log_max_value", OUTPUT),
    harmless("log_window_value", OUTPUT),
    harmless("log_issue_time", OUTPUT),
    harmless("job_start_clock_id", OUTPUT),
    harmless("log_offset", OUTPUT),
    harmless("log_prio", OUTPUT),
    harmless("log_compression", OUTPUT),
    harmless("log_compression_cpus", OUTPUT),
    harmless("log_store_compressed", OUTPUT),
    harmless("log_unix_epoch", OUTPUT),
    harmless("log_alternate_epoch", OUTPUT),
    harmless("log_alternate_epoch_clock_id", OUTPUT),
    harmless("bwavgtime", OUTPUT),
    harmless("iopsavgtime", OUTPUT),
    harmless("clat_percentiles", OUTPUT),
    harmless("lat_percentiles", OUTPUT),
    harmless("slat_percentiles", OUTPUT),
    harmless("percentile_list", OUTPUT),
    harmless("significant_figures", OUTPUT),
    harmless("disable_lat", OUTPUT),
    harmless("disable_clat", OUTPUT),
    harmless("disable_slat", OUTPUT),
    harmless("disable_bw_measurement", OUTPUT),
    harmless("disable_bw", OUTPUT),
    harmless("disk_util", OUTPUT),
    harmless("unit_base", OUTPUT),
    harmless("error_dump", OUTPUT),
    harmless("block_error_percentiles", OUTPUT),
    noted("iodepth_batch", &["1"], BATCH),
    noted("iodepth_batch_submit", &["1"], BATCH),
    noted("iodepth_batch_complete", &["1"], BATCH),
    noted("iodepth_batch_complete_min", &["1"], BATCH),
    noted("iodepth_batch_complete_max", &["1"], BATCH),
    noted("iodepth_low", &[], BATCH),
    noted("hipri", ZERO, POLLED).switch(),
    noted("hipri_percentage", ZERO, POLLED),
    noted("sqthread_poll", ZERO, POLLED).switch(),
    noted("sqthread_poll_cpu", &[], POLLED),
    noted(
        "force_async",
        ZERO,
        "the kernel decides which requests its workers issue",
    ),
    noted(
        "nowait",
        ZERO,
        "a request waits where the kernel has no room for it",
    ),
    noted(
        "serialize_overlap",
        ZERO,
        "requests that overlap may be in flight at the same time",
    ),
    noted(
        "atomic",
        ZERO,
        "writes are not marked as atomic (RWF_ATOMIC), and the device may tear them",
    ),
    noted(
        "write_hint",
        NONE,
        "the device is not told how long the data will live",
    ),
    noted(
        "write_iolog",
        &[],
        "no list of requests is written; disksmith trace record writes one",
    ),
    noted("openfiles", ZERO, "all files are open all the time"),
    noted(
        "file_service_type",
        &["roundrobin"],
        "files take turns, a request each",
    ),
    noted(
        "create_on_open",
        ZERO,
        "files are laid out before they are measured",
    ),
    noted(
        "thinktime_spin",
        ZERO,
        "the thread sleeps through all of its pause",
    ),
    noted("scramble_buffers", &["1"], CONTENT),
    noted("lockmem", ZERO, "the page cache uses all free memory"),
    stops("bs_unaligned", ZERO, ALIGNED).switch(),
    stops("offset_align", ZERO, ALIGNED),
    stops("blocksize_unaligned", ZERO, ALIGNED).switch(),
    stops("file_append", ZERO, "files do not grow"),
    stops(
        "opendir",
        &[],
        "name the directory with filename or as the target",
    ),
    stops("lockfile", NONE, "files are not locked"),
    stops("create_only", ZERO, "files are laid out to be measured"),
    stops("unlink_each_loop", ZERO, "files stay until the end"),
    stops("pre_read", ZERO, "it would measure the page cache"),
    stops("end_syncfs", ZERO, "a file is synced, and no file system"),
    stops("ramp_size", ZERO, "a ramp is given as a time, ramp_time"),
    stops("thinkcycles", ZERO, "a job pauses, and computes nothing"),
    stops("num_range", &["0", "1"], HARDWARE),
    stops("fdp", ZERO, HARDWARE),
    stops("fdp_pli", &[], HARDWARE),
    stops("plids", &[], HARDWARE),
    stops("dataplacement", NONE, HARDWARE),
    stops("md_per_io_size", ZERO, HARDWARE),
    stops("pi_act", ZERO, HARDWARE),
    stops("pi_chk", &[], HARDWARE),
    stops("sync_file_range", &[], "it is not supported; fdatasync is"),
    stops("write_barrier", ZERO, "it is not supported; fdatasync is"),
    stops(
        "io_submit_mode",
        &["inline", "offload"],
        "requests of a rate are due whatever is in flight",
    ),
    stops("verify_only", ZERO, VERIFY).switch(),
    stops("verify_state_load", ZERO, VERIFY),
    stops("trim_percentage", ZERO, TRIMS),
    stops("trim_verify_zero", ZERO, TRIMS),
    stops("trim_backlog", ZERO, TRIMS),
    stops("trim_backlog_batch", ZERO, TRIMS),
    stops(
        "verify_pattern_interval",
        ZERO,
        "patterns have no positions in them",
    ),
    stops("verify_policy", &["completed"], VERIFY),
    stops("read_iolog", &[], REPLAY),
    stops("replay_no_stall", ZERO, REPLAY),
    stops("replay_redirect", &[], REPLAY),
    stops("read_iolog_chunked", ZERO, REPLAY),
    stops("replay_align", ZERO, REPLAY),
    stops("replay_scale", &["1"], REPLAY),
    stops("replay_skip", &[], REPLAY),
    stops("replay_time_scale", &["100"], REPLAY),
    stops("merge_blktrace_file", &[], REPLAY),
    stops("merge_blktrace_scalars", &[], REPLAY),
    stops("merge_blktrace_iters", &[], REPLAY),
    stops("zone_reset_threshold", ZERO, ZONES),
    stops("zone_reset_frequency", ZERO, ZONES),
    stops("recover_zbd_write_error", ZERO, WRITE_POINTERS),
    stops("write_zone_remainders", ZERO, WRITE_POINTERS),
    stops(
        "random_sequence_stride",
        ZERO,
        "places are not given as a list",
    ),
    stops(
        "uncached",
        ZERO,
        "the page cache is used as usual, or bypassed with direct=1",
    ),
    stops("uid", &[], FOREIGN),
    stops("gid", &[], FOREIGN),
    stops("cgroup", &[], FOREIGN),
    stops("cgroup_weight", &[], FOREIGN),
    stops("cgroup_nodelete", ZERO, FOREIGN),
    stops("exec_prerun", &[], FOREIGN),
    stops("exec_postrun", &[], FOREIGN),
    stops("ioscheduler", &[], FOREIGN),
    stops("profile", &[], FOREIGN),
];

/// The option with this name, if it is known.
pub(crate) fn find(name: &str) -> Option<&'static OptionRow> {
    OPTIONS
        .iter()
        .find(|row| row.name == name || row.aliases.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_options::COMMAND_OPTIONS;
    use crate::option_row::OptionSupport;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_stands_twice() {
        let rows = OPTIONS.iter().chain(COMMAND_OPTIONS);
        let names = rows.flat_map(|row| row.aliases.iter().chain([&row.name]));
        let mut seen = BTreeSet::new();
        for name in names {
            assert!(seen.insert(name), "{name}");
        }
    }

    #[test]
    fn the_page_says_of_every_option_what_happens_to_it() {
        let page = include_str!("../../../docs/fio.md");
        let (done, rest) = page.split_once("## Options that are harmless").unwrap();
        let (harmless, rest) = rest.split_once("## Options with a note").unwrap();
        let (noted, stops) = rest.split_once("## Options that stop").unwrap();
        for row in OPTIONS {
            let part = match row.kind {
                OptionSupport::Done => done,
                OptionSupport::Harmless(_) => harmless,
                OptionSupport::Noted(..) => noted,
                OptionSupport::Stops(..) => stops,
            };
            for name in row.aliases.iter().chain([&row.name]) {
                assert!(part.contains(&format!("`{name}`")), "{name}");
            }
            if let OptionSupport::Harmless(why)
            | OptionSupport::Noted(_, why)
            | OptionSupport::Stops(_, why) = row.kind
            {
                assert!(part.contains(why), "{}: {why}", row.name);
            }
        }
    }
}
