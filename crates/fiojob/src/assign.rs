//! Sets the value of an option in a [`Job`].

use crate::error::FioError;
use crate::job::{Job, RateProcess, SizeOption, ZoneMode};
use crate::lines::{MachineFacts, OptionLine, Section};
use crate::number::{amount, pair, time_us, whole};
use crate::option_row::OptionSupport;
use crate::options;
use crate::pair::PerDirection;
use crate::rule_options;
use crate::sizes;
use crate::values::{self, block};
use crate::zones;

/// Maximum number of open zones, as in fio.
const MAX_OPEN_ZONES: u64 = 4096;

/// Error for an option that is listed as supported but is assigned nowhere; a test checks that there is no such
/// option.
pub(crate) const UNPLACED: &str = "disksmith does not assign this option";

/// Assigns all options of a section to its job, and adds errors for unknown, invalid and unsupported options to
/// `errors`.
pub(crate) fn section(
    job: &mut Job,
    section: &Section,
    surroundings: &MachineFacts<'_>,
    errors: &mut Vec<FioError>,
) {
    // fio reads kb_base before the other options of a section, whatever their order.
    let (first, rest): (Vec<&OptionLine>, Vec<&OptionLine>) = section
        .entries
        .iter()
        .partition(|entry| entry.name == "kb_base");
    let entries = first.into_iter().chain(rest);
    errors.extend(entries.filter_map(|entry| one(job, entry, surroundings).err()));
}

fn one(job: &mut Job, entry: &OptionLine, surroundings: &MachineFacts<'_>) -> Result<(), FioError> {
    let place = &entry.place;
    let Some(row) = options::find(&entry.name) else {
        return Err(place.error_in(
            &entry.name,
            "disksmith does not know this option, so the result may not be the same without it; \
             leave it out, or run fio",
        ));
    };
    let value = match &entry.value {
        None => None,
        Some(text) => Some(place.substitute(&entry.name, text, job.kb_base, surroundings)?),
    };
    match row.kind {
        OptionSupport::Harmless(_) => Ok(()),
        OptionSupport::Noted(off, note) => {
            match value.as_deref().is_some_and(|value| off.contains(&value)) {
                true => job.notes.remove(row.name),
                false => job.notes.insert(row.name, note),
            };
            Ok(())
        }
        OptionSupport::Stops(off, _)
            if value.as_deref().is_some_and(|value| off.contains(&value)) =>
        {
            Ok(())
        }
        OptionSupport::Stops(_, why) => Err(place.error_in(
            &entry.name,
            format!("disksmith does not support this ({why}), and it could change the result"),
        )),
        OptionSupport::Done => {
            let known = job.places.insert(row.name, place.clone());
            let given = value.clone().unwrap_or_else(|| "1".to_owned());
            let before = job.given.insert(row.name, given);
            if known
                .as_ref()
                .is_some_and(|known| known.line == 0 && place.line > 0)
                && before.as_ref() != job.given.get(row.name)
            {
                job.overridden.insert(row.name);
            }
            set(job, row.name, value.as_deref(), known.is_some())
                .map_err(|why| place.error_in(&entry.name, why))
        }
    }
}

/// Sets the values that a job gives in zones. Called when all of its options are known.
///
/// # Errors
/// The first option that cannot be set.
pub(crate) fn counted_zones(job: &mut Job) -> Result<(), FioError> {
    for (option, zones) in zones::counted(job) {
        let bytes = zones::bytes(job, zones);
        bytes
            .and_then(|bytes| set(job, option, Some(&bytes.to_string()), true))
            .map_err(|why| job.error(option, why))?;
    }
    Ok(())
}

/// Sets a supported option. With `again` it was set before.
pub(crate) fn set(
    job: &mut Job,
    option: &str,
    value: Option<&str>,
    again: bool,
) -> Result<(), String> {
    if let Some(switch) = switch(job, option) {
        *switch = is_set(value)?;
        return Ok(());
    }
    if let Some(switch) = rule_options::switch(&mut job.rules, option) {
        *switch = is_set(value)?;
        return Ok(());
    }
    let Some(value) = value else {
        return Err(format!("it needs a value; write {option}=VALUE"));
    };
    if let Some(flag) = flag(job, option) {
        *flag = truth(value)?;
        return Ok(());
    }
    if let Some(flag) = rule_options::flag(&mut job.rules, option) {
        *flag = truth(value)?;
        return Ok(());
    }
    if zones::is_counted(option, value) {
        // It is set later, when the size of a zone is known.
        return Ok(());
    }
    let kb_base = job.kb_base;
    let number = |most: u64| within(value, kb_base, most);
    match option {
        "name" => job.name = value.to_owned(),
        "description" => job.description = Some(value.to_owned()),
        "kb_base" => {
            job.kb_base = match value {
                "1000" => 1000,
                "1024" => 1024,
                _ => return Err("it is 1000 or 1024".to_owned()),
            }
        }
        "rw" => (job.pattern, job.step, job.every) = values::pattern(value, kb_base)?,
        "rw_sequencer" => {
            job.repeats_places = match value {
                "sequential" => false,
                "identical" => true,
                _ => return Err("it is sequential or identical".to_owned()),
            }
        }
        "percentage_random" => {
            let percents = pair(value, |text| within(text, kb_base, 100))?;
            let before = job.random_percent;
            job.random_percent = PerDirection {
                read: percents.read.unwrap_or(before.read),
                write: percents.write.unwrap_or(before.write),
            };
        }
        "rwmixread" => job.read_percent = number(100)?,
        "rwmixwrite" => job.read_percent = 100 - number(100)?,
        "bs" => sizes::put(
            job,
            SizeOption::Block,
            pair(value, |text| sizes::only(text, kb_base))?,
        )?,
        "bsrange" => sizes::put(
            job,
            SizeOption::Range,
            pair(value, |text| sizes::range(text, kb_base))?,
        )?,
        "bssplit" => sizes::put(
            job,
            SizeOption::Split,
            pair(value, |text| sizes::shares(text, kb_base))?,
        )?,
        "blockalign" => {
            let align = pair(value, |text| block(text, kb_base))?;
            job.align.read = align.read.or(job.align.read);
            job.align.write = align.write.or(job.align.write);
        }
        "filesize" => job.filesize = Some(values::filesize(value, kb_base)?),
        "zonemode" => {
            job.zones.mode = match value {
                "none" => ZoneMode::None,
                "strided" => ZoneMode::Strided,
                "zbd" => ZoneMode::Zoned,
                _ => {
                    return Err(format!(
                        "'{value}' is not supported; none, strided and zbd are"
                    ));
                }
            }
        }
        "zonesize" => job.zones.size = number(u64::MAX >> 1)?,
        "zonerange" => job.zones.range = number(u64::MAX >> 1)?,
        "zoneskip" => job.zones.skip = number(u64::MAX >> 1)?,
        "zonecapacity" => job.zones.capacity = number(u64::MAX >> 1)?,
        "max_open_zones" => job.zones.open = number(MAX_OPEN_ZONES)?,
        "job_max_open_zones" => job.zones.open_by_clone = number(MAX_OPEN_ZONES)?,
        "thinktime" => job.think_us = values::micros(value)?,
        "thinktime_blocks" => job.think_every = at_least_one(number(u64::from(u32::MAX))?)?,
        "thinktime_blocks_type" => {
            job.think_counts_issued = match value {
                "complete" => false,
                "issue" => true,
                _ => return Err("it is complete or issue".to_owned()),
            }
        }
        "thinktime_iotime" => job.think_io_us = time(value)?,
        "wait_for" => job.wait_for = Some(value.to_owned()),
        "rate" => {
            let rates = pair(value, |text| whole(text, kb_base))?;
            let before = if again {
                job.rate
            } else {
                PerDirection::default()
            };
            job.rate = PerDirection {
                read: rates.read.unwrap_or(before.read),
                write: rates.write.unwrap_or(before.write),
            };
        }
        "size" => job.size = Some(some(amount(value, kb_base)?)?),
        "io_size" => job.io_size = Some(some(amount(value, kb_base)?)?),
        "offset" => job.offset = amount(value, kb_base)?,
        "offset_increment" => job.offset_increment = whole(value, kb_base)?,
        "number_ios" => job.number_ios = Some(number(u64::MAX)?).filter(|count| *count > 0),
        "filename" => job.filename = filenames(value)?,
        "directory" => job.directory = Some(directory(value)?),
        "filename_format" => {
            job.filename_format = Some(value.to_owned()).filter(|it| !it.is_empty())
        }
        "nrfiles" => job.nrfiles = at_least_one(number(1024)?)?,
        "numjobs" => job.numjobs = at_least_one(number(1024)?)?,
        "iodepth" => job.iodepth = at_least_one(number(16_384)?)?,
        "loops" => job.loops = number(u64::from(u32::MAX))?.max(1),
        "ioengine" => (job.engine, job.engine_note) = values::engine(value)?,
        "buffered" => job.direct = !truth(value)?,
        "fadvise_hint" => job.advise = advice(value)?,
        "fsync" => job.fsync = number(u64::from(u32::MAX))? as u32,
        "fdatasync" => job.fdatasync = number(u64::from(u32::MAX))? as u32,
        "runtime" => job.runtime_us = time(value)?,
        "ramp_time" => job.ramp_us = time(value)?,
        "rate_iops" => {
            let rates = pair(value, |text| within(text, kb_base, 10_000_000))?;
            let before = if again {
                job.rate_iops
            } else {
                PerDirection::default()
            };
            job.rate_iops = PerDirection {
                read: rates.read.unwrap_or(before.read),
                write: rates.write.unwrap_or(before.write),
            };
        }
        "rate_process" => {
            job.cadence = match value {
                "linear" => RateProcess::Linear,
                "poisson" => RateProcess::Poisson,
                _ => return Err("it is linear or poisson".to_owned()),
            }
        }
        "random_distribution" => job.distribution = values::distribution(value, kb_base)?,
        "randseed" => job.randseed = Some(number(u64::MAX)?),
        _ => {
            return rule_options::set(&mut job.rules, option, value, kb_base, again)
                .unwrap_or_else(|| Err(UNPLACED.to_owned()));
        }
    }
    Ok(())
}

/// Options that may be given without a value.
fn switch<'a>(job: &'a mut Job, option: &str) -> Option<&'a mut bool> {
    Some(match option {
        "time_based" => &mut job.time_based,
        "stonewall" => &mut job.stonewall,
        "new_group" => &mut job.new_group,
        "group_reporting" => &mut job.group_reporting,
        "norandommap" => &mut job.with_replacement,
        _ => return None,
    })
}

/// Options that are 0 or 1.
fn flag<'a>(job: &'a mut Job, option: &str) -> Option<&'a mut bool> {
    Some(match option {
        "direct" => &mut job.direct,
        "invalidate" => &mut job.invalidate,
        "end_fsync" => &mut job.end_fsync,
        "fsync_on_close" => &mut job.fsync_on_close,
        "randrepeat" => &mut job.randrepeat,
        "allrandrepeat" => &mut job.allrandrepeat,
        "bs_is_seq_rand" => &mut job.sizes_by_order,
        "rate_ignore_thinktime" => &mut job.think_stops_rate,
        "read_beyond_wp" => &mut job.zones.reads_unwritten,
        _ => return None,
    })
}

fn is_set(value: Option<&str>) -> Result<bool, String> {
    value.map_or(Ok(true), truth)
}

fn truth(value: &str) -> Result<bool, String> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("it is 0 or 1, not '{value}'")),
    }
}

fn within(value: &str, kb_base: u64, most: u64) -> Result<u64, String> {
    match whole(value, kb_base)? {
        number if number <= most => Ok(number),
        number => Err(format!("{number} is too large; the largest is {most}")),
    }
}

fn at_least_one(number: u64) -> Result<u32, String> {
    match u32::try_from(number) {
        Ok(number @ 1..) => Ok(number),
        _ => Err("it is at least 1".to_owned()),
    }
}

fn time(value: &str) -> Result<u64, String> {
    const YEAR: u64 = 365 * 86_400 * 1_000_000;
    match time_us(value)? {
        us if us <= YEAR => Ok(us),
        _ => Err("it is more than a year".to_owned()),
    }
}

fn some(amount: crate::Amount) -> Result<crate::Amount, String> {
    match amount {
        crate::Amount::Bytes(0) | crate::Amount::Percent(0) => {
            Err("it is nothing; leave it out for all of the file or device".to_owned())
        }
        amount => Ok(amount),
    }
}

fn advice(value: &str) -> Result<bool, String> {
    match value {
        "0" | "none" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("'{value}' is not supported; 0 and 1 are")),
    }
}

/// The names in `filename=`, separated by colons; a colon within a name is written `\:`.
///
/// # Errors
/// A sentence, if a name is empty or is not a file.
pub fn filenames(value: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut letters = value.chars().peekable();
    while let Some(letter) = letters.next() {
        let escaped = letter == '\\' && letters.peek() == Some(&':');
        match (letter, names.last_mut()) {
            (':', _) => names.push(String::new()),
            (_, Some(name)) if escaped => name.extend(letters.next()),
            (_, Some(name)) => name.push(letter),
            (_, None) => {}
        }
    }
    if names.iter().any(String::is_empty) {
        return Err("a name is empty; is a variable in it not set?".to_owned());
    }
    if names.iter().any(|name| name == "-") {
        return Err("standard input and output are not measured".to_owned());
    }
    Ok(names)
}

fn directory(value: &str) -> Result<String, String> {
    match value {
        "" => Err("it is empty; is a variable in it not set?".to_owned()),
        value if value.contains(':') => {
            Err("several directories are not supported; run one after another".to_owned())
        }
        value => Ok(value.to_owned()),
    }
}
