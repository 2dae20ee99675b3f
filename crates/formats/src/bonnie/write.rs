//! Writes a line of Bonnie++'s CSV, format 1.98.

use record::{Activity, Bytes, FlowSummary, PhaseSummary, Summary};

use super::{CHUNK, DATA_TESTS, OWN, TESTS, Test, Unit};
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
    let mut fields = head(summary, &found);
    if let Some(seeks) = found[DATA_TESTS - 1] {
        let count = flow(seeks, &TESTS[DATA_TESTS - 1]).and_then(|flow| flow.ops);
        fields[7] = count.map_or(String::new(), |count| count.to_string());
        let threads = seeks.work.threads.filter(|_| count.is_some());
        fields[8] = threads.map_or(String::new(), |threads| threads.to_string());
    }
    for (index, (test, phase)) in TESTS.iter().zip(&found).enumerate() {
        if index == DATA_TESTS {
            // How large they were is not known here.
            fields.push(phase.map_or(String::new(), thousands_of_files));
            fields.extend([const { String::new() }; 4]);
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

/// The fields before the rates. The file's size and the block are those of the tests of blocks:
/// tests of single bytes move a part of the file, and small files have sizes of their own.
fn head(summary: &Summary, found: &[Option<&PhaseSummary>]) -> Vec<String> {
    let bytewise = |phase: &PhaseSummary, test: &Test| {
        test.name.starts_with("char-") && phase.work.block == Some(Bytes(1))
    };
    let data = TESTS[..DATA_TESTS]
        .iter()
        .zip(found)
        .find_map(|(test, phase)| phase.filter(|phase| !bytewise(phase, test)));
    // Seekers that are known have a field of their own.
    let counted = |phase: &PhaseSummary, test: &Test| {
        test.name == "seeks" && flow(phase, test).is_some_and(|flow| flow.ops.is_some())
    };
    let threads = TESTS
        .iter()
        .zip(found)
        .filter_map(|(test, phase)| phase.filter(|phase| !counted(phase, test)))
        .find_map(|phase| phase.work.threads);
    let span = data.and_then(|phase| phase.work.span);
    let block = data.and_then(|phase| phase.work.block);
    vec![
        "1.98".to_owned(),
        field(summary.tool.trim_start_matches("bonnie++ ")).replace(' ', "-"),
        field(summary.host.as_deref().unwrap_or_default()),
        threads.map_or(String::new(), |threads| threads.to_string()),
        seed(summary),
        span.map_or(String::new(), |span| format!("{}M", span.0 >> 20)),
        block
            .filter(|block| *block != CHUNK)
            .map_or(String::new(), |block| block.0.to_string()),
        String::new(),
        String::new(),
    ]
}

/// The seed: of a run of our own its start, in seconds, which Bonnie++ mixes with the number of its process.
fn seed(summary: &Summary) -> String {
    let is_own = summary.tool.starts_with(OWN.trim_end_matches('-'));
    let began = summary.ran.filter(|_| is_own);
    began.map_or(String::new(), |began| began.as_second().to_string())
}

/// Number of small files, in units of 1024 as Bonnie++ has them.
fn thousands_of_files(phase: &PhaseSummary) -> String {
    let files = phase.work.files.map(|files| f64::from(files) / 1024.0);
    files.map_or(String::new(), |files| files.to_string())
}

/// A text that ends neither its field nor its line: the format has no quotes.
fn field(text: &str) -> String {
    text.replace(|c: char| c == ',' || c.is_control(), "_")
}

/// True if a phase without a name of Bonnie++'s does the same to blocks of files as the test. Small
/// sequential writes with a sync behind each are a log, and nothing that Bonnie++ has.
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

/// The flow that a test's figure is of.
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
    // Only seeks have digits behind the point, so that there are four in all.
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

/// With the unit that Bonnie++ chooses: microseconds below 0.1 s, milliseconds below 100 s.
fn latency(nanos: f64) -> String {
    match nanos {
        n if n > 99.999_999e9 => format!("{:.0}s", n / 1e9),
        n if n > 0.099_999e9 => format!("{:.0}ms", n / 1e6),
        n => format!("{:.0}us", n / 1e3),
    }
}
