//! PostgreSQL: cost of reads, concurrent reads, and shared buffers.

use crate::check::{Area, Basis, Check, Judgement, of_postgres};
use crate::facts::Facts;
use crate::facts::postgres::Postgres;
use record::Bytes;
use ui::format::{number, percent};

/// Share of random reads that are found in memory, from the manual.
const CACHED_READ_SHARE: f64 = 0.9;
/// Bounds of the recommended random_page_cost: slightly above that of a sequential read, and the default.
const RANDOM_PAGE_COST_BOUNDS: (f64, f64) = (1.1, 4.0);
/// Factor by which a setting must deviate to change plans.
const MIN_DEVIATION_FACTOR: f64 = 1.6;
/// Size of a page, in bytes.
const PAGE: f64 = 8192.0;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "random-page-cost",
        area: Area::Postgres,
        reads: "random_page_cost, seq_page_cost, pg_stat_database",
        rule: "The measured cost of a random page by that of a sequential one, times the share that is not found in memory \
               (a tenth, or as counted), from 1.1 to 4: the manual's 4 stands for 40 times as dear and 90 % in memory.",
        source: "PostgreSQL, random_page_cost",
        basis: Basis::Inferred,
        playbook: "postgres-plans",
        judge: |facts| of_postgres(facts, random_page_cost),
    },
    Check {
        name: "effective-io-concurrency",
        area: Area::Postgres,
        reads: "effective_io_concurrency",
        rule: "Reads at once with which random reads were measured to reach nine tenths of their highest rate.",
        source: "PostgreSQL, effective_io_concurrency",
        basis: Basis::Inferred,
        playbook: "postgres-plans",
        judge: |facts| of_postgres(facts, concurrency),
    },
    Check {
        name: "shared-buffers",
        area: Area::Postgres,
        reads: "shared_buffers, pg_stat_database, MemTotal",
        rule: "About a quarter of memory where the databases are larger than it, and at most 40 %.",
        source: "PostgreSQL, shared_buffers",
        basis: Basis::Documented,
        playbook: "buffer-pool",
        judge: |facts| of_postgres(facts, shared_buffers),
    },
    Check {
        name: "io-method",
        area: Area::Postgres,
        reads: "io_method (PostgreSQL 18 and later)",
        rule: "worker or io_uring: with sync every read waits for the one before.",
        source: "PostgreSQL, io_method",
        basis: Basis::Documented,
        playbook: "postgres-plans",
        judge: |facts| of_postgres(facts, io_method),
    },
];

fn random_page_cost(facts: &Facts, postgres: &Postgres) -> Option<Judgement> {
    let now = postgres.number("random_page_cost")?;
    let sequential = postgres.number("seq_page_cost").unwrap_or(1.0).max(0.01);
    let value = format!("random_page_cost: {now}, seq_page_cost: {sequential}");
    if now < sequential {
        return Some(
            Judgement::fix(
                value,
                "A random read costs at least what a sequential one does.",
            )
            .command(format!(
                "ALTER SYSTEM SET random_page_cost = {}",
                sequential * RANDOM_PAGE_COST_BOUNDS.0
            )),
        );
    }
    let names = facts.host.names_of("data");
    let measured = facts
        .evidence
        .random_reads(&names)
        .zip(facts.evidence.read_rate(&names));
    let Some((random, stream)) = measured else {
        return Some(Judgement::unknown(
            value,
            format!(
                "Measure random and sequential reads: disksmith bench {} --phase page-read,scan. Until then 1.1 is usual \
                 on SSDs, and 4 on disks that rotate.",
                facts.host.data_path()
            ),
        ));
    };
    let ratio = stream.value / PAGE / random.value;
    let missed = 1.0 - postgres.hit_share().unwrap_or(CACHED_READ_SHARE);
    let wanted =
        (ratio * missed).clamp(RANDOM_PAGE_COST_BOUNDS.0, RANDOM_PAGE_COST_BOUNDS.1) * sequential;
    let evidence = format!(
        "{}; {}",
        random.cite("random reads a second"),
        stream
            .times(1.0 / (1 << 20) as f64)
            .cite("MiB/s of sequential reads")
    );
    let value = format!(
        "{value}; measured: {} times as dear, {} not in memory",
        number(ratio),
        percent(missed)
    );
    let is_off = now / wanted > MIN_DEVIATION_FACTOR || wanted / now > MIN_DEVIATION_FACTOR;
    Some(
        match is_off {
            true => Judgement::consider(value, "Index scans are planned by it: compare the plans of your queries before and after.")
                .command(format!("ALTER SYSTEM SET random_page_cost = {wanted:.1}; SELECT pg_reload_conf()")),
            false => Judgement::ok(value),
        }
        .evidence(evidence),
    )
}

fn concurrency(facts: &Facts, postgres: &Postgres) -> Option<Judgement> {
    let now = postgres.number("effective_io_concurrency")?;
    let value = format!("effective_io_concurrency: {now}");
    let Some((knee, is_deepest)) = facts.evidence.read_knee(&facts.host.names_of("data")) else {
        return Some(Judgement::unknown(
            value,
            format!(
                "Measure at which depth reads stop getting faster: for d in 1 4 16 64 256; do disksmith bench {} --phase \
                 page-read --depth $d; done. The default is 1 before PostgreSQL 18, and 16 from then on.",
                facts.host.data_path()
            ),
        ));
    };
    let wanted = knee.value.clamp(1.0, 1000.0);
    let evidence = match is_deepest {
        true => format!(
            "{}, the largest depth that was measured",
            knee.cite("reads at once")
        ),
        false => knee.cite("reads at once"),
    };
    let is_low = now * 2.0 < wanted;
    let is_high = now > wanted * 8.0 && !is_deepest;
    Some(
        match () {
            () if is_low => Judgement::consider(value, "Bitmap heap scans, and from PostgreSQL 17 on all reads ahead, leave the disk idle."),
            () if is_high => Judgement::consider(value, "More reads at once than the disk serves only make each wait longer."),
            () => return Some(Judgement::ok(value).evidence(evidence)),
        }
        .evidence(evidence)
        .command(format!("ALTER SYSTEM SET effective_io_concurrency = {wanted}; SELECT pg_reload_conf()")),
    )
}

fn shared_buffers(facts: &Facts, postgres: &Postgres) -> Option<Judgement> {
    let now = postgres.quantity("shared_buffers")?;
    let memory = facts.host.memory.filter(|_| postgres.folder.is_some())?.0 as f64;
    let data = postgres.statistics.bytes.unwrap_or(0.0);
    let value = format!(
        "shared_buffers: {} of {} of memory, databases of {}",
        Bytes(now as u64),
        Bytes(memory as u64),
        Bytes(data as u64)
    );
    let wanted = (memory / 4.0).min(data.max(128.0 * 1_048_576.0));
    Some(
        match () {
            () if now > memory * 0.4 => Judgement::consider(
                value,
                "The page cache, which PostgreSQL also reads through, has little left.",
            ),
            () if now < wanted * 0.5 => Judgement::consider(
                value,
                "Raise it towards a quarter of memory; it needs a restart.",
            ),
            () => return Some(Judgement::ok(value)),
        }
        .command(format!(
            "ALTER SYSTEM SET shared_buffers = '{}MB'",
            (wanted / 1_048_576.0) as u64
        )),
    )
}

fn io_method(_: &Facts, postgres: &Postgres) -> Option<Judgement> {
    let now = postgres.text("io_method")?;
    let value = format!("io_method: {now}");
    Some(match now {
        "sync" => Judgement::consider(
            value,
            "Let reads run beside each other; it needs a restart.",
        )
        .command("ALTER SYSTEM SET io_method = 'worker'"),
        _ => Judgement::ok(value),
    })
}
