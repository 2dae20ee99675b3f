//! Sets the value of an option in [`Rules`].

use crate::number::{pair, time_us, whole};
use crate::pair::PerDirection;
use crate::rule_values::{mask, memory, numbers, pattern, split, steady};
use crate::rules::{ExitWhat, Priority, PrioritySplit, Rules, SyncIo, VerifyMethod};
use crate::values::{block, micros};

/// Sets an option; `None` if it is not one of these. With `again` it was set before.
pub(crate) fn set(
    rules: &mut Rules,
    option: &str,
    value: &str,
    kb_base: u64,
    again: bool,
) -> Option<Result<(), String>> {
    let number = |most: u64| within(value, kb_base, most);
    let done = match option {
        "sync" => sync_io(value).map(|sync| rules.sync_io = sync),
        "startdelay" => {
            delay(value).map(|range| (rules.start_delay_us, rules.start_delay_spread_us) = range)
        }
        "exit_what" => exit_what(value).map(|what| rules.exit_what = what),
        "rate_min" => rates(value, kb_base, rules.rate_min, again).map(|to| rules.rate_min = to),
        "rate_iops_min" => {
            rates(value, kb_base, rules.rate_iops_min, again).map(|to| rules.rate_iops_min = to)
        }
        "rate_cycle" => number(86_400_000).map(|ms| rules.rate_cycle_ms = ms),
        "flow" => number(1000).map(|weight| rules.flow = weight as u32),
        "flow_id" => number(u64::from(u32::MAX)).map(|id| rules.flow_id = id as u32),
        "flow_sleep" => number(1_000_000_000).map(|us| rules.flow_sleep_us = us),
        "steadystate" => steady(value).map(|it| rules.steady = Some(it)),
        "steadystate_duration" => time_us(value).map(|us| rules.steady_us = us),
        "steadystate_ramp_time" => time_us(value).map(|us| rules.steady_ramp_us = us),
        "steadystate_check_interval" => {
            whole_seconds(value).map(|us| rules.steady_interval_us = us)
        }
        "latency_target" => micros(value).map(|us| rules.latency_us = us),
        "latency_window" => micros(value).map(|us| rules.latency_window_us = us),
        "latency_percentile" => percentile(value).map(|it| rules.latency_percentile = it),
        "max_latency" => pair(value, micros).map(|most| {
            rules.max_latency_us = PerDirection {
                read: most.read.unwrap_or(0),
                write: most.write.unwrap_or(0),
            }
        }),
        "cpus_allowed" => numbers(value).map(|cpus| rules.cpus = cpus),
        "cpumask" => mask(value).map(|cpus| rules.cpus = cpus),
        "cpus_allowed_policy" => policy(value).map(|split| rules.cpus_split = split),
        "numa_cpu_nodes" => numbers(value).map(|nodes| rules.cpu_nodes = nodes),
        "numa_mem_policy" => memory(value).map(|policy| rules.memory = Some(policy)),
        "nice" => nice(value).map(|nice| rules.nice = Some(nice)),
        "prio" => number(7).map(|level| rules.priority_level = Some(level as u8)),
        "prioclass" => number(3).map(|class| rules.priority_class = Some(class as u8)),
        "priohint" => number(1023).map(|hint| rules.priority_hint = hint as u16),
        "cmdprio_percentage" => percentages(value, kb_base).map(|to| rules.priorities = to),
        "cmdprio_bssplit" => splits(value, kb_base).map(|to| rules.priorities = to),
        "cmdprio_class" | "cmdprio" | "cmdprio_hint" => {
            request_priority(rules, option, value, kb_base)
        }
        "buffer_compress_percentage" => number(100).map(|it| rules.compress_percent = Some(it)),
        "buffer_compress_chunk" => block(value, kb_base).map(|it| rules.compress_chunk = it),
        "buffer_pattern" => pattern(value).map(|bytes| rules.buffer_pattern = bytes),
        "dedupe_percentage" => number(100).map(|it| rules.dedupe_percent = it),
        "dedupe_mode" => dedupe_mode(value).map(|set| rules.dedupe_set = set),
        "dedupe_working_set_percentage" => number(100).map(|it| rules.dedupe_set_percent = it),
        "verify" => verify(value).map(|sum| rules.verify = sum),
        "verify_interval" => number(64 << 20).map(|bytes| rules.verify_interval = bytes),
        "verify_offset" => number(64 << 20).map(|bytes| rules.verify_offset = bytes),
        "verify_pattern" => pattern(value).map(|bytes| rules.verify_pattern = bytes),
        "verify_backlog" => number(u64::from(u32::MAX)).map(|it| rules.verify_backlog = it as u32),
        "continue_on_error" => rules.non_fatal.continue_on(value),
        "ignore_error" => rules.non_fatal.ignore(value),
        _ => return None,
    };
    Some(done)
}

/// Options that may be given without a value.
pub(crate) fn switch<'a>(rules: &'a mut Rules, option: &str) -> Option<&'a mut bool> {
    Some(match option {
        "exitall" => &mut rules.exits_all,
        "zero_buffers" => &mut rules.zeros,
        _ => return None,
    })
}

/// Options that are 0 or 1.
pub(crate) fn flag<'a>(rules: &'a mut Rules, option: &str) -> Option<&'a mut bool> {
    Some(match option {
        "latency_run" => &mut rules.latency_run,
        "dedupe_global" => &mut rules.dedupe_global,
        "stats" => &mut rules.counted,
        "fill_device" => &mut rules.fill_device,
        "do_verify" => &mut rules.reads_back,
        "verify_fatal" => &mut rules.verify_fatal,
        "verify_write_sequence" => &mut rules.verify_sequence,
        "sprandom" => &mut rules.ages,
        _ => return None,
    })
}

fn within(value: &str, kb_base: u64, most: u64) -> Result<u64, String> {
    match whole(value, kb_base)? {
        number if number <= most => Ok(number),
        number => Err(format!("{number} is too large; the largest is {most}")),
    }
}

fn sync_io(value: &str) -> Result<SyncIo, String> {
    match value {
        "0" | "none" => Ok(SyncIo::None),
        "1" | "sync" => Ok(SyncIo::Full),
        "dsync" => Ok(SyncIo::Data),
        _ => Err(format!(
            "'{value}' is not supported; none, sync and dsync are"
        )),
    }
}

/// A delay, and the length of its range in microseconds; 0 for a single delay.
fn delay(value: &str) -> Result<(u64, u64), String> {
    let (first, last) = value.split_once('-').unwrap_or((value, value));
    let (first, last) = (time_us(first)?, time_us(last)?);
    match last.checked_sub(first) {
        Some(spread) => Ok((first, spread)),
        None => Err(format!("'{value}' ends before it begins")),
    }
}

/// A time in whole seconds, the interval of the figures.
fn whole_seconds(value: &str) -> Result<u64, String> {
    match time_us(value)? {
        us if us > 0 && us % 1_000_000 == 0 => Ok(us),
        _ => Err("figures are taken each second; give whole seconds".to_owned()),
    }
}

fn exit_what(value: &str) -> Result<ExitWhat, String> {
    match value {
        "group" => Ok(ExitWhat::Group),
        "stonewall" => Ok(ExitWhat::Stonewall),
        "all" => Ok(ExitWhat::All),
        _ => Err(format!(
            "'{value}' is not supported; group, stonewall and all are"
        )),
    }
}

fn rates(
    value: &str,
    kb_base: u64,
    known: PerDirection<u64>,
    again: bool,
) -> Result<PerDirection<u64>, String> {
    let rates = pair(value, |text| whole(text, kb_base))?;
    let before = if again {
        known
    } else {
        PerDirection::default()
    };
    Ok(PerDirection {
        read: rates.read.unwrap_or(before.read),
        write: rates.write.unwrap_or(before.write),
    })
}

fn percentile(value: &str) -> Result<f64, String> {
    match value.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        _ => Err("it is above 0 and at most 100".to_owned()),
    }
}

fn policy(value: &str) -> Result<bool, String> {
    match value {
        "shared" => Ok(false),
        "split" => Ok(true),
        _ => Err(format!("'{value}' is not supported; shared and split are")),
    }
}

fn nice(value: &str) -> Result<i32, String> {
    match value.parse::<i32>() {
        Ok(nice @ -20..=19) => Ok(nice),
        _ => Err("it lies between -20 and 19".to_owned()),
    }
}

fn dedupe_mode(value: &str) -> Result<bool, String> {
    match value {
        "repeat" => Ok(false),
        "working_set" => Ok(true),
        _ => Err(format!(
            "'{value}' is not supported; repeat and working_set are"
        )),
    }
}

fn percentages(value: &str, kb_base: u64) -> Result<PerDirection<Vec<PrioritySplit>>, String> {
    let percents = pair(value, |text| within(text, kb_base, 100))?;
    let all = |percent: Option<u64>| {
        let percent = percent.filter(|percent| *percent > 0);
        let split = |percent| PrioritySplit {
            bytes: None,
            percent,
            priority: None,
        };
        percent.map(split).into_iter().collect()
    };
    Ok(PerDirection {
        read: all(percents.read),
        write: all(percents.write),
    })
}

fn splits(value: &str, kb_base: u64) -> Result<PerDirection<Vec<PrioritySplit>>, String> {
    let splits = pair(value, |text| split(text, kb_base))?;
    Ok(PerDirection {
        read: splits.read.unwrap_or_default(),
        write: splits.write.unwrap_or_default(),
    })
}

fn request_priority(
    rules: &mut Rules,
    option: &str,
    value: &str,
    kb_base: u64,
) -> Result<(), String> {
    let most = match option {
        "cmdprio_class" => 3,
        "cmdprio" => 7,
        _ => 1023,
    };
    let values = pair(value, |text| within(text, kb_base, most))?;
    let put = |priority: &mut Priority, value: Option<u64>| {
        let Some(value) = value else { return };
        match option {
            "cmdprio_class" => priority.class = value as u8,
            "cmdprio" => priority.level = value as u8,
            _ => priority.hint = value as u16,
        }
    };
    put(&mut rules.request_priority.read, values.read);
    put(&mut rules.request_priority.write, values.write);
    Ok(())
}

/// The method of `verify=`. CRC-32C replaces all other checksums: it detects a corrupted block as they do.
fn verify(value: &str) -> Result<Option<VerifyMethod>, String> {
    const OTHERS: [&str; 14] = [
        "md5", "crc64", "crc32", "crc16", "crc7", "xxhash", "sha512", "sha256", "sha1", "sha3-224",
        "sha3-256", "sha3-384", "sha3-512", "meta",
    ];
    Ok(match value {
        "0" | "none" | "null" => None,
        "crc32c" | "crc32c-intel" | "pattern_hdr" => Some(VerifyMethod::Header(None)),
        "pattern" => Some(VerifyMethod::Pattern),
        _ => match OTHERS.iter().find(|known| **known == value) {
            Some(known) => Some(VerifyMethod::Header(Some(known))),
            None => return Err(format!("'{value}' is not supported; crc32c is")),
        },
    })
}
