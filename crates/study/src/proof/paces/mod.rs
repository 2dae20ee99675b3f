//! The controller of background I/O against devices that queue.

mod model;

use model::{BLOCK, Case, Kind, Load, PacedRun, run};

use crate::pace::Targets;

/// Share of the latencies.
fn quantile(latencies: &[f64], share: f64) -> f64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (share * (sorted.len().max(1) - 1) as f64) as usize;
    sorted.get(at).copied().unwrap_or(0.0)
}

const CAPPED: Kind = Kind::Capped {
    cap: 3000.0,
    bucket_s: 0.005,
    per_block: 1.5,
    credits: f64::INFINITY,
};
/// Saves up a tenth of a second of what is not used.
const SAVING: Kind = Kind::Capped {
    cap: 3000.0,
    bucket_s: 0.1,
    per_block: 1.5,
    credits: f64::INFINITY,
};
const CREDIT: Kind = Kind::Capped {
    cap: 3000.0,
    bucket_s: 0.005,
    per_block: 1.5,
    credits: 150_000.0,
};
const SLICED: Kind = Kind::Sliced {
    cap: 3000.0,
    slice_s: 0.1,
    per_block: 1.5,
};
const ARRAY: Kind = Kind::Array {
    members: 4,
    iops: 400.0,
};
const NONE: Targets = Targets {
    mean_s: None,
    p99_s: None,
};

const fn case(name: &'static str, kind: Kind, load: Load) -> Case {
    Case {
        name,
        kind,
        load,
        scatter: 0.3,
        stalls: 0.0,
        outliers: 0.0,
        asked: NONE,
    }
}

const fn noisy(mut case: Case) -> Case {
    case.stalls = 6.0;
    case.scatter = 0.6;
    case
}

const fn outliers(mut case: Case) -> Case {
    case.outliers = 0.02;
    case
}

const fn keeps_p99(mut case: Case, p99_s: f64) -> Case {
    case.asked.p99_s = Some(p99_s);
    case
}

const CASES: [Case; 25] = [
    case("capped, open 10 %", CAPPED, Load::Open(0.1)),
    case("capped, open 30 %", CAPPED, Load::Open(0.3)),
    case("capped, open 60 %", CAPPED, Load::Open(0.6)),
    case("capped, bursts", CAPPED, Load::Bursts(0.4, 3.0, 5.0)),
    case("capped, diurnal", CAPPED, Load::Diurnal(0.6, 60.0)),
    case("capped, 1 client", CAPPED, Load::Closed(1, 0.0)),
    case("capped, 16 clients", CAPPED, Load::Closed(16, 0.0)),
    case("capped, 8 thinking", CAPPED, Load::Closed(8, 0.01)),
    case("saving, open 30 %", SAVING, Load::Open(0.3)),
    case("sliced, open 10 %", SLICED, Load::Open(0.1)),
    case("sliced, open 30 %", SLICED, Load::Open(0.3)),
    case("sliced, 8 thinking", SLICED, Load::Closed(8, 0.01)),
    case("credits, open 10 %", CREDIT, Load::Open(0.1)),
    noisy(case("noisy, open 30 %", CAPPED, Load::Open(0.3))),
    outliers(case("outliers, open 30 %", CAPPED, Load::Open(0.3))),
    case("array, open 30 %", ARRAY, Load::Open(0.3)),
    case("array, open 60 %", ARRAY, Load::Open(0.6)),
    case("array, open 90 %", ARRAY, Load::Open(0.9)),
    case("array, diurnal", ARRAY, Load::Diurnal(0.6, 60.0)),
    case("array, 4 clients", ARRAY, Load::Closed(4, 0.0)),
    noisy(case("noisy array, 60 %", ARRAY, Load::Open(0.6))),
    keeps_p99(
        case("capped, 30 %, 2.5 ms", CAPPED, Load::Open(0.3)),
        0.0025,
    ),
    keeps_p99(case("capped, 60 %, 3 ms", CAPPED, Load::Open(0.6)), 0.003),
    keeps_p99(case("saving, 30 %, 20 ms", SAVING, Load::Open(0.3)), 0.02),
    keeps_p99(case("sliced, 30 %, 20 ms", SLICED, Load::Open(0.3)), 0.02),
];

/// Figures of one run.
#[derive(Clone, Copy, Debug)]
struct Figures {
    /// Throughput of the foreground, as a share of its throughput alone.
    throughput: f64,
    /// p99.9 as a multiple.
    p999: f64,
    p99: f64,
    /// Time, as a multiple of the time that the rest of the device allows.
    times: f64,
    /// Minimum number of bytes of the background in ten seconds.
    least: f64,
    /// Share of the windows of five seconds, after the first two, in which the p99 that was asked for was kept.
    kept: f64,
}

/// Share of the windows of five seconds, after the first two, whose p99 is within the target.
fn windows_kept(ran: &PacedRun, target_s: f64) -> f64 {
    let window = |made_s: f64| ((made_s - 2.0) / 5.0).floor() as i64;
    let requests: Vec<(i64, f64)> = ran
        .made_s
        .iter()
        .map(|made_s| window(*made_s))
        .zip(ran.latencies.iter().copied())
        .filter(|(window, _)| *window >= 0)
        .collect();
    let windows: Vec<f64> = requests
        .chunk_by(|a, b| a.0 == b.0)
        .map(|window| quantile(&window.iter().map(|one| one.1).collect::<Vec<_>>(), 0.99))
        .collect();
    let kept = windows.iter().filter(|p99_s| **p99_s <= target_s);
    kept.count() as f64 / windows.len().max(1) as f64
}

fn figures(case: &Case, seed: u64, seconds: f64) -> Figures {
    let alone = run(case, seed, seconds, false);
    let beside = run(case, seed, seconds, true);
    let done: f64 = beside.background.iter().sum();
    let spare = (1.0 - alone.used).max(0.0) * case.kind.device_rate() * seconds;
    let ratio = |share| quantile(&beside.latencies, share) / quantile(&alone.latencies, share);
    // From when it has learned.
    let tens = beside.background[10..].chunks_exact(10);
    Figures {
        throughput: beside.latencies.len() as f64 / alone.latencies.len() as f64,
        p999: ratio(0.999),
        p99: ratio(0.99),
        times: spare / done,
        least: tens
            .map(|ten| ten.iter().sum::<f64>())
            .fold(f64::INFINITY, f64::min),
        kept: windows_kept(&beside, case.asked.p99_s.unwrap_or(f64::INFINITY)),
    }
}

/// Throughput of half of the seeds.
const MEDIAN_THROUGHPUT: f64 = 0.97;
/// Share of the windows of half of the seeds in which a p99 that was asked for is kept, …
const KEPT: f64 = 0.95;
/// … and of few seeds, of which each has 24 windows: two that are missed are 0.92.
const KEPT_OF_FEW: f64 = 0.9;

/// Worst of these figures that is let pass: the throughput of any seed, p99.9 and times of half of the seeds.
struct Bounds {
    throughput: f64,
    p999: f64,
    times: f64,
}

/// A request of the background cannot be taken back: on a volume with a cap it occupies 0.5 ms, and the p99.9 of
/// the foreground alone is 2.5 ms. Credits that end make that 2.5 ms. A closed-loop foreground leaves nothing of
/// which it would not lose.
fn bounds(case: &Case) -> Bounds {
    let p999 = match (case.kind, case.load) {
        // What is kept is the p99 that was asked for.
        _ if !case.asked.is_empty() => f64::INFINITY,
        _ if case.name.starts_with("noisy") || case.outliers > 0.0 => 1.2,
        (Kind::Array { .. }, _) => 1.3,
        // Until the limit is known it is exceeded twice, which delays about a thousandth of the requests of two
        // minutes.
        (Kind::Sliced { .. }, Load::Open(share)) if share < 0.2 => 2.3,
        (Kind::Sliced { .. }, _) => 3.5,
        (Kind::Capped { credits, .. }, _) if credits.is_finite() => 6.0,
        // Behind a deep queue it is recognized after a quarter of a second.
        (_, Load::Bursts(..)) => 4.0,
        (_, Load::Open(share)) if share < 0.2 => 1.3,
        (_, Load::Closed(..)) => 1.4,
        _ => 2.5,
    };
    let times = match case.load {
        // At 90 % of load latency wins, and the speed is only reported.
        Load::Open(share) if share > 0.8 => f64::INFINITY,
        Load::Closed(..) | Load::Bursts(..) => f64::INFINITY,
        Load::Diurnal(..) if case.name.starts_with("array") => 4.0,
        _ if case.name.starts_with("noisy array") => 5.0,
        // Each time that the host stands still counts as harm.
        _ if case.name.starts_with("noisy") => 2.5,
        _ if case.name.starts_with("credits") => 3.0,
        _ => 2.0,
    };
    Bounds {
        throughput: 0.97,
        p999,
        times,
    }
}

/// The table of so many seeds, which asserts its bounds.
fn table(seeds: u64, seconds: f64, least_kept: f64) {
    println!(
        "{:<20} {:>10} {:>15} {:>15} {:>13} {:>8} {:>11}",
        "", "throughput", "p99.9", "p99", "times spare", "least", "kept"
    );
    let mut wrong = Vec::new();
    for case in &CASES {
        let all: Vec<Figures> = of_seeds(case, seeds, seconds);
        let of = |pick: fn(&Figures) -> f64, share: f64| {
            let picked: Vec<f64> = all.iter().map(pick).collect();
            quantile(&picked, share)
        };
        let throughput = of(|one| one.throughput, 0.0);
        let (p999, times) = (of(|one| one.p999, 0.5), of(|one| one.times, 0.5));
        let least = of(|one| one.least, 0.0) / BLOCK;
        let kept = of(|one| one.kept, 0.5);
        println!(
            "{:<20} {throughput:>10.3} {p999:>7.2} {:>7.2} {:>7.2} {:>7.2} {times:>6.2} {:>6.2} {least:>8.0} {kept:>6.2} {:>4.2}",
            case.name,
            of(|one| one.p999, 1.0),
            of(|one| one.p99, 0.5),
            of(|one| one.p99, 1.0),
            of(|one| one.times, 1.0),
            of(|one| one.kept, 0.0),
        );
        let bounds = bounds(case);
        let is_right = throughput >= bounds.throughput
            && of(|one| one.throughput, 0.5) >= MEDIAN_THROUGHPUT
            && p999 <= bounds.p999
            && times <= bounds.times
            && kept >= least_kept
            && least > 0.0;
        if !is_right {
            wrong.push(case.name);
        }
    }
    assert_eq!(wrong, [""; 0], "outside of their bounds");
}

fn of_seeds(case: &Case, seeds: u64, seconds: f64) -> Vec<Figures> {
    std::thread::scope(|scope| {
        let half = |odd: u64| {
            move || {
                (0..seeds)
                    .filter(|seed| seed % 2 == odd)
                    .map(|seed| figures(case, seed, seconds))
                    .collect::<Vec<_>>()
            }
        };
        let other = scope.spawn(half(1));
        let mut all = half(0)();
        all.extend(other.join().unwrap());
        all
    })
}

#[test]
fn a_foreground_of_any_kind_keeps_what_it_has() {
    table(4, 120.0, KEPT_OF_FEW);
}

#[test]
#[ignore = "long proof: make prove"]
fn table_of_background() {
    table(1000, 120.0, KEPT);
}
