//! Guesses the columns of a log without headers, and verifies the guess against the figures.

use super::columns::{Column, Columns, Figure, Part};
use super::number::Number;
use super::row::Figures;

/// The column sets that versions of sysstat printed, as their headers. `U` stands for the unit:
/// sectors, kB or MB.
const SETS: [(&str, &str); 11] = [
    (
        "sysstat 5, -x",
        "rrqm/s wrqm/s r/s w/s rsec/s wsec/s rkB/s wkB/s avgrq-sz avgqu-sz await svctm %util",
    ),
    (
        "sysstat 6 to 10.0, -x",
        "rrqm/s wrqm/s r/s w/s rU/s wU/s avgrq-sz avgqu-sz await svctm %util",
    ),
    (
        "sysstat 10.1 to 11.4, -x",
        "rrqm/s wrqm/s r/s w/s rU/s wU/s avgrq-sz avgqu-sz await r_await w_await svctm %util",
    ),
    (
        "sysstat 11.6 to 12.0, -x",
        "r/s w/s rU/s wU/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz wareq-sz \
         svctm %util",
    ),
    (
        "sysstat 12.1 and 12.2, -x",
        "r/s rU/s rrqm/s %rrqm r_await rareq-sz w/s wU/s wrqm/s %wrqm w_await wareq-sz d/s dU/s \
         drqm/s %drqm d_await dareq-sz aqu-sz %util",
    ),
    (
        "sysstat 12.3 and later, -x",
        "r/s rU/s rrqm/s %rrqm r_await rareq-sz w/s wU/s wrqm/s %wrqm w_await wareq-sz d/s dU/s \
         drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util",
    ),
    (
        "sysstat 11.6 to 12.0, -x -s",
        "tps U/s rqm/s await aqu-sz areq-sz %util",
    ),
    (
        "sysstat 12.1 and later, -x -s",
        "tps U/s rqm/s await areq-sz aqu-sz %util",
    ),
    (
        "sysstat before 12.1, without -x",
        "tps B_read/s B_wrtn/s B_read B_wrtn",
    ),
    (
        "sysstat 12.1 and later, -s without -x",
        "tps B_read/s B_w+d/s B_read B_w+d",
    ),
    (
        "sysstat 12.1 and later, without -x",
        "tps B_read/s B_wrtn/s B_dscd/s B_read B_wrtn B_dscd",
    ),
];

/// The names of the units in headers with `-x`, and without.
const UNITS: [(&str, &str); 3] = [("kB", "kB"), ("sec", "Blk"), ("MB", "MB")];

/// A guess of the columns, and the evidence for it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnGuess {
    /// Columns that the log probably has.
    pub columns: Columns,
    /// The versions of sysstat and the options that print them.
    pub printed_by: &'static str,
    /// Number of relations between figures that were checked, such as size = bytes / requests.
    pub checked: u64,
    /// Number of checked relations that hold.
    pub held: u64,
}

/// Minimum number of checked relations for a guess to be accepted.
const MIN_RELATIONS: u64 = 4;

/// Number of checked relations that is sufficient, so that no more lines need to be read.
pub(crate) const SUFFICIENT_RELATIONS: u64 = 60;

/// Guesses the columns of lines of figures: the one known set for which nearly all checked relations hold.
pub(crate) fn guess(rows: &[Vec<Number>]) -> Option<ColumnGuess> {
    let count = usual_count(rows)?;
    let mut guesses: Vec<ColumnGuess> = candidates(count)
        .map(|(printed_by, columns)| {
            let (mut checked, mut held) = (0, 0);
            for row in rows.iter().filter(|row| row.len() == count) {
                let (tests, passed) = check(&columns, row);
                checked += tests;
                held += passed;
            }
            ColumnGuess {
                columns,
                printed_by,
                checked,
                held,
            }
        })
        .filter(|guess| guess.checked >= MIN_RELATIONS && fits(guess) >= 0.95)
        .collect();
    guesses.sort_by(|a, b| fits(b).total_cmp(&fits(a)).then(b.checked.cmp(&a.checked)));
    // If two sets fit equally well, the meaning of the figures is open, unless both give the same figures: if no
    // requests complete, the unit does not matter.
    let best = guesses.first()?;
    let of_count = || rows.iter().filter(|row| row.len() == count);
    let is_open = guesses[1..].iter().any(|rival| {
        let differs = |row: &Vec<Number>| {
            !figures(&rival.columns, row).agrees_with(&figures(&best.columns, row))
        };
        rival.checked >= best.checked && of_count().any(differs)
    });
    guesses.into_iter().next().filter(|_| !is_open)
}

/// Figures of a line by these columns.
fn figures(columns: &Columns, row: &[Number]) -> Figures {
    let mut figures = Figures::default();
    for (column, number) in columns.list.iter().zip(row) {
        figures.set(*column, *number);
    }
    figures
}

/// The known sets with this number of columns, as text for a message.
pub(crate) fn candidates_text(rows: &[Vec<Number>]) -> Vec<String> {
    let count = usual_count(rows).unwrap_or_default();
    candidates(count)
        .map(|(printed_by, columns)| format!("'{}' ({printed_by})", columns.text()))
        .collect()
}

/// Number of figures of most lines.
pub(crate) fn usual_count(rows: &[Vec<Number>]) -> Option<usize> {
    let mut counts = std::collections::BTreeMap::<usize, usize>::new();
    for row in rows {
        *counts.entry(row.len()).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(_, lines)| *lines)
        .map(|(count, _)| count)
}

fn fits(guess: &ColumnGuess) -> f64 {
    guess.held as f64 / guess.checked.max(1) as f64
}

fn candidates(count: usize) -> impl Iterator<Item = (&'static str, Columns)> {
    let sets = SETS
        .into_iter()
        .filter(move |(_, set)| set.split(' ').count() == count);
    sets.flat_map(|(printed_by, set)| {
        let units = if set.contains('U') || set.contains("B_") {
            3
        } else {
            1
        };
        UNITS[..units].iter().filter_map(move |(extended, basic)| {
            let header: Vec<String> = set
                .split(' ')
                .map(|name| unit(name, extended, basic))
                .collect();
            let columns = Columns::of_header(&format!("Device {}", header.join(" ")))?;
            Some((printed_by, columns))
        })
    })
}

/// A column's name with its unit in place.
fn unit(name: &str, extended: &str, basic: &str) -> String {
    match name.strip_prefix("B_") {
        Some(rest) => format!("{basic}_{rest}"),
        None => name.replace('U', extended),
    }
}

/// Number of relations between the figures of a line that can be checked, and how many of them hold.
fn check(columns: &Columns, row: &[Number]) -> (u64, u64) {
    let figures = figures(columns, row);
    if figures.reset {
        return (0, 0);
    }
    let relations = [
        size(&figures, columns, Part::Read, &[Part::Read]),
        size(&figures, columns, Part::Write, &[Part::Write]),
        size(&figures, columns, Part::Discard, &[Part::Discard]),
        size(&figures, columns, Part::All, &[Part::Read, Part::Write]),
        size(&figures, columns, Part::All, &[Part::All]),
        merged_share(&figures, Part::Read),
        merged_share(&figures, Part::Write),
        service(&figures),
        wait(&figures),
        busy(&figures),
        is_idle_without_bytes(&figures, Part::Read),
        is_idle_without_bytes(&figures, Part::Write),
        same_in_two_units(columns, row),
    ];
    let tests = relations.iter().flatten().count() as u64;
    let passed = relations.iter().flatten().filter(|holds| **holds).count() as u64;
    (tests, passed)
}

/// True if two figures are equal except for rounding.
fn nearly_equal(a: f64, b: f64, relative: f64, absolute: f64) -> bool {
    (a - b).abs() <= relative * a.abs().max(b.abs()) + absolute
}

/// True if a mean size equals the bytes of its parts divided by their requests.
fn size(figures: &Figures, columns: &Columns, of: Part, parts: &[Part]) -> Option<bool> {
    let stated = figures.get(of, Figure::Size)?;
    let sum = |figure| parts.iter().map(|part| figures.get(*part, figure)).sum();
    let (iops, bytes): (Option<f64>, Option<f64>) = (sum(Figure::Iops), sum(Figure::Bytes));
    let (iops, bytes) = (iops?, bytes?);
    // Rates are printed with two decimals; smaller ones cannot be checked.
    let hundredth = columns.list.iter().find_map(|column| match column {
        Column::Flow(_, Figure::Bytes, factor) => Some(factor * 0.01),
        _ => None,
    })?;
    let error = 0.01 / iops + hundredth / bytes;
    (iops > 0.0 && bytes > 0.0 && error < 0.1)
        .then(|| nearly_equal(stated, bytes / iops, error + 0.01, 6.0))
}

/// True if the merged share equals merged requests divided by merged and completed ones.
fn merged_share(figures: &Figures, part: Part) -> Option<bool> {
    let stated = figures.get(part, Figure::MergedShare)?;
    let merged = figures.get(part, Figure::Merged)?;
    let all = merged + figures.get(part, Figure::Iops)?;
    (merged >= 0.2).then(|| nearly_equal(stated, merged / all, 0.05, 0.001))
}

/// True if the service time equals the busy time divided by the requests.
fn service(figures: &Figures) -> Option<bool> {
    let stated = figures.service?;
    let requests =
        figures.get(Part::Read, Figure::Iops)? + figures.get(Part::Write, Figure::Iops)?;
    let busy = figures.busy?;
    (requests >= 1.0 && busy >= 0.01)
        .then(|| nearly_equal(stated, busy * 1e9 / requests, 0.05, 10_000.0))
}

/// True if no bytes are transferred although no requests complete; `None` if requests complete.
fn is_idle_without_bytes(figures: &Figures, part: Part) -> Option<bool> {
    let is_moved = figures.get(part, Figure::Bytes)? >= 4096.0;
    (figures.get(part, Figure::Iops)? == 0.0 && is_moved).then_some(false)
}

/// True if figures that are printed in two units agree: `rsec/s` and `rkB/s` of sysstat 5.
fn same_in_two_units(columns: &Columns, row: &[Number]) -> Option<bool> {
    let bytes = |(column, number): (&Column, &Number)| match column {
        Column::Flow(part, Figure::Bytes, factor) => Some((*part, number.value * factor, *factor)),
        _ => None,
    };
    let all: Vec<(Part, f64, f64)> = columns.list.iter().zip(row).filter_map(bytes).collect();
    let mut same = None;
    for (at, (part, one, factor)) in all.iter().enumerate() {
        for (_, other, by) in all[at + 1..].iter().filter(|(of, ..)| of == part) {
            let is_same = nearly_equal(*one, *other, 0.001, 0.01 * factor.max(*by));
            same = Some(same.unwrap_or(true) && is_same);
        }
    }
    same
}

/// True if the mean time of all requests lies between those of reads and writes.
fn wait(figures: &Figures) -> Option<bool> {
    let all = figures.get(Part::All, Figure::Wait)?;
    let mean = |part| {
        let iops = figures.get(part, Figure::Iops)?;
        Some((iops, iops * figures.get(part, Figure::Wait)?))
    };
    let (reads, read_time) = mean(Part::Read)?;
    let (writes, write_time) = mean(Part::Write)?;
    let requests = reads + writes;
    (requests >= 1.0 && all > 0.0)
        .then(|| nearly_equal(all, (read_time + write_time) / requests, 0.05, 20_000.0))
}

/// True if the busy time is a valid share, and a queue can hold the number of requests in flight.
fn busy(figures: &Figures) -> Option<bool> {
    let busy = figures.busy?;
    (busy > 0.0).then(|| busy <= 1.1 && figures.in_flight.is_none_or(|count| count < 1e5))
}

#[cfg(test)]
mod tests {
    use super::super::number::number;
    use super::*;

    fn rows(lines: &[&str]) -> Vec<Vec<Number>> {
        let row = |line: &&str| line.split_whitespace().filter_map(number).collect();
        lines.iter().map(row).collect()
    }

    #[test]
    fn all_sets_are_headers() {
        for (_, set) in SETS {
            let count = set.split(' ').count();
            assert!(candidates(count).all(|(_, columns)| columns.count() == count));
            assert!(candidates(count).all(|(_, columns)| columns.unknown().next().is_none()));
            assert!(candidates(count).next().is_some());
        }
    }

    #[test]
    fn the_unit_follows_from_the_sizes() {
        let guess = guess(&rows(&[
            "0.78 10.37 170.11 6.64 21847.84 134.89 124.37 2.06 11.65 0.74 13.05",
            "0.08 10.99 0.05 176.69 1.62 21980.59 124.38 4.82 27.30 1.04 18.36",
        ]))
        .unwrap();
        assert_eq!(guess.printed_by, "sysstat 6 to 10.0, -x");
        assert!(guess.columns.text().contains("rsec/s"));
    }

    #[test]
    fn a_unit_that_does_not_matter_leaves_nothing_open() {
        for (hangs, printed_by) in [
            (
                "0.00 0.00 0.00 0.00 0.00 0.00 0.00 7.00 0.00 0.00 100.00",
                "sysstat 6 to 10.0, -x",
            ),
            (
                "0.00 0.00 0.00 0.00 0.00 0.00 0.00 7.00 0.00 0.00 0.00 0.00 100.00",
                "sysstat 10.1 to 11.4, -x",
            ),
            (
                "0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 7.00 0.00 0.00 0.00 100.00",
                "sysstat 11.6 to 12.0, -x",
            ),
        ] {
            let guess = guess(&rows(&[hangs; 20])).unwrap();
            assert_eq!(guess.printed_by, printed_by);
        }
    }

    #[test]
    fn what_cannot_be_checked_is_not_guessed() {
        let idle = rows(&["0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00"; 20]);
        assert_eq!(guess(&idle), None);
        let basic = rows(&["18.89 209.75 135.41 995990159 642992550"; 20]);
        assert_eq!(guess(&basic), None);
        assert_eq!(candidates_text(&basic).len(), 6);
        let noise = rows(&["1 2 3 4 5 6 7 8 9 10 11 12 13"; 20]);
        assert_eq!(guess(&noise), None);
    }
}
