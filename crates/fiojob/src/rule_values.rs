//! Values that are lists: processors, nodes, patterns, and shares of requests with a priority.

use crate::number::whole;
use crate::rules::{
    NumaMode, NumaPolicy, Priority, PrioritySplit, SteadyStateFigure, SteadyStateRule,
};
use crate::values::block;

/// The sorted numbers of a list of numbers and ranges such as `0-3,5`; colons are separators too, as in fio.
///
/// # Errors
/// A sentence, if a part is not a number, or a range ends before it begins.
pub fn numbers(text: &str) -> Result<Vec<u32>, String> {
    /// Upper bound of the numbers of processors and nodes.
    const MAX_NUMBERS: u32 = 8192;
    let mut all = Vec::new();
    let number = |text: &str| match text.trim().parse::<u32>() {
        Ok(number) if number < MAX_NUMBERS => Ok(number),
        _ => Err(format!("'{text}' is no number below {MAX_NUMBERS}")),
    };
    for part in text.split([',', ':']) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("'{part}' ends before it begins"));
        }
        all.extend(first..=last);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Positions of the set bits of a mask.
pub(super) fn mask(value: &str) -> Result<Vec<u32>, String> {
    let parsed = match value.strip_prefix("0x").or(value.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => value.parse(),
    };
    match parsed {
        Ok(0) | Err(_) => Err(format!("'{value}' is no mask of processors")),
        Ok(mask) => Ok((0..64).filter(|bit| mask >> bit & 1 == 1).collect()),
    }
}

pub(super) fn memory(value: &str) -> Result<NumaPolicy, String> {
    let (mode, nodes) = value.split_once(':').unwrap_or((value, ""));
    let (mode, needs) = match mode {
        "default" => (NumaMode::Default, false),
        "prefer" => (NumaMode::Prefer, true),
        "bind" => (NumaMode::Bind, true),
        "interleave" => (NumaMode::Interleave, true),
        "local" => (NumaMode::Local, false),
        _ => {
            return Err(format!(
                "'{mode}' is not supported; default, prefer, bind, interleave and local are"
            ));
        }
    };
    match (needs, nodes) {
        (true, "") => Err("it needs nodes; write MODE:NODES".to_owned()),
        (false, "") => Ok(NumaPolicy {
            mode,
            nodes: Vec::new(),
        }),
        (_, nodes) => Ok(NumaPolicy {
            mode,
            nodes: if needs { numbers(nodes)? } else { Vec::new() },
        }),
    }
}

/// Bytes of a pattern: numbers, `0x` and hexadecimal digits, and text in quotes, one after another.
pub(super) fn pattern(value: &str) -> Result<Vec<u8>, String> {
    /// Maximum length of a pattern, as in fio.
    const MAX_PATTERN_BYTES: usize = 512;
    let mut bytes = Vec::new();
    let mut rest = value.trim();
    while !rest.is_empty() {
        rest = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (text, rest) = quoted.split_once('"').ok_or("a quote is not closed")?;
                bytes.extend(text.bytes());
                rest
            }
            None => {
                let (number, behind) = rest.split_at(numeral_end(rest));
                bytes.extend(numeral(number)?);
                behind
            }
        };
    }
    match bytes.len() {
        0 => Err("it is empty".to_owned()),
        1..=MAX_PATTERN_BYTES => Ok(bytes),
        _ => Err(format!("it has more than {MAX_PATTERN_BYTES} bytes")),
    }
}

/// End of the number at the start of a pattern: at text, another sign, or hexadecimal digits.
fn numeral_end(text: &str) -> usize {
    let mut behind = text.char_indices().skip(1);
    let next = behind.find(|(_, letter)| ['"', '%', '-'].contains(letter));
    let end = next.map_or(text.len(), |(at, _)| at);
    let lower = text[..end].to_ascii_lowercase();
    let mut hex = lower.match_indices("0x").map(|(at, _)| at);
    hex.find(|at| *at > 0).unwrap_or(end)
}

fn numeral(text: &str) -> Result<Vec<u8>, String> {
    let why = || {
        format!(
            "'{text}' is no pattern; write a number, 0x and hexadecimal digits, or text in quotes \
             (positions, %o, and files, 'NAME', are not supported)"
        )
    };
    if let Some(hex) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        let even = format!("{}{hex}", if hex.len() % 2 == 1 { "0" } else { "" });
        if even.is_empty() || !even.is_ascii() {
            return Err(why());
        }
        let pairs = (0..even.len()).step_by(2).map(|at| &even[at..at + 2]);
        return pairs
            .map(|pair| u8::from_str_radix(pair, 16).map_err(|_| why()))
            .collect();
    }
    let number: i64 = text.parse().map_err(|_| why())?;
    let bytes = number.to_le_bytes();
    // The number is stored in the minimum number of bytes.
    let used = (1..8)
        .find(|used| {
            let shift = 64 - 8 * used;
            (number << shift) >> shift == number
                || (number as u64) << shift >> shift == number as u64
        })
        .unwrap_or(8);
    Ok(bytes[..used].to_vec())
}

pub(super) fn steady(value: &str) -> Result<SteadyStateRule, String> {
    let (name, limit) = value
        .split_once(':')
        .ok_or("it needs a limit; write FIGURE:LIMIT, such as iops:5%")?;
    let (name, slope) = match name.strip_suffix("_slope") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let of = match name {
        "iops" => SteadyStateFigure::Iops,
        "bw" => SteadyStateFigure::Bandwidth,
        "lat" => SteadyStateFigure::Latency,
        _ => {
            return Err(format!(
                "'{name}' is not supported; iops, bw and lat are, each also with _slope"
            ));
        }
    };
    let (limit, percent) = match limit.strip_suffix('%') {
        Some(limit) => (limit, true),
        None => (limit, false),
    };
    match limit.parse::<f64>() {
        Ok(limit) if limit.is_finite() && limit >= 0.0 => Ok(SteadyStateRule {
            of,
            slope,
            limit,
            percent,
        }),
        _ => Err(format!("'{limit}' is no limit")),
    }
}

/// Shares of requests with their priorities: `SIZE/PERCENT`, `SIZE/PERCENT/CLASS/LEVEL`, or the latter followed by a
/// hint, separated by colons.
pub(super) fn split(text: &str, kb_base: u64) -> Result<Vec<PrioritySplit>, String> {
    let mut splits = Vec::new();
    for part in text.split(':').filter(|part| !part.is_empty()) {
        let fields: Vec<&str> = part.split('/').collect();
        let number = |text: &str, most: u64| match whole(text, kb_base)? {
            number if number <= most => Ok(number),
            number => Err(format!("{number} in '{part}' is more than {most}")),
        };
        let priority = |class: &str, level: &str, hint: &str| {
            Ok::<_, String>(Priority {
                class: number(class, 3)? as u8,
                level: number(level, 7)? as u8,
                hint: number(hint, 1023)? as u16,
            })
        };
        let (size, percent, priority) = match fields[..] {
            [size, percent] => (size, percent, None),
            [size, percent, class, level] => (size, percent, Some(priority(class, level, "0")?)),
            [size, percent, class, level, hint] => {
                (size, percent, Some(priority(class, level, hint)?))
            }
            _ => {
                return Err(format!(
                    "'{part}' is not SIZE/PERCENT nor SIZE/PERCENT/CLASS/LEVEL"
                ));
            }
        };
        splits.push(PrioritySplit {
            bytes: Some(block(size, kb_base)?),
            percent: number(percent, 100)?,
            priority,
        });
    }
    Ok(splits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ranges_and_masks() {
        assert_eq!(numbers("0-3,5"), Ok(vec![0, 1, 2, 3, 5]));
        assert_eq!(numbers("4:1"), Ok(vec![1, 4]));
        assert_eq!(mask("0x5"), Ok(vec![0, 2]));
        assert_eq!(mask("3"), Ok(vec![0, 1]));
        for wrong in ["", "a", "3-1", "9999", "0-99999999"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
        assert!(mask("0").is_err() && mask("x").is_err());
    }

    #[test]
    fn patterns_are_numbers_and_text() {
        assert_eq!(pattern("0xaa555aa5"), Ok(vec![0xaa, 0x55, 0x5a, 0xa5]));
        assert_eq!(pattern("0xabc"), Ok(vec![0x0a, 0xbc]));
        assert_eq!(pattern("255"), Ok(vec![255]));
        assert_eq!(pattern("-12"), Ok(vec![0xf4]));
        assert_eq!(pattern("0xff\"ab\"-12"), Ok(vec![0xff, b'a', b'b', 0xf4]));
        assert_eq!(
            pattern("\"ab\"-120xdead"),
            Ok(vec![b'a', b'b', 0xf4, 0xde, 0xad])
        );
        assert_eq!(pattern("0xff0x14"), Ok(vec![0xff, 0x14]));
        assert_eq!(pattern("0xff0x140x15"), Ok(vec![0xff, 0x14, 0x15]));
        assert_eq!(pattern("0xa00x1"), Ok(vec![0xa0, 0x01]));
        for wrong in ["", "%o", "\"ab", "0xzz", "0x", "0xäb", "ä", "1ä"] {
            assert!(pattern(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn policies_steadiness_and_priorities_are_as_the_manual_has_them() {
        let bind = memory("bind:0-1").unwrap();
        assert_eq!((bind.mode, bind.nodes), (NumaMode::Bind, vec![0, 1]));
        assert!(memory("bind").is_err() && memory("local").is_ok() && memory("x:0").is_err());
        let slope = steady("bw_slope:0.1%").unwrap();
        assert_eq!(
            (slope.of, slope.slope),
            (SteadyStateFigure::Bandwidth, true)
        );
        assert!(slope.percent && slope.limit == 0.1);
        assert!(steady("iops").is_err() && steady("lat:x").is_err() && steady("q:1").is_err());
        let shares = split("64k/25/1/1:64k/75/3/2:1024k/0", 1024).unwrap();
        let second = shares[1].priority.unwrap();
        assert_eq!((second.class, second.level, shares[1].percent), (3, 2, 75));
        assert_eq!((shares[2].bytes, shares[2].priority), (Some(1 << 20), None));
        assert_eq!(
            split("1M/10/2/0/1", 1024).unwrap()[0]
                .priority
                .unwrap()
                .hint,
            1
        );
        assert!(split("64k", 1024).is_err() && split("64k/10/9/0", 1024).is_err());
    }
}
