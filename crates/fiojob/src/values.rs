//! Values of single options that are words or have several parts.

use crate::job::{Distribution, IoEngine, IoPattern, ZoneBytes, ZonePart};
use crate::number::{time_us, whole};

/// fio's default exponent of a Zipf distribution.
const ZIPF: f64 = 1.1;
/// fio's default share `h` of a Pareto distribution.
const PARETO: f64 = 0.2;
/// Maximum size of a block: every kernel splits larger ones many times, and they need much memory.
const MAX_BLOCK_BYTES: u64 = 64 << 20;

/// Value of `rw=`: the pattern, the bytes added after each request of a sequential job, and the number of requests for
/// each random position of a random job.
pub(crate) fn pattern(value: &str, kb_base: u64) -> Result<(IoPattern, i64, u32), String> {
    let (name, modifier) = match value.split_once(':') {
        None => (value, None),
        Some((name, modifier)) => (name, Some(modifier)),
    };
    let pattern = plain_pattern(name)?;
    match modifier {
        None => Ok((pattern, 0, 1)),
        Some(text) if pattern.random => Ok((pattern, 0, requests(text)?)),
        Some(text) => Ok((pattern, bytes_added(text, kb_base)?, 1)),
    }
}

/// Number of requests for each random position. fio accepts no suffix here, and ignores one.
fn requests(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(requests @ 1..) => Ok(requests),
        _ => Err(format!(
            "'{text}' is no number of requests for each random place"
        )),
    }
}

/// Bytes added after each request of a sequential job: `8k`, or `-8k` to go backwards.
fn bytes_added(text: &str, kb_base: u64) -> Result<i64, String> {
    let (digits, sign) = match text.strip_prefix('-') {
        Some(rest) => (rest, -1),
        None => (text, 1),
    };
    let bytes = i64::try_from(whole(digits, kb_base)?).map_err(|_| "it is too far".to_owned())?;
    Ok(sign * bytes)
}

fn plain_pattern(value: &str) -> Result<IoPattern, String> {
    let (random, reads, writes) = match value {
        "read" => (false, true, false),
        "write" => (false, false, true),
        "rw" | "readwrite" => (false, true, true),
        "randread" => (true, true, false),
        "randwrite" => (true, false, true),
        "randrw" => (true, true, true),
        "trim" | "trimwrite" => (false, false, true),
        "randtrim" | "randtrimwrite" => (true, false, true),
        _ => {
            return Err(format!(
                "'{value}' is not supported; read, write, rw, trim, trimwrite and, at random places, randread, randwrite, \
                 randrw, randtrim and randtrimwrite are"
            ));
        }
    };
    Ok(IoPattern {
        random,
        reads,
        writes,
        trims: value.ends_with("trim"),
        trims_first: value.ends_with("trimwrite"),
    })
}

/// The engine, and a note if the I/O differs from that of the named engine.
pub(crate) fn engine(value: &str) -> Result<(IoEngine, Option<&'static str>), String> {
    match value {
        "io_uring" | "libaio" => Ok((IoEngine::Queued, None)),
        "psync" | "sync" | "pvsync" | "pvsync2" => Ok((IoEngine::Blocking, None)),
        "posixaio" => Ok((
            IoEngine::Queued,
            Some("ioengine=posixaio is run by io_uring, without the C library's threads"),
        )),
        "vsync" => Ok((
            IoEngine::Blocking,
            Some("ioengine=vsync is run by single calls; neighbouring requests are not joined"),
        )),
        "mmap" => Ok((
            IoEngine::Blocking,
            Some("ioengine=mmap is run by pread and pwrite; there are no page faults"),
        )),
        _ => Err(format!(
            "'{value}' is not supported; io_uring, libaio, posixaio, psync, sync, pvsync, pvsync2, vsync \
             and mmap are"
        )),
    }
}

pub(crate) fn distribution(value: &str, kb_base: u64) -> Result<Distribution, String> {
    if let Some(text) = value.strip_prefix("zoned_abs:") {
        return zoned_bytes(text, kb_base).map(Distribution::ZonedBytes);
    }
    if let Some(text) = value.strip_prefix("zoned:") {
        return zoned(text).map(Distribution::Zoned);
    }
    let (name, number) = match value.split_once(':') {
        None => (value, None),
        Some((name, number)) => {
            // Rust parses 'nan' and 'inf' as numbers, but they are not valid parameters of a distribution.
            let read = number
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite());
            let number = read.ok_or_else(|| format!("'{number}' is no number"))?;
            (name, Some(number))
        }
    };
    match (name, number) {
        ("random", None) => Ok(Distribution::Uniform),
        ("zipf", number) => match number.unwrap_or(ZIPF) {
            theta if theta > 0.0 && theta != 1.0 && theta <= 100.0 => Ok(Distribution::Zipf(theta)),
            theta => Err(format!(
                "zipf's exponent is above 0 and not 1, and {theta} is not"
            )),
        },
        ("pareto", number) => match number.unwrap_or(PARETO) {
            h if h > 0.0 && h < 1.0 => Ok(Distribution::Pareto(h)),
            h => Err(format!(
                "pareto's share lies between 0 and 1, and {h} does not"
            )),
        },
        ("normal", number) => match number.unwrap_or(0.0) {
            deviation if (0.0..100.0).contains(&deviation) => Ok(Distribution::Normal(deviation)),
            deviation => Err(format!(
                "normal's deviation lies between 0 and 100 %, and {deviation} does not"
            )),
        },
        _ => Err(format!(
            "'{value}' is not supported; random, zipf:THETA, pareto:H, normal:PERCENT, zoned:ACCESS/SIZE:… and \
             zoned_abs:ACCESS/SIZE:… are"
        )),
    }
}

/// A percentage; `None` for an empty text.
fn percentage(text: &str) -> Result<Option<f64>, String> {
    match text {
        "" => Ok(None),
        text => match text.parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Some(percent)),
            _ => Err(format!("'{text}' is no percentage")),
        },
    }
}

/// Zones `ACCESS/SIZE:…`, in percent of the requests and in bytes.
fn zoned_bytes(text: &str, kb_base: u64) -> Result<Vec<ZoneBytes>, String> {
    let (mut access, mut sizes) = (Vec::new(), Vec::new());
    for part in text.split(':') {
        let (of_access, size) = part
            .split_once('/')
            .ok_or_else(|| format!("'{part}' has no size; write ACCESS/SIZE"))?;
        access.push(percentage(of_access)?);
        match whole(size, kb_base)? {
            0 => return Err(format!("'{part}' is a zone without bytes")),
            bytes => sizes.push(bytes),
        }
    }
    let zones = completed(&access, "access")?.into_iter().zip(sizes);
    let zone = |(access_percent, bytes)| ZoneBytes {
        access_percent,
        bytes,
    };
    Ok(zones.map(zone).collect())
}

/// Zones `ACCESS/SIZE:…` in percent. The rest of each is divided among the zones without a value.
fn zoned(text: &str) -> Result<Vec<ZonePart>, String> {
    let (mut access, mut size) = (Vec::new(), Vec::new());
    for part in text.split(':') {
        let (of_access, of_size) = part.split_once('/').unwrap_or((part, ""));
        access.push(percentage(of_access)?);
        size.push(percentage(of_size)?);
    }
    let zones = completed(&access, "access")?
        .into_iter()
        .zip(completed(&size, "size")?);
    let zone = |(access_percent, size_percent)| ZonePart {
        access_percent,
        size_percent,
    };
    Ok(zones.map(zone).collect())
}

/// Percentages that add up to 100: the rest is divided among the missing ones.
fn completed(parts: &[Option<f64>], what: &str) -> Result<Vec<f64>, String> {
    let named: f64 = parts.iter().flatten().sum();
    let open = parts.iter().filter(|part| part.is_none()).count();
    if named > 100.0 + 1e-9 || (open == 0 && named < 100.0 - 1e-9) {
        return Err(format!(
            "the shares of {what} add up to {named} %, not to 100 %"
        ));
    }
    let rest = (100.0 - named).max(0.0) / open.max(1) as f64;
    Ok(parts.iter().map(|part| part.unwrap_or(rest)).collect())
}

/// A size of a request.
pub(crate) fn block(text: &str, kb_base: u64) -> Result<u64, String> {
    match whole(text, kb_base)? {
        0 => Err("the block size cannot be 0".to_owned()),
        bytes if bytes > MAX_BLOCK_BYTES => Err(format!(
            "{bytes} bytes are too large a block; the largest is {MAX_BLOCK_BYTES}"
        )),
        bytes => Ok(bytes),
    }
}

/// The size of each file, as its smallest and largest value.
pub(crate) fn filesize(value: &str, kb_base: u64) -> Result<(u64, u64), String> {
    let (low, high) = value.split_once('-').unwrap_or((value, value));
    match (whole(low, kb_base)?, whole(high, kb_base)?) {
        (0, _) => Err("it is nothing; leave it out".to_owned()),
        (low, high) if low > high => Err(format!("'{value}' ends before it begins")),
        sizes => Ok(sizes),
    }
}

/// A time that is in microseconds if it has no unit.
pub(crate) fn micros(value: &str) -> Result<u64, String> {
    match value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty() {
        true => value.parse().map_err(|_| "it is too long".to_owned()),
        false => time_us(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_share_what_is_left() {
        let zones = zoned("50/5:30/15:20/").unwrap();
        assert_eq!(zones[2].access_percent, 20.0);
        assert_eq!(zones[2].size_percent, 80.0);
        assert!(
            zoned("50/50").is_err() && zoned("60/5:60/95").is_err() && zoned("x/1:y/2").is_err()
        );
    }

    #[test]
    fn zones_may_have_bytes() {
        let zones = zoned_bytes("60/20k:40/1M", 1024).unwrap();
        let bytes: Vec<u64> = zones.iter().map(|zone| zone.bytes).collect();
        assert_eq!(
            (bytes, zones[0].access_percent),
            (vec![20480, 1 << 20], 60.0)
        );
        for wrong in ["60/1m:30/1m", "100", "100/0", "100/x"] {
            assert!(zoned_bytes(wrong, 1024).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_step_goes_either_way() {
        assert_eq!(pattern("read:-8k", 1024).unwrap().1, -8192);
        assert_eq!(pattern("write:112k", 1024).unwrap().1, 112 << 10);
        assert_eq!(pattern("randread:8", 1024).unwrap().2, 8);
        for wrong in ["randread:8k", "randread:0", "randread:-1", "randread:"] {
            assert!(pattern(wrong, 1024).is_err(), "{wrong}");
        }
        assert_eq!(micros("2000"), Ok(2000));
        assert_eq!(micros("2ms"), Ok(2000));
    }
}
