//! Writes a line of Bonnie++'s CSV, format 1.98.

use record::{Activity, Bytes, FlowSummary, PhaseSummary, Summary};

use super::{CHUNK, DATA_TESTS, FILE_OPTIONS, OWN_VERSION_PREFIX, RUN_OPTIONS, TESTS, Test, Unit};
use crate::WriteError;

/// The line, without a heading, as `bonnie++ -q` prints it.
pub(crate) fn line(summary: &Summary) -> Result<String, WriteError> {
    let found: Vec<Option<&PhaseSummary>> = TESTS
        .iter()
        .map(|test| {
            let named = |phase: &&PhaseSummary| phase.name == test.name;
            let mut phases = summary
                .phases
                .iter()
                .filter(|phase| flow(phase, test).is_some());
            let named = phases.clone().find(named);
            named.or_else(|| phases.find(|phase| is_like(phase, test)))
        })
        .collect();
    if found.iter().all(Option::is_none) {
        return Err(WriteError::no_place("Bonnie++", summary));
    }
    // A summary read from a line of Bonnie++ is written with the original options.
    let was_read = !summary.options.is_empty();
    let given = |name: &str| {
        let mut all = summary.options.iter();
        all.find(|(given, _)| given == name)
            .map_or(String::new(), |(_, value)| field(value))
    };
    let mut fields = vec![
        "1.98".to_owned(),
        field(summary.tool.trim_start_matches("bonnie++ ")).replace(' ', "-"),
        field(summary.host.as_deref().unwrap_or_default()),
    ];
    fields.extend(match was_read {
        true => RUN_OPTIONS.map(given),
        false => run_options(summary, &found),
    });
    for (index, (test, phase)) in TESTS.iter().zip(&found).enumerate() {
        if index == DATA_TESTS {
            fields.extend(match was_read {
                true => FILE_OPTIONS.map(given),
                false => file_options(*phase),
            });
        }
        fields.push(phase.map_or(String::new(), |phase| rate(phase, test)));
        fields.push(phase.map_or(String::new(), cpu));
    }
    let latencies = TESTS.iter().zip(&found).map(|(test, phase)| {
        let nanos = phase.and_then(|phase| flow(phase, test)?.latency.max_ns);
        nanos.map_or(String::new(), latency)
    });
    fields.extend(latencies);
    Ok(format!("{}\n", fields.join(",")))
}

/// Options of a run that was not read from a line of Bonnie++. The file's size and the block are those of the tests
/// of blocks: tests of single bytes transfer a part of the file, and small files have sizes of their own.
fn run_options(summary: &Summary, found: &[Option<&PhaseSummary>]) -> [String; 6] {
    let bytewise = |phase: &PhaseSummary, test: &Test| {
        test.name.starts_with("char-") && phase.work.block == Some(Bytes(1))
    };
    let data = TESTS[..DATA_TESTS]
        .iter()
        .zip(found)
        .find_map(|(test, phase)| phase.filter(|phase| !bytewise(phase, test)));
    let seeks = |phase: &PhaseSummary, test: &Test| match test.name {
        "seeks" => flow(phase, test)?.ops,
        _ => None,
    };
    // The number of seekers, if known, has a field of its own.
    let threads = TESTS
        .iter()
        .zip(found)
        .filter_map(|(test, phase)| phase.filter(|phase| seeks(phase, test).is_none()))
        .find_map(|phase| phase.work.threads);
    let seeker = found[DATA_TESTS - 1];
    let count = seeker.and_then(|phase| seeks(phase, &TESTS[DATA_TESTS - 1]));
    let seekers = seeker.and_then(|phase| phase.work.threads);
    let span = data.and_then(|phase| phase.work.span);
    let block = data.and_then(|phase| phase.work.block);
    [
        text(threads),
        seed(summary),
        text(span.map(|span| format!("{}M", span.0 >> 20))),
        text(block.filter(|block| *block != CHUNK).map(|block| block.0)),
        text(count),
        text(seekers.filter(|_| count.is_some())),
    ]
}

/// Options of the tests of small files. The sizes of the files are not known here.
fn file_options(phase: Option<&PhaseSummary>) -> [String; 5] {
    let files = phase.and_then(|phase| phase.work.files);
    // In units of 1024, as Bonnie++ counts them.
    let thousands = text(files.map(|files| f64::from(files) / 1024.0));
    let mut options = [const { String::new() }; 5];
    options[0] = thousands;
    options
}

/// Field for a value; empty if it is unknown.
fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// The seed: for a run of this program, its start in seconds since 1970.
fn seed(summary: &Summary) -> String {
    let is_own = summary
        .tool
        .starts_with(OWN_VERSION_PREFIX.trim_end_matches('-'));
    let began = summary.ran.filter(|_| is_own);
    text(began.map(|began| began.as_second()))
}

/// A text in which commas and control characters are replaced, since the format has no quotes.
fn field(text: &str) -> String {
    text.replace(|c: char| c == ',' || c.is_control(), "_")
}

/// True if a phase, whose name is not one of Bonnie++'s, does the same I/O as the test. Small sequential writes with a
/// sync after each are a log, which Bonnie++ does not test.
fn is_like(phase: &PhaseSummary, test: &Test) -> bool {
    let named = TESTS.iter().any(|test| test.name == phase.name);
    let work = &phase.work;
    let alike = match test.name {
        "block-write" => work.read_fraction == Some(0.0) && work.sync_every.unwrap_or(0) == 0,
        "block-read" => work.read_fraction == Some(1.0),
        "seeks" => work.read_fraction == Some(1.0) && work.rate_per_s.unwrap_or(0.0) == 0.0,
        _ => false,
    };
    alike && !named && work.pattern == test.pattern
}

/// The flow from which a test's figures are taken.
fn flow<'a>(phase: &'a PhaseSummary, test: &Test) -> Option<&'a FlowSummary> {
    let of = |activity| phase.flows.iter().find(|flow| flow.activity == activity);
    match test.name {
        // Random reads alone are a seek test without the writes.
        "seeks" => of(Activity::All).or_else(|| of(Activity::Read)),
        _ => of(test.activity),
    }
}

fn rate(phase: &PhaseSummary, test: &Test) -> String {
    let Some(flow) = flow(phase, test) else {
        return String::new();
    };
    if flow.too_fast {
        return "+++++".to_owned();
    }
    let rate = match test.unit {
        Unit::Kib => flow.bytes_per_s.map(|bytes| bytes / 1024.0),
        Unit::Each => flow.ops_per_s,
    };
    // Only seeks have decimals, for four digits in total.
    let digits = match rate {
        Some(rate) if test.name == "seeks" && rate < 1000.0 => 3 - rate.max(1.0).log10() as usize,
        _ => 0,
    };
    rate.map_or(String::new(), |rate| format!("{rate:.digits$}"))
}

fn cpu(phase: &PhaseSummary) -> String {
    let cpu = &phase.cpu;
    let both = cpu.user.zip(cpu.system).map(|(user, system)| user + system);
    let flow = phase.flows.first();
    match cpu.total.or(both) {
        Some(share) => format!("{:.0}", share * 100.0),
        None if flow.is_some_and(|flow| flow.too_fast) => "+++".to_owned(),
        None => String::new(),
    }
}

/// Formats a latency in the unit that Bonnie++ chooses (`bon_time.cpp`): microseconds below 0.1 s, milliseconds below
/// 100 s.
fn latency(nanos: f64) -> String {
    match nanos {
        n if n > 99.999_999e9 => format!("{:.0}s", n / 1e9),
        n if n > 0.099_999e9 => format!("{:.0}ms", n / 1e6),
        n => format!("{:.0}us", n / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_has_the_unit_that_bonnie_gives_it() {
        for (us, written) in [
            (32_000.0, "32000us"),
            (99_999.0, "99999us"),
            (100_000.0, "100ms"),
            (99_999_000.0, "99999ms"),
            (100_000_000.0, "100s"),
        ] {
            assert_eq!(latency(us * 1e3), written);
        }
    }
}
