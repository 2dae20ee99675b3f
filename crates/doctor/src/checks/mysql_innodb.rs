//! InnoDB: flushing, pages, redo log and buffer pool.

use crate::check::{Area, Basis, Check, Judgement, of_mysql};
use crate::facts::Facts;
use crate::facts::mysql::Mysql;
use record::Bytes;
use ui::format::{number, percent};

/// Number of writes per page: the page itself, and its copy in the doublewrite buffer.
const WRITES_PER_PAGE: f64 = 2.0;
/// Share of the disk's sustained write rate below which io_capacity leaves most of it unused.
const LOW_IO_CAPACITY_SHARE: f64 = 0.05;
/// Minimum io_capacity that the server accepts.
const MIN_IO_CAPACITY: f64 = 100.0;
/// Duration of writes that the redo log should hold, in seconds.
const REDO_S: f64 = 3600.0;
/// Size, in bytes, from which a redo log is large enough for a small buffer pool.
const LARGE_REDO: f64 = 1024.0 * MIB;
const MIB: f64 = (1 << 20) as f64;
/// Minimum number of page requests for a meaningful hit rate.
const MIN_PAGE_REQUESTS: f64 = 100_000.0;
/// Hit rate below which queries wait for the disk, if reads from it are frequent enough.
const LOW_HIT_RATE: f64 = 0.99;
/// Minimum rate of reads from the disk, per second, for a finding.
const MIN_READS_PER_S: f64 = 1.0;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "innodb-io-capacity",
        area: Area::Mysql,
        reads: "innodb_io_capacity, innodb_io_capacity_max",
        rule: "innodb_io_capacity_max is at most the random 16 KiB writes a second that the disk was measured to sustain, \
               by two with the doublewrite buffer, and innodb_io_capacity about half of that.",
        source: "MySQL Reference Manual, \"Configuring InnoDB I/O Capacity\"",
        basis: Basis::Inferred,
        playbook: "innodb-flushing",
        judge: |facts| of_mysql(facts, io_capacity),
    },
    Check {
        name: "innodb-flush-method",
        area: Area::Mysql,
        reads: "innodb_flush_method, innodb_data_file_buffering",
        rule: "O_DIRECT, so that pages are not in memory twice; nosync and littlesync never; O_DIRECT_NO_FSYNC not on XFS \
               before MySQL 8.0.14.",
        source: "MySQL Reference Manual, innodb_flush_method; MariaDB documentation, innodb_flush_method",
        basis: Basis::Documented,
        playbook: "innodb-flushing",
        judge: |facts| of_mysql(facts, flush_method),
    },
    Check {
        name: "innodb-flush-neighbors",
        area: Area::Mysql,
        reads: "innodb_flush_neighbors",
        rule: "0 on disks that do not rotate: writing neighbours saves seeks, and costs IOPS.",
        source: "MySQL Reference Manual, innodb_flush_neighbors",
        basis: Basis::Documented,
        playbook: "innodb-flushing",
        judge: |facts| of_mysql(facts, neighbors),
    },
    Check {
        name: "innodb-native-aio",
        area: Area::Mysql,
        reads: "innodb_use_native_aio",
        rule: "ON: without it a thread waits for each request.",
        source: "MySQL Reference Manual, innodb_use_native_aio",
        basis: Basis::Documented,
        playbook: "io-setup-eagain",
        judge: |facts| of_mysql(facts, native_aio),
    },
    Check {
        name: "innodb-page-size",
        area: Area::Mysql,
        reads: "innodb_page_size, /sys/block/mdX/md/chunk_size",
        rule: "A page lies within one chunk of a striped array.",
        source: "md(4), RAID0",
        basis: Basis::Inferred,
        playbook: "alignment",
        judge: |facts| of_mysql(facts, page_size),
    },
    Check {
        name: "innodb-doublewrite",
        area: Area::Mysql,
        reads: "innodb_doublewrite, /sys/block/DEVICE/queue/atomic_write_unit_max_bytes",
        rule: "ON, unless every device below writes a page at once (atomic_write_unit_max_bytes) and O_DIRECT is used.",
        source: "MySQL Reference Manual, innodb_doublewrite; Amazon EBS User Guide, \"Torn write prevention\"",
        basis: Basis::Documented,
        playbook: "torn-pages",
        judge: |facts| of_mysql(facts, doublewrite),
    },
    Check {
        name: "innodb-redo-size",
        area: Area::Mysql,
        reads: "Innodb_redo_log_capacity_resized, innodb_redo_log_capacity or innodb_log_file_size, Innodb_os_log_written",
        rule: "The redo log holds an hour of writes, or is as large as the buffer pool and 1 GiB, so that pages are flushed \
               steadily and not because it is full.",
        source: "Percona, \"How to calculate a good InnoDB log file size\"; MySQL Reference Manual, \"Optimizing InnoDB Redo \
                 Logging\"",
        basis: Basis::Inferred,
        playbook: "innodb-flushing",
        judge: |facts| of_mysql(facts, redo_size),
    },
    Check {
        name: "innodb-buffer-pool",
        area: Area::Mysql,
        reads: "innodb_buffer_pool_size, Innodb_buffer_pool_reads",
        rule: "99 % of page requests are answered from memory where memory is left, or less than one a second is not, and \
               the pool leaves a tenth of memory.",
        source: "MySQL Reference Manual, \"The InnoDB Buffer Pool\"",
        basis: Basis::Inferred,
        playbook: "buffer-pool",
        judge: |facts| of_mysql(facts, buffer_pool),
    },
];

fn io_capacity(facts: &Facts, mysql: &Mysql) -> Option<Judgement> {
    let low = mysql.number("innodb_io_capacity")?;
    let high = mysql.number("innodb_io_capacity_max")?;
    let value = format!(
        "innodb_io_capacity: {}, _max: {}",
        number(low),
        number(high)
    );
    let Some(writes) = facts.evidence.page_writes(&facts.host.names_of("data")) else {
        return Some(Judgement::unknown(
            value,
            format!(
                "What the disk sustains is not known: disksmith bench {} --phase page-write. Until then the default of \
                 MySQL 8.0 and MariaDB, 200, suits disks that rotate, and that of MySQL 8.4, 10,000, local SSDs.",
                facts.host.data_path()
            ),
        ));
    };
    let is_double = mysql
        .variable("innodb_doublewrite")
        .is_none_or(|text| text != "OFF" && text != "0");
    let budget = if is_double {
        writes.value / WRITES_PER_PAGE
    } else {
        writes.value
    };
    let (wanted_low, wanted_high) = (rounded(budget / 2.0), rounded(budget));
    let command = format!(
        "SET GLOBAL innodb_io_capacity_max = {wanted_high}; SET GLOBAL innodb_io_capacity = {wanted_low}; \
         SET GLOBAL innodb_io_capacity_max = {wanted_high}"
    );
    let judged = match () {
        () if low > writes.value.max(MIN_IO_CAPACITY) => Judgement::consider(
            value,
            "Background flushing alone may exceed what the disk can do, and reads then wait behind it.",
        ),
        () if high > writes.value.max(MIN_IO_CAPACITY) => Judgement::consider(
            value,
            "When the redo log fills, flushing exceeds what the disk can do, and reads wait behind it.",
        ),
        () if low < budget * LOW_IO_CAPACITY_SHARE => Judgement::consider(
            value,
            "Most of the disk's writes are left unused until the redo log is nearly full, and then used at once.",
        ),
        () => return Some(Judgement::ok(value).evidence(writes.cite("writes of 16 KiB a second"))),
    };
    Some(
        judged
            .evidence(writes.cite("writes of 16 KiB a second"))
            .command(command),
    )
}

/// Rounds down to two significant digits, but not below [`MIN_IO_CAPACITY`].
fn rounded(value: f64) -> u64 {
    let value = value.max(MIN_IO_CAPACITY);
    let step = 10_f64.powf(value.log10().floor() - 1.0);
    ((value / step).floor() * step) as u64
}

fn flush_method(facts: &Facts, mysql: &Mysql) -> Option<Judgement> {
    // MariaDB 11 has separate settings instead.
    if let Some(is_buffered) = mysql.is_on("innodb_data_file_buffering") {
        let value = format!(
            "innodb_data_file_buffering: {}",
            if is_buffered { "ON" } else { "OFF" }
        );
        return Some(match is_buffered {
            true => Judgement::consider(
                value,
                "Pages are in memory twice: in the buffer pool and in the page cache.",
            )
            .command("innodb_data_file_buffering = OFF in my.cnf, and a restart"),
            false => Judgement::ok(value),
        });
    }
    let now = mysql.variable("innodb_flush_method")?;
    let value = format!(
        "innodb_flush_method: {}",
        if now.is_empty() { "fsync" } else { now }
    );
    let is_xfs = facts.host.folders.iter().any(|folder| {
        folder
            .place
            .mount
            .as_ref()
            .is_some_and(|mount| mount.kind == "xfs")
    });
    let syncs_sizes = !mysql.is_mariadb() && mysql.variable("version").is_some_and(syncs_new_sizes);
    Some(match now {
        "nosync" | "littlesync" => Judgement::fix(
            value,
            "It writes without syncs, for tests only: a crash of the host loses data.",
        )
        .command("innodb_flush_method = O_DIRECT in my.cnf, and a restart"),
        "O_DIRECT_NO_FSYNC" if is_xfs && !syncs_sizes => Judgement::fix(
            value,
            "On XFS the size of a file that grew is lost without fsync.",
        )
        .command("innodb_flush_method = O_DIRECT in my.cnf, and a restart"),
        "O_DIRECT" | "O_DIRECT_NO_FSYNC" => Judgement::ok(value),
        _ => Judgement::consider(
            value,
            "Pages are in memory twice: in the buffer pool and in the page cache.",
        )
        .command("innodb_flush_method = O_DIRECT in my.cnf, and a restart"),
    })
}

/// True for versions that sync a file after it has grown: MySQL 8.0.14 and later.
fn syncs_new_sizes(version: &str) -> bool {
    let mut parts = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next()) >= (8, 0, 14)
}

fn neighbors(facts: &Facts, mysql: &Mysql) -> Option<Judgement> {
    let now = mysql.variable("innodb_flush_neighbors")?;
    let disks = facts.host.disks();
    let rotates = disks.iter().any(|disk| disk.rotational == Some(true));
    let value = format!("innodb_flush_neighbors: {now}");
    Some(match (now, disks.is_empty() || rotates) {
        ("0" | "OFF", _) | (_, true) => Judgement::ok(value),
        _ => Judgement::consider(
            value,
            "The disks do not rotate: write only the pages that must be.",
        )
        .command("SET GLOBAL innodb_flush_neighbors = 0"),
    })
}

fn native_aio(_: &Facts, mysql: &Mysql) -> Option<Judgement> {
    let is_on = mysql.is_on("innodb_use_native_aio")?;
    Some(match is_on {
        true => Judgement::ok("innodb_use_native_aio: ON"),
        false => Judgement::consider(
            "innodb_use_native_aio: OFF",
            "Was it turned off because io_setup failed at the start? Raise fs.aio-max-nr, turn it on, and restart.",
        ),
    })
}

fn page_size(facts: &Facts, mysql: &Mysql) -> Option<Judgement> {
    let page = Bytes(mysql.number("innodb_page_size")? as u64);
    let arrays = facts.host.concerned_arrays();
    let chunk = arrays.iter().filter_map(|array| array.chunk).min()?;
    let value = format!("innodb_page_size: {page}; smallest chunk: {chunk}");
    Some(match chunk >= page && chunk.0.is_multiple_of(page.0) {
        true => Judgement::ok(value),
        false => Judgement::fix(
            value,
            "Pages lie across two members, so that a page takes two requests and can be torn between disks. Build the \
             array with a chunk of 64 KiB or more: 'disksmith sweep' finds the best.",
        ),
    })
}

/// Maximum size of a write that is atomic on all devices below the data, in bytes; `None` where a device does not
/// report it.
fn atomic_bytes(facts: &Facts) -> Option<u64> {
    let disks = facts.host.disks();
    let each = disks.iter().map(|disk| {
        let text = facts
            .host
            .attribute(disk, "queue/atomic_write_unit_max_bytes")?;
        text.parse::<u64>().ok()
    });
    let least = each.collect::<Option<Vec<u64>>>()?.into_iter().min();
    least.filter(|bytes| *bytes > 0)
}

fn doublewrite(facts: &Facts, mysql: &Mysql) -> Option<Judgement> {
    let now = mysql.variable("innodb_doublewrite")?;
    let page = mysql.number("innodb_page_size").unwrap_or(16384.0);
    let value = format!("innodb_doublewrite: {now}");
    let atomic = atomic_bytes(facts);
    let is_direct = mysql
        .variable("innodb_flush_method")
        .is_none_or(|text| text.starts_with("O_DIRECT"));
    let covers = is_direct && atomic.is_some_and(|bytes| bytes as f64 >= page);
    let seen = match atomic {
        Some(bytes) => format!("the devices write {} at once", Bytes(bytes)),
        None => "the devices promise no atomic writes of a page".to_owned(),
    };
    Some(match now {
        "OFF" | "0" if covers => Judgement::ok(format!("{value}; {seen}")),
        "OFF" | "0" => Judgement::fix(
            format!("{value}; {seen}"),
            "A page that is written by half when the power goes cannot be repaired.",
        )
        .command("innodb_doublewrite = ON in my.cnf, and a restart"),
        "DETECT_ONLY" => Judgement::consider(value, "Torn pages are found and not repaired.")
            .command("innodb_doublewrite = ON in my.cnf, and a restart"),
        _ => Judgement::ok(value),
    })
}

fn redo_size(_: &Facts, mysql: &Mysql) -> Option<Judgement> {
    let files = mysql.number("innodb_log_files_in_group").unwrap_or(1.0);
    // Where innodb_log_file_size is set and innodb_redo_log_capacity is not, MySQL 8 shows the latter's default but
    // uses the former.
    let size = mysql
        .counter("innodb_redo_log_capacity_resized")
        .or_else(|| mysql.number("innodb_redo_log_capacity"))
        .or_else(|| Some(mysql.number("innodb_log_file_size")? * files))?;
    let written = mysql
        .counter("innodb_os_log_written")
        .or_else(|| mysql.counter("innodb_lsn_current"))?;
    let rate = written / mysql.uptime();
    let holds = size / rate.max(1.0);
    let shown = Bytes(size as u64);
    let value = format!(
        "redo log of {shown}, written at {} MiB/s",
        number(rate / MIB)
    );
    // A log that was never full has delayed nothing.
    if written < size {
        return Some(Judgement::ok(format!(
            "{value}; not filled since the start"
        )));
    }
    // An hour of writes, or the size of the buffer pool: a larger log has no effect.
    let pool = mysql
        .number("innodb_buffer_pool_size")
        .unwrap_or(0.0)
        .max(LARGE_REDO);
    let wanted = ((rate * REDO_S).min(pool) / MIB).ceil() * MIB;
    let value = format!("{value}, which fills it in {} min", number(holds / 60.0));
    let each = (wanted / files) as u64;
    let command = match mysql.variables.contains_key("innodb_redo_log_capacity") {
        true => format!("SET GLOBAL innodb_redo_log_capacity = {}", wanted as u64),
        false if mysql.is_mariadb() && mysql.version() >= (10, 9) => {
            format!("SET GLOBAL innodb_log_file_size = {each}")
        }
        false => format!("innodb_log_file_size = {each} in my.cnf, and a restart"),
    };
    Some(match size < wanted {
        true => Judgement::consider(
            value,
            "A larger one lets pages be flushed steadily; recovery from a crash takes longer with it.",
        )
        .command(command),
        false => Judgement::ok(value),
    })
}

fn buffer_pool(facts: &Facts, mysql: &Mysql) -> Option<Judgement> {
    let pool = mysql.number("innodb_buffer_pool_size")?;
    let requests = mysql.counter("innodb_buffer_pool_read_requests")?;
    let reads = mysql.counter("innodb_buffer_pool_reads")?;
    let memory = facts
        .host
        .memory
        .filter(|_| mysql.pid.is_some())
        .map(|bytes| bytes.0 as f64);
    let mut value = format!("innodb_buffer_pool_size: {}", Bytes(pool as u64));
    if let Some(memory) = memory.filter(|memory| pool > memory * 0.9) {
        return Some(Judgement::fix(
            format!("{value} of {} of memory", Bytes(memory as u64)),
            "Connections and the system need a tenth of memory and more: the server will swap, or be ended.",
        ));
    }
    if requests < MIN_PAGE_REQUESTS {
        return Some(Judgement::ok(format!(
            "{value}; too few requests since the start to judge"
        )));
    }
    let hits = 1.0 - reads / requests;
    let per_second = reads / mysql.uptime();
    value = format!(
        "{value}; {} of requests hit, {} reads/s from disk",
        percent(hits),
        number(per_second)
    );
    let data = mysql.innodb_bytes.unwrap_or(f64::INFINITY);
    let has_room = pool < data && memory.is_none_or(|memory| pool < memory * 0.7);
    let disk = facts.evidence.random_reads(&facts.host.names_of("data"));
    let judged = match hits < LOW_HIT_RATE && per_second >= MIN_READS_PER_S && has_room {
        true => Judgement::consider(
            value,
            "The pool is smaller than the data, and queries wait for the disk. Give it up to 70 % of memory.",
        )
        .command(match memory {
            Some(memory) => format!("SET GLOBAL innodb_buffer_pool_size = {}", (memory * 0.7).min(data * 1.1) as u64),
            None => format!("SET GLOBAL innodb_buffer_pool_size = {}", (pool * 2.0).min(data * 1.1) as u64),
        }),
        false => Judgement::ok(value),
    };
    Some(match disk {
        Some(disk) => judged.evidence(disk.cite("random reads a second")),
        None => judged,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_down_to_two_digits() {
        for (value, expected) in [
            (2_345.0, 2_300),
            (100.0, 100),
            (7.0, 100),
            (81_999.0, 81_000),
        ] {
            assert_eq!(rounded(value), expected);
        }
        assert!(syncs_new_sizes("8.0.14") && !syncs_new_sizes("5.7.44-log"));
    }
}
