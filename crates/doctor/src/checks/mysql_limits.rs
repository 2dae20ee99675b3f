//! Limits of MySQL: tables, connections and files; and settings that are lost at a restart.

use crate::check::{Area, Basis, Check, Judgement, format_count, of_mysql};
use crate::facts::Facts;
use crate::facts::mysql::Mysql;
use ui::format::percent;

/// Rate of opened tables, per second, above which the table cache is too small.
const MAX_TABLES_OPENED_PER_S: f64 = 1.0;
/// Time after a start, in seconds, during which tables are opened for the first time.
const WARM_UP_S: f64 = 600.0;
/// Share of the limit of connections above which its use is reported.
const NEAR_LIMIT_SHARE: f64 = 0.85;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "table-open-cache",
        area: Area::Mysql,
        reads: "table_open_cache, Table_open_cache_overflows, Opened_tables",
        rule: "Tables stay open: less than one a second is closed to make room for another.",
        source: "MySQL Reference Manual, \"How MySQL Opens and Closes Tables\"",
        basis: Basis::Inferred,
        playbook: "too-many-open-files",
        judge: |facts| of_mysql(facts, open_cache),
    },
    Check {
        name: "mysql-file-limit",
        area: Area::Mysql,
        reads: "open_files_limit, table_open_cache, max_connections",
        rule: "open_files_limit is at least 10 + max_connections + 2 × table_open_cache.",
        source: "MySQL Reference Manual, open_files_limit",
        basis: Basis::Documented,
        playbook: "too-many-open-files",
        judge: |facts| of_mysql(facts, files),
    },
    Check {
        name: "max-connections",
        area: Area::Mysql,
        reads: "max_connections, Max_used_connections, Connection_errors_max_connections, /proc/PID/limits",
        rule: "Fewer than 85 % of the connections were ever used, none was refused, and the server may have a thread for each.",
        source: "MySQL Reference Manual, \"Too many connections\"",
        basis: Basis::Inferred,
        playbook: "too-many-connections",
        judge: |facts| of_mysql(facts, connections),
    },
    Check {
        name: "mysql-memory",
        area: Area::Mysql,
        reads: "innodb_buffer_pool_size, max_connections, buffers of each connection, MemTotal",
        rule: "The buffer pool and the buffers of as many connections as were ever used together are less than memory.",
        source: "MySQL Reference Manual, \"How MySQL Uses Memory\"",
        basis: Basis::Inferred,
        playbook: "memory-pressure",
        judge: |facts| of_mysql(facts, memory),
    },
    Check {
        name: "mysql-settings-not-in-files",
        area: Area::Mysql,
        reads: "information_schema.SYSTEM_VARIABLES (MariaDB), performance_schema.variables_info (MySQL 8)",
        rule: "What was set with SET GLOBAL is in a file too, or the next start forgets it.",
        source: "MySQL Reference Manual, \"Performance Schema variables_info Table\"; MariaDB documentation, \
                 \"SYSTEM_VARIABLES Table\"",
        basis: Basis::Documented,
        playbook: "settings-lost-at-restart",
        judge: |facts| of_mysql(facts, run_time),
    },
];

fn open_cache(_: &Facts, mysql: &Mysql) -> Option<Judgement> {
    let cache = mysql.number("table_open_cache")?;
    let closed = mysql
        .counter("table_open_cache_overflows")
        .or_else(|| Some((mysql.counter("opened_tables")? - cache).max(0.0)))?;
    let rate = closed / mysql.uptime().max(WARM_UP_S);
    let value = format!(
        "table_open_cache: {}; {} tables closed for room",
        format_count(cache),
        format_count(closed)
    );
    Some(match rate > MAX_TABLES_OPENED_PER_S {
        true => {
            Judgement::consider(value, "Raise it, with open_files_limit at twice that.").command(
                format!("SET GLOBAL table_open_cache = {}", (cache * 2.0) as u64),
            )
        }
        false => Judgement::ok(value),
    })
}

fn files(_: &Facts, mysql: &Mysql) -> Option<Judgement> {
    let limit = mysql.number("open_files_limit")?;
    let wanted =
        10.0 + mysql.number("max_connections")? + 2.0 * mysql.number("table_open_cache")?;
    let value = format!(
        "open_files_limit: {}, wanted: {}",
        format_count(limit),
        format_count(wanted)
    );
    Some(match limit < wanted {
        true => Judgement::fix(
            value,
            "Tables cannot be opened, or connections be made, when it is reached (errno 24). Raise LimitNOFILE of the \
             service, which open_files_limit cannot pass, or lower table_open_cache.",
        )
        .command(format!("systemctl edit mariadb # [Service] LimitNOFILE={}", (wanted * 1.5) as u64)),
        false => Judgement::ok(value),
    })
}

fn connections(facts: &Facts, mysql: &Mysql) -> Option<Judgement> {
    let most = mysql.number("max_connections")?;
    let used = mysql.counter("max_used_connections")?;
    let refused = mysql
        .counter("connection_errors_max_connections")
        .unwrap_or(0.0);
    let server = facts
        .host
        .servers
        .iter()
        .find(|server| Some(server.pid) == mysql.pid);
    let threads = server.and_then(|server| {
        let of_user = server.processes.flatten();
        let of_group = server.group.map(|(most, _)| most);
        of_user.into_iter().chain(of_group).min()
    });
    let value = format!(
        "max_connections: {}, used at most: {} ({}), refused: {}",
        format_count(most),
        format_count(used),
        percent(used / most),
        format_count(refused)
    );
    if let Some(threads) = threads.filter(|threads| (*threads as f64) < most) {
        return Some(Judgement::fix(
            format!(
                "{value}; the server may have {} threads",
                format_count(threads as f64)
            ),
            "Connections beyond that fail with error 1135, errno 11. Raise LimitNPROC and TasksMax of the service.",
        ));
    }
    Some(match refused > 0.0 || used >= most * NEAR_LIMIT_SHARE {
        true => Judgement::consider(
            value,
            "First find out why connections pile up: slow commits and full scans hold them. Then a pool, and only then a \
             higher limit.",
        )
        .command(format!("SET GLOBAL max_connections = {}", (most * 1.5) as u64)),
        false => Judgement::ok(value),
    })
}

/// Buffers that a connection allocates when a statement needs them.
const CONNECTION_BUFFERS: [&str; 6] = [
    "thread_stack",
    "sort_buffer_size",
    "join_buffer_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "binlog_cache_size",
];

fn memory(facts: &Facts, mysql: &Mysql) -> Option<Judgement> {
    let memory = facts.host.memory.filter(|_| mysql.pid.is_some())?.0 as f64;
    let pool = mysql.number("innodb_buffer_pool_size")?;
    let each: f64 = CONNECTION_BUFFERS
        .iter()
        .filter_map(|name| mysql.number(name))
        .sum();
    let used = mysql.counter("max_used_connections").unwrap_or(0.0);
    let most = mysql.number("max_connections")?;
    let shown = |bytes: f64| record::Bytes(bytes as u64);
    let value = format!(
        "buffers of {} and {} for each of {} connections at most, {} were used; memory: {}",
        shown(pool),
        shown(each),
        format_count(most),
        format_count(used),
        shown(memory)
    );
    Some(match () {
        () if pool + each * used > memory => Judgement::fix(
            value,
            "The connections that were there at once can take more than memory: the server will swap, or be ended.",
        ),
        () if pool + each * most > memory => Judgement::consider(
            value,
            "If all connections come, memory is not enough. Lower max_connections, or the buffers of each.",
        ),
        () => Judgement::ok(value),
    })
}

fn run_time(_: &Facts, mysql: &Mysql) -> Option<Judgement> {
    let Some(settings) = &mysql.run_time else {
        return Some(Judgement::unknown(
            "the server does not report where its settings are from",
            "Give the user SELECT on performance_schema, or compare SHOW VARIABLES with the files.",
        ));
    };
    // Set by the server itself, or irrelevant for a restart.
    let of_no_meaning = [
        "timestamp",
        "gtid_",
        "read_only",
        "super_read_only",
        "innodb_buffer_pool_dump",
    ];
    let list: Vec<String> = settings
        .iter()
        .filter(|one| {
            !of_no_meaning
                .iter()
                .any(|prefix| one.name.starts_with(prefix))
        })
        .map(|one| format!("{} = {}", one.name, one.value))
        .collect();
    Some(match list.is_empty() {
        true => Judgement::ok("all settings are those of the files or the defaults"),
        false => {
            let persists = !mysql.is_mariadb() && mysql.version() >= (8, 0);
            let names: Vec<&str> = list
                .iter()
                .filter_map(|one| one.split(" = ").next())
                .collect();
            let command = match persists {
                true => format!(
                    "SET PERSIST {} = @@GLOBAL.{0}",
                    names.first().copied().unwrap_or_default()
                ),
                false => format!("write into my.cnf, below [mysqld]: {}", list.join("; ")),
            };
            Judgement::consider(
                format!("set at run time: {}", list.join(", ")),
                "Write them into the file that the server reads, or set them back.",
            )
            .command(command)
        }
    })
}
