//! Lines without figures of devices: the host's name, the processors, and other headers.

use std::borrow::Cow;

use record::sample::{CpuShares, Fraction, SampleSource};

use super::number::{Number, number};
use super::stamp;

/// Names of the shares of the processors, in a header such as `avg-cpu: %user %nice %idle`.
pub(crate) fn cpu_header(text: &str) -> Option<Vec<String>> {
    if !text.contains("user") || !text.contains("idle") {
        return None;
    }
    let mut words = text.split_whitespace().peekable();
    if !words.peek()?.starts_with('%') {
        words.next();
    }
    let names: Vec<String> = words
        .map(|word| word.trim_start_matches('%').to_owned())
        .collect();
    let has = |name: &str| names.iter().any(|known| known == name);
    (has("user") && has("idle") && names.len() <= 16).then_some(names)
}

/// Shares of the processors. Without a header, six figures that add up to 100 % are taken for them.
pub(crate) fn cpu_shares(text: &str, names: Option<&[String]>) -> Option<CpuShares> {
    let numbers: Option<Vec<Number>> = text.split_whitespace().take(17).map(number).collect();
    let numbers = numbers?;
    let usual = ["user", "nice", "system", "iowait", "steal", "idle"].map(str::to_owned);
    // All shares are zero if a report follows another immediately.
    let has_header = names.is_some();
    let names = names.unwrap_or(&usual);
    let sum: f64 = numbers.iter().map(|number| number.value).sum();
    let is_whole = (90.0..=110.0).contains(&sum) || (has_header && sum == 0.0);
    if numbers.len() != names.len() || !is_whole {
        return None;
    }
    let mut shares = CpuShares::default();
    for (name, number) in names.iter().zip(&numbers) {
        if let Some(place) = cpu_place(&mut shares, name) {
            *place = Fraction(number.value.max(0.0) / 100.0);
        }
    }
    Some(shares)
}

/// The field for a share of the processors by its name (iostat(1); `%sys` in sysstat 5).
pub(crate) fn cpu_place<'a>(shares: &'a mut CpuShares, name: &str) -> Option<&'a mut Fraction> {
    match name {
        "user" => Some(&mut shares.user),
        "nice" => Some(&mut shares.nice),
        "system" | "sys" => Some(&mut shares.system),
        "iowait" => Some(&mut shares.iowait),
        "steal" => Some(&mut shares.steal),
        "idle" => Some(&mut shares.idle),
        _ => None,
    }
}

/// True if a line is the header of a report that is not about disks: that of NFS before sysstat 11, which before 9
/// called its mounts devices.
pub(crate) fn is_other_header(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    match first.trim_end_matches(':') {
        "Filesystem" => text.contains("/s"),
        "Device" => text.contains("_nor/s") && text.contains("_svr/s"),
        _ => false,
    }
}

/// The line in which a run of iostat names its host.
pub(crate) struct BannerLine {
    kernel: String,
    hostname: String,
    cpus: Option<u32>,
    pub(crate) date: Option<stamp::RawDate>,
}

impl BannerLine {
    /// Reads `Linux 6.1.0 (host) 11/22/26 _x86_64_ (2 CPU)`. Old versions print less.
    pub(crate) fn of_line(text: &str) -> Option<BannerLine> {
        let rest = text.trim().strip_prefix("Linux ")?;
        let (kernel, rest) = rest.split_once(" (")?;
        let (hostname, rest) = rest.split_once(')')?;
        let is_release = kernel.starts_with(|c: char| c.is_ascii_digit());
        if !is_release || kernel.contains(' ') || text.len() > 1024 {
            return None;
        }
        let cpus = rest
            .split_once('(')
            .and_then(|(_, cpus)| cpus.split_whitespace().next()?.parse().ok());
        let date = rest
            .trim()
            .split(['\t', '_', '('])
            .next()
            .and_then(stamp::raw_date);
        Some(BannerLine {
            kernel: kernel.to_owned(),
            hostname: hostname.to_owned(),
            cpus,
            date,
        })
    }

    /// Name of the host in such a line.
    pub(crate) fn host_of(text: &str) -> Option<String> {
        BannerLine::of_line(text).map(|machine| machine.hostname)
    }

    /// Copies kernel, host and other properties to the source.
    pub(crate) fn note(self, source: &mut SampleSource) {
        source.kernel = Some(self.kernel);
        source.hostname = Some(self.hostname);
        source.cpus = self.cpus.or(source.cpus);
    }
}

/// A line without a terminal's colour codes, and without the zero bytes that a crash of the host leaves in files.
pub(crate) fn strip_colours(text: &str) -> Cow<'_, str> {
    let text = text.trim_matches(['\0', '\u{feff}']);
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let end = behind
            .find(|c: char| !c.is_ascii_digit() && c != ';')
            .map_or(behind.len(), |end| {
                end + behind[end..].chars().next().map_or(0, char::len_utf8)
            });
        rest = &behind[end..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}
