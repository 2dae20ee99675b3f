//! The options to write for a job.

use record::{JobOptions, Pattern, PhaseSummary, RandomDistribution, Summary, TargetKind};

use super::details;

/// Format of the names of files that several clones share.
const FORM: &str = "disksmith.$filenum";

/// Options with which fio would do the same work as the phase: those that its tool was given, or else equivalent ones.
/// Empty if the work of the phase is not known, since fio has a default for each missing option.
pub(super) fn options(phase: &PhaseSummary, summary: &Summary) -> Vec<(String, String)> {
    let made_here = phase.work.options.is_empty();
    let mut options = match made_here {
        true => equivalent_options(phase),
        false => phase.work.options.clone(),
    };
    if options.is_empty() {
        return options;
    }
    if made_here && summary.target_kind == Some(TargetKind::Directory) {
        // All threads use the same files, while fio's clones would each have their own.
        let form = ("filename_format".to_owned(), FORM.to_owned());
        options.push(form);
    }
    options.retain(|(name, _)| name != "name");
    let is_given = |name: &str| options.iter().any(|(given, _)| given == name);
    let place = match summary.target_kind {
        Some(TargetKind::Directory) => "directory",
        _ => "filename",
    };
    let target = summary.target.clone();
    let target = target.filter(|_| !is_given("filename") && !is_given("directory"));
    let named = [
        Some(("name".to_owned(), phase.name.clone())),
        target.map(|target| (place.to_owned(), target)),
    ];
    named.into_iter().flatten().chain(options).collect()
}

/// Options equivalent to the work of a phase.
fn equivalent_options(phase: &PhaseSummary) -> Vec<(String, String)> {
    let work = &phase.work;
    let (Some(pattern), Some(reads)) = (work.pattern, work.read_fraction) else {
        return Vec::new();
    };
    let mut options: Vec<(String, String)> = Vec::new();
    let mut given = |name: &str, value: Option<String>| {
        options.extend(value.map(|value| (name.to_owned(), value)));
    };
    let details = work.details.as_deref();
    let split = details.and_then(details::split);
    let mixed = reads > 0.0 && reads < 1.0;
    let number = |flag: bool| u8::from(flag).to_string();
    let set = |flag: bool| flag.then(|| number(true));
    given("ioengine", work.engine.clone());
    given("rw", Some(rw(pattern, reads).to_owned()));
    given("rwmixread", mixed.then(|| format!("{:.0}", reads * 100.0)));
    let block = work.block.filter(|_| split.is_none());
    given("bs", block.map(|block| block.0.to_string()));
    given("bssplit", split);
    given("iodepth", work.depth.map(|depth| depth.to_string()));
    given("numjobs", work.threads.map(|threads| threads.to_string()));
    given("size", work.span.map(|span| span.0.to_string()));
    given("direct", work.direct.map(number));
    let clones = work.threads.unwrap_or(1).max(1);
    let rate = work.rate_per_s.filter(|rate| *rate > 0.0);
    given("rate_iops", rate.map(|rate| rate_of(rate, reads, clones)));
    let every = work.sync_every.filter(|every| *every > 0);
    let call = match details {
        Some(details) if details.full_sync => "fsync",
        _ => "fdatasync",
    };
    given(call, every.map(|every| every.to_string()));
    given("end_fsync", set(work.sync_at_end == Some(true)));
    if let Some(details) = details {
        let even = rate.is_some() && !details.even_rate;
        given("rate_process", even.then(|| "poisson".to_owned()));
        let files = Some(details.files).filter(|files| *files > 1);
        given("nrfiles", files.map(|files| files.to_string()));
        let offset = Some(details.offset.0).filter(|offset| *offset > 0);
        given("offset", offset.map(|offset| offset.to_string()));
        let drawn = pattern == Pattern::Random;
        given(
            "random_distribution",
            distribution(details).filter(|_| drawn),
        );
        given(
            "norandommap",
            set(drawn && details.spread == RandomDistribution::Uniform),
        );
    }
    given("group_reporting", set(true));
    options
}

/// `rate_iops` of each clone, in whole requests; for reads and for writes separately if a job does both.
fn rate_of(rate: f64, reads: f64, clones: u32) -> String {
    let each = |share: f64| ((rate * share / f64::from(clones)).round() as u64).max(1);
    match reads > 0.0 && reads < 1.0 {
        true => format!("{},{}", each(reads), each(1.0 - reads)),
        false => each(1.0).to_string(),
    }
}

fn distribution(details: &JobOptions) -> Option<String> {
    match details.spread {
        RandomDistribution::Uniform | RandomDistribution::Once => None,
        RandomDistribution::Zipf(theta) => Some(format!("zipf:{theta}")),
        RandomDistribution::Pareto(h) => Some(format!("pareto:{h}")),
        RandomDistribution::Normal(deviation) => Some(format!("normal:{}", deviation * 100.0)),
    }
}

fn rw(pattern: Pattern, reads: f64) -> &'static str {
    match (pattern, reads) {
        (Pattern::Random, r) if r >= 1.0 => "randread",
        (Pattern::Random, r) if r <= 0.0 => "randwrite",
        (Pattern::Random, _) => "randrw",
        (Pattern::Sequential, r) if r >= 1.0 => "read",
        (Pattern::Sequential, r) if r <= 0.0 => "write",
        (Pattern::Sequential, _) => "rw",
    }
}
