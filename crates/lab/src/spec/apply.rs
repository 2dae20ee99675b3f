//! Applies `key=value` pairs, one after the other, to a volume's specification.

use record::{Bytes, Nanos, has_unit};

use super::error::{KEYS, SpecError};
use super::{
    Burst, Episode, Episodes, ErrorOn, MAX_SERIAL_CHARS, Profile, SECTOR, Span, ThroughputBurst,
    VolumeSpec,
};

/// Keys that may be given more than once.
const REPEATABLE_KEYS: [&str; 4] = ["slow", "stall", "error", "corrupt"];

/// A key with its value, and the errors about them.
#[derive(Clone, Copy)]
struct Pair<'a> {
    key: &'a str,
    value: &'a str,
}

/// A volume of this profile and size, with the pairs applied.
pub(super) fn volume(
    profile: Option<Profile>,
    size: Bytes,
    pairs: &[(&str, &str)],
) -> Result<VolumeSpec, SpecError> {
    check_keys(pairs)?;
    let find = |key| {
        let (key, value) = pairs.iter().find(|(k, _)| *k == key)?;
        Some(Pair { key, value })
    };
    let iops = match find("iops") {
        Some(pair) => pair.or_none(Pair::rate)?,
        None => None,
    };
    let mut spec = match profile {
        Some(profile) => VolumeSpec::of(profile, size, iops),
        None => VolumeSpec::free(size),
    };
    for &(key, value) in pairs {
        set(&mut spec, Pair { key, value })?;
    }
    let burst = find("burst").map(Pair::rate).transpose()?;
    let credits = find("credits").map(Pair::rate).transpose()?;
    spec.burst = both_or_neither(
        "burst",
        "credits",
        spec.burst.map(|b| (b.iops, b.credits)),
        burst,
        credits,
    )?
    .map(|(iops, credits)| Burst { iops, credits });
    let given = (burst, credits) != (None, None);
    // A baseline above a profile's burst makes the burst useless.
    spec.burst = spec
        .burst
        .filter(|b| given || spec.iops.is_some_and(|iops| iops < b.iops));
    let bytes = |key, unit| find(key).map(|pair: Pair<'_>| pair.bytes(unit)).transpose();
    let (burst, credits) = (
        bytes("throughput-burst", "MiB")?,
        bytes("throughput-credits", "GiB")?,
    );
    let known = spec.throughput_burst.map(|b| (b.throughput, b.credits));
    spec.throughput_burst = both_or_neither(
        "throughput-burst",
        "throughput-credits",
        known,
        burst,
        credits,
    )?
    .map(|(throughput, credits)| ThroughputBurst {
        throughput,
        credits,
    });
    let given = (burst, credits) != (None, None);
    spec.throughput_burst = spec
        .throughput_burst
        .filter(|b| given || spec.throughput.is_some_and(|rate| rate < b.throughput));
    if let Some(Profile::Sold(sold)) = profile {
        let throughput = find("throughput").and(spec.throughput);
        sold.check_ratios(size, iops, throughput)
            .map_err(SpecError::NotSold)?;
    }
    if find("latency").is_some() && find("latency-min").is_none() {
        spec.latency.min = Nanos(spec.latency.mean.0 / 2);
    }
    check_together(&spec)?;
    Ok(spec)
}

fn check_keys(pairs: &[(&str, &str)]) -> Result<(), SpecError> {
    for (index, (key, _)) in pairs.iter().enumerate() {
        if !KEYS.contains(key) {
            return Err(SpecError::Key((*key).to_owned()));
        }
        if !REPEATABLE_KEYS.contains(key) && pairs[..index].iter().any(|(before, _)| before == key)
        {
            return Err(SpecError::Twice((*key).to_owned()));
        }
    }
    Ok(())
}

fn set(spec: &mut VolumeSpec, pair: Pair<'_>) -> Result<(), SpecError> {
    match pair.key {
        "iops" => spec.iops = pair.or_none(Pair::rate)?,
        "throughput" => spec.throughput = pair.or_none(|pair| pair.bytes("MiB"))?,
        "merge" => spec.merge = pair.or_none(|pair| pair.bytes("KiB"))?,
        "latency" => spec.latency.mean = pair.time()?,
        "latency-min" => spec.latency.min = pair.time()?,
        "jitter" => spec.latency.jitter = pair.number(0.0, 3.0, "a number from 0 to 3")?,
        "cold" => spec.cold.fraction = pair.share()?,
        "cold-block" => spec.cold.block = pair.cold_block()?,
        "cold-latency" => (spec.cold.min, spec.cold.max) = pair.times()?,
        "cold-rate" => spec.cold.rate = pair.or_none(|pair| pair.bytes("MiB"))?,
        "slow" => spec.slow.when.episodes.push(pair.episode()?),
        "slow-factor" => {
            spec.slow.factor = pair.number(1.0, 1e6, "a number from 1 to 1000000, such as 4")?;
        }
        "slow-every" => spec.slow.when.every = Some(pair.time()?),
        "stall" => spec.stalls.episodes.push(pair.episode()?),
        "stall-every" => spec.stalls.every = Some(pair.time()?),
        "error" => spec.errors.places.push(pair.error_place(spec.size)?),
        "error-rate" => spec.errors.rate = pair.share()?,
        "error-on" => spec.errors.on = pair.error_on()?,
        "error-after" => spec.errors.after = pair.time()?,
        "corrupt" => spec.corruption.places.push(pair.place(spec.size)?),
        "corrupt-places" => spec.corruption.random_places = pair.places(spec.size)?,
        "corrupt-after" => spec.corruption.after = Some(pair.time()?),
        "volatile" => spec.volatile = pair.switch()?,
        "serial" => spec.serial = Some(pair.serial()?),
        "seed" => {
            spec.seed = Some(
                pair.value
                    .parse()
                    .map_err(|_| pair.bad("a whole number, such as 7"))?,
            );
        }
        // Burst and credits are one value, which is set from both.
        _ => {}
    }
    Ok(())
}

/// A burst's rate and its credits are given together or not at all; a profile may have defaults.
fn both_or_neither<T>(
    burst_key: &str,
    credits_key: &str,
    known: Option<(T, T)>,
    burst: Option<T>,
    credits: Option<T>,
) -> Result<Option<(T, T)>, SpecError> {
    let (known_burst, known_credits) = known.unzip();
    match (burst.or(known_burst), credits.or(known_credits)) {
        (Some(burst), Some(credits)) => Ok(Some((burst, credits))),
        (None, None) => Ok(None),
        (Some(_), None) => together_error(format!(
            "{burst_key} is given without {credits_key}; give their number too"
        )),
        (None, Some(_)) => together_error(format!(
            "{credits_key} are given without {burst_key}; give its rate too"
        )),
    }
}

fn together_error<T>(text: impl Into<String>) -> Result<T, SpecError> {
    Err(SpecError::Together(text.into()))
}

fn check_together(spec: &VolumeSpec) -> Result<(), SpecError> {
    match (spec.burst, spec.iops) {
        (Some(_), None) => {
            return together_error("burst needs a baseline to fall back to; give iops too");
        }
        (Some(burst), Some(iops)) if burst.iops <= iops => {
            return together_error(format!(
                "burst={} is not above iops={iops}; leave it out or raise it",
                burst.iops
            ));
        }
        _ => {}
    }
    match (spec.throughput_burst, spec.throughput) {
        (Some(_), None) => {
            return together_error(
                "throughput-burst needs a baseline to fall back to; give throughput too",
            );
        }
        (Some(burst), Some(rate)) if burst.throughput <= rate => {
            return together_error(format!(
                "throughput-burst={} is not above throughput={rate}; leave it out or raise it",
                burst.throughput
            ));
        }
        _ => {}
    }
    if spec.latency.min > spec.latency.mean {
        return together_error(format!(
            "latency-min is {} and latency, which is the mean, is {}; the mean must not be smaller",
            spec.latency.min, spec.latency.mean
        ));
    }
    check_every("slow", &spec.slow.when)?;
    check_every("stall", &spec.stalls)
}

fn check_every(key: &str, episodes: &Episodes) -> Result<(), SpecError> {
    let Some(every) = episodes.every else {
        return Ok(());
    };
    match episodes.episodes.iter().map(|e| e.length).max() {
        None => together_error(format!(
            "{key}-every is given without {key}; give {key}=START+LENGTH too"
        )),
        Some(longest) if longest >= every => together_error(format!(
            "{key}-every is {every} and {key} lasts {longest}; the period must be longer"
        )),
        Some(_) => Ok(()),
    }
}

impl<'a> Pair<'a> {
    fn bad(self, takes: &str) -> SpecError {
        SpecError::Value {
            key: self.key.to_owned(),
            value: self.value.to_owned(),
            takes: takes.to_owned(),
        }
    }

    /// `None` for the word "none".
    fn or_none<T>(
        self,
        read: fn(Pair<'a>) -> Result<T, SpecError>,
    ) -> Result<Option<T>, SpecError> {
        if self.value == "none" {
            return Ok(None);
        }
        read(self).map(Some)
    }

    fn number(self, low: f64, high: f64, takes: &str) -> Result<f64, SpecError> {
        match self.value.parse::<f64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(self.bad(takes)),
        }
    }

    /// Operations a second, or a number of operations.
    fn rate(self) -> Result<f64, SpecError> {
        self.number(0.001, 1e12, "a number above 0, such as 3000")
    }

    fn share(self) -> Result<f64, SpecError> {
        let takes = "a share from 0 to 1, such as 0.5 or 50%";
        match self.value.strip_suffix('%') {
            Some(value) => Pair { value, ..self }
                .number(0.0, 100.0, takes)
                .map(|percent| percent / 100.0)
                .map_err(|_| self.bad(takes)),
            None => self.number(0.0, 1.0, takes),
        }
    }

    /// Refuses a quantity without a unit; `unit` is the usual unit. Each number between the separators of the grammar
    /// is a quantity.
    fn with_units(self, unit: &str) -> Result<(), SpecError> {
        let quantities = self.value.split('+').flat_map(|part| part.split(".."));
        let Some(bare) = quantities.clone().find(|text| !has_unit(text)) else {
            return Ok(());
        };
        let mut example = self.value.to_owned();
        for text in quantities.filter(|text| !has_unit(text)) {
            example = example.replacen(text, &format!("{text}{unit}"), 1);
        }
        Err(SpecError::Unit {
            key: self.key.to_owned(),
            value: self.value.to_owned(),
            bare: bare.to_owned(),
            example,
        })
    }

    /// A size that is not an offset: it needs a unit.
    fn bytes(self, unit: &str) -> Result<Bytes, SpecError> {
        self.with_units(unit)?;
        match self.value.parse() {
            Ok(bytes) if bytes > Bytes(0) => Ok(bytes),
            _ => Err(self.bad("a size above 0, such as 125MiB or 256KiB")),
        }
    }

    fn cold_block(self) -> Result<Bytes, SpecError> {
        let block = self.bytes("KiB")?;
        if block < Bytes::kib(4) || block > Bytes::GIB {
            return Err(self.bad("a size from 4KiB to 1GiB, such as 512KiB"));
        }
        Ok(block)
    }

    fn time(self) -> Result<Nanos, SpecError> {
        self.with_units(if self.key.starts_with("latency") {
            "ms"
        } else {
            "s"
        })?;
        self.value
            .parse()
            .map_err(|_| self.bad("a duration, such as 500us or 10s"))
    }

    /// A range such as `20ms..80ms`, or one value for both bounds.
    fn times(self) -> Result<(Nanos, Nanos), SpecError> {
        self.with_units("ms")?;
        let (low, high) = self
            .value
            .split_once("..")
            .unwrap_or((self.value, self.value));
        match (low.parse(), high.parse()) {
            (Ok(low), Ok(high)) if low <= high => Ok((low, high)),
            _ => Err(self.bad("a duration or two, such as 50ms or 20ms..80ms")),
        }
    }

    fn episode(self) -> Result<Episode, SpecError> {
        self.with_units("s")?;
        let read = || {
            let (start, length) = self.value.split_once('+')?;
            let (start, length) = (start.parse().ok()?, length.parse().ok()?);
            (length > Nanos(0)).then_some(Episode { start, length })
        };
        read().ok_or_else(|| self.bad("START+LENGTH, such as 10s+500ms"))
    }

    fn error_place(self, size: Bytes) -> Result<Span, SpecError> {
        let all = Span {
            offset: 0,
            length: size.0,
        };
        match self.value {
            "all" => Ok(all),
            value if value.contains('+') => self.place(size),
            _ => Err(self.bad("OFFSET+LENGTH inside the volume, such as 1GiB+64KiB, or all")),
        }
    }

    fn place(self, size: Bytes) -> Result<Span, SpecError> {
        let read = || {
            let (offset, length) = match self.value.split_once('+') {
                Some((offset, length)) => (offset, length.parse().ok()?),
                None => (self.value, SECTOR),
            };
            let offset: Bytes = offset.parse().ok()?;
            let end = offset.0.checked_add(length.0)?;
            (length.0 > 0 && end <= size.0).then_some(Span {
                offset: offset.0,
                length: length.0,
            })
        };
        read().ok_or_else(|| self.bad("OFFSET+LENGTH inside the volume, such as 1GiB+64KiB"))
    }

    fn places(self, size: Bytes) -> Result<u32, SpecError> {
        // At most a tenth of the volume's sectors, so that random choice finds distinct ones quickly.
        let most = (size.0 / SECTOR.0 / 10).min(1_000_000);
        match self.value.parse::<u32>() {
            Ok(places) if u64::from(places) <= most => Ok(places),
            _ => Err(self.bad(&format!("a whole number up to {most} on this volume"))),
        }
    }

    fn error_on(self) -> Result<ErrorOn, SpecError> {
        match self.value {
            "read" => Ok(ErrorOn::Read),
            "write" => Ok(ErrorOn::Write),
            "both" => Ok(ErrorOn::Both),
            _ => Err(self.bad("read, write or both")),
        }
    }

    fn switch(self) -> Result<bool, SpecError> {
        match self.value {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(self.bad("0 or 1")),
        }
    }

    fn serial(self) -> Result<String, SpecError> {
        let known = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        // A name of dots would be a folder.
        let named = self.value.chars().any(|c| c.is_ascii_alphanumeric());
        if named && self.value.len() <= MAX_SERIAL_CHARS && self.value.chars().all(known) {
            return Ok(self.value.to_owned());
        }
        Err(self.bad("up to 20 letters, digits, dots, dashes or underscores"))
    }
}
