//! A snapshot of MySQL or MariaDB: variables, status, replicas and tables.

use std::collections::BTreeMap;
use std::path::PathBuf;

use linux::root::attribute;

use super::host::HostFacts;
use crate::client::mysql::{MysqlClient, MysqlRow};

/// A setting that was changed at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunTimeSetting {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// Columns with the same name but different types or collations, which cannot be compared by an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnPair {
    pub(crate) schema: String,
    pub(crate) column: String,
    /// Tables with the type of the column, such as `orders varchar(36) utf8mb4_general_ci`.
    pub(crate) kinds: Vec<String>,
}

/// Snapshot of the server.
#[derive(Default)]
pub(crate) struct Mysql {
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) status: BTreeMap<String, String>,
    /// State of the replication from sources, one row per channel.
    pub(crate) sources: Vec<MysqlRow>,
    pub(crate) replicas: Option<usize>,
    /// Settings that were changed at run time; `None` where the server does not report them.
    pub(crate) run_time: Option<Vec<RunTimeSetting>>,
    pub(crate) columns: Option<Vec<ColumnPair>>,
    /// Size of all InnoDB tables with their indexes, in bytes.
    pub(crate) innodb_bytes: Option<f64>,
    /// Process id of the server, where it runs on this host.
    pub(crate) pid: Option<u32>,
    /// End of the last backup in the server's history; `None` where it has none.
    pub(crate) last_backup: Option<String>,
}

impl Mysql {
    /// Queries the server.
    ///
    /// # Errors
    /// When its variables or status cannot be read. Other facts that it refuses are left out.
    pub(crate) fn read(client: &MysqlClient, host: &HostFacts) -> anyhow::Result<Mysql> {
        let pairs = |statement: &str| -> anyhow::Result<BTreeMap<String, String>> {
            let rows = client.rows(statement)?.into_iter();
            let pair =
                |mut row: MysqlRow| Some((row.remove("variable_name")?, row.remove("value")?));
            Ok(rows
                .filter_map(pair)
                .map(|(name, value)| (name.to_lowercase(), value))
                .collect())
        };
        let mut found = Mysql {
            variables: pairs("SHOW GLOBAL VARIABLES")?,
            status: pairs("SHOW GLOBAL STATUS")?,
            ..Mysql::default()
        };
        let all_sources = match found.is_mariadb() {
            true => "SHOW ALL SLAVES STATUS",
            false if found.version() >= (8, 0) => "SHOW REPLICA STATUS",
            false => "SHOW SLAVE STATUS",
        };
        found.sources = client.rows(all_sources).unwrap_or_default();
        let replicas = match found.is_mariadb() || found.version() < (8, 0) {
            true => "SHOW SLAVE HOSTS",
            false => "SHOW REPLICAS",
        };
        found.replicas = client.rows(replicas).ok().map(|rows| rows.len());
        found.run_time = client.rows(run_time(found.is_mariadb())).ok().map(settings);
        found.columns = client.rows(COLUMNS).ok().map(pairs_of_columns);
        found.innodb_bytes = client
            .rows(
                "SELECT SUM(data_length + index_length) AS bytes FROM information_schema.tables \
                 WHERE engine = 'InnoDB'",
            )
            .ok()
            .and_then(|rows| rows.first()?.get("bytes")?.parse().ok());
        found.last_backup = last_backup(client);
        found.pid = found.pid_here(host);
        Ok(found)
    }

    /// Value of a variable, as the server prints it.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// A variable as a number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.variable(name)?.parse().ok()
    }

    /// True if a variable is ON, 1 or YES; `None` where it does not exist.
    pub(crate) fn is_on(&self, name: &str) -> Option<bool> {
        let value = self.variable(name)?;
        Some(
            ["ON", "1", "YES"]
                .iter()
                .any(|on| value.eq_ignore_ascii_case(on)),
        )
    }

    /// A counter of the status.
    pub(crate) fn counter(&self, name: &str) -> Option<f64> {
        self.status.get(name)?.parse().ok()
    }

    /// Seconds since the server was started.
    pub(crate) fn uptime(&self) -> f64 {
        self.counter("uptime").unwrap_or(0.0).max(1.0)
    }

    pub(crate) fn is_mariadb(&self) -> bool {
        self.variable("version")
            .is_some_and(|version| version.to_lowercase().contains("mariadb"))
    }

    /// Major and minor version.
    pub(crate) fn version(&self) -> (u32, u32) {
        let text = self.variable("version").unwrap_or_default();
        let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        let mut next = || parts.next().and_then(Result::ok).unwrap_or(0);
        (next(), next())
    }

    /// True if EXPLAIN notes an index that it cannot use: MySQL since 5.6 (WL#5894); MariaDB 10.6.16, 10.11.6 and later
    /// (MDEV-32203).
    pub(crate) fn has_notes(&self) -> bool {
        match self.is_mariadb() {
            true => self.variables.contains_key("note_verbosity"),
            false => self.version() >= (5, 6),
        }
    }

    /// A folder that a variable names; a relative path is below the data folder.
    pub(crate) fn folder(&self, name: &str) -> Option<PathBuf> {
        let text = self.variable(name).filter(|text| !text.is_empty())?;
        let data = PathBuf::from(self.variable("datadir")?);
        Some(data.join(text.split([':', ';']).next().unwrap_or(text)))
    }

    /// Process id of the server, if its pid file names a server on this host.
    fn pid_here(&self, host: &HostFacts) -> Option<u32> {
        let pid: u32 = attribute(&self.folder("pid_file")?)?.parse().ok()?;
        let is_server = |pid: &u32| host.servers.iter().any(|server| server.pid == *pid);
        Some(pid).filter(is_server)
    }
}

/// Query for settings that were changed by SET GLOBAL, and are lost at the next start.
fn run_time(is_mariadb: bool) -> &'static str {
    match is_mariadb {
        true => {
            "SELECT variable_name AS name, global_value AS value FROM information_schema.system_variables \
             WHERE global_value_origin = 'SQL'"
        }
        false => {
            "SELECT i.variable_name AS name, v.variable_value AS value \
             FROM performance_schema.variables_info AS i \
             JOIN performance_schema.global_variables AS v USING (variable_name) \
             LEFT JOIN performance_schema.persisted_variables AS p USING (variable_name) \
             WHERE i.variable_source = 'DYNAMIC' AND i.set_user IS NOT NULL \
             AND (p.variable_value IS NULL OR p.variable_value <> v.variable_value)"
        }
    }
}

fn settings(rows: Vec<MysqlRow>) -> Vec<RunTimeSetting> {
    let rows = rows.into_iter();
    let setting = |mut row: MysqlRow| {
        Some(RunTimeSetting {
            name: row.remove("name")?.to_lowercase(),
            value: row.remove("value")?,
        })
    };
    rows.filter_map(setting).collect()
}

/// Query for the columns in an index or with a name such as `user_id`, of all tables that are not the server's own.
const COLUMNS: &str = "SELECT table_schema AS s, table_name AS t, column_name AS c, data_type AS d, \
    column_type AS full, COALESCE(collation_name, '') AS coll FROM information_schema.columns \
    WHERE (column_key <> '' OR column_name LIKE '%\\_id') \
    AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') LIMIT 50000";

/// Common column names, of columns that are not joined.
const COMMON_COLUMNS: [&str; 14] = [
    "id", "name", "type", "kind", "status", "state", "key", "value", "code", "date", "time",
    "title", "version", "position",
];

/// Names of columns with which a column may be joined: its own name, unless it is a common one; and `user_id` and
/// `users_id` for the column `id` of a table `users`.
fn joined_as(table: &str, column: &str) -> Vec<String> {
    let (table, column) = (table.to_lowercase(), column.to_lowercase());
    if column == "id" {
        let one = table.strip_suffix('s').unwrap_or(&table);
        return vec![format!("{one}_id"), format!("{one}s_id")];
    }
    let is_common = COMMON_COLUMNS.contains(&column.as_str());
    (!is_common).then_some(column).into_iter().collect()
}

/// Family of a column's type: an index can be used for comparisons within a family.
fn family(data_type: &str, collation: &str) -> String {
    match data_type {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" => "integer".to_owned(),
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "set" => {
            format!("text {collation}")
        }
        other => other.to_owned(),
    }
}

fn pairs_of_columns(rows: Vec<MysqlRow>) -> Vec<ColumnPair> {
    type Kinds = BTreeMap<String, String>;
    let mut by_name: BTreeMap<(String, String), Kinds> = BTreeMap::new();
    for row in &rows {
        let cell = |name: &str| row.get(name).cloned().unwrap_or_default();
        let shown = format!(
            "{}.{} {} {}",
            cell("t"),
            cell("c"),
            cell("full"),
            cell("coll")
        );
        for name in joined_as(&cell("t"), &cell("c")) {
            let kinds = by_name.entry((cell("s"), name)).or_default();
            kinds
                .entry(family(&cell("d"), &cell("coll")))
                .or_insert(shown.trim_end().to_owned());
        }
    }
    by_name
        .into_iter()
        .filter(|(_, kinds)| kinds.len() > 1)
        .map(|((schema, column), kinds)| ColumnPair {
            schema,
            column,
            kinds: kinds.into_values().collect(),
        })
        .collect()
}

/// End of the last backup in the history that `mariadb-backup --history` and `xtrabackup --history` keep.
fn last_backup(client: &MysqlClient) -> Option<String> {
    let tables = [
        "mysql.mariadb_backup_history",
        "PERCONA_SCHEMA.xtrabackup_history",
    ];
    let mut ends = tables.iter().filter_map(|table| {
        let query = format!(
            "SELECT DATE_FORMAT(CONVERT_TZ(MAX(end_time), @@session.time_zone, '+00:00'), '%Y-%m-%dT%H:%i:%sZ') \
             AS ended FROM {table}"
        );
        let rows = client.rows(&query).ok()?;
        rows.first()?.get("ended").filter(|end| *end != "NULL").cloned()
    });
    ends.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_flavours_are_distinguished() {
        let of = |version: &str| Mysql {
            variables: [("version".to_owned(), version.to_owned())].into(),
            ..Mysql::default()
        };
        let maria = of("10.11.19-MariaDB-0+deb12u1");
        assert!(maria.is_mariadb());
        assert_eq!(maria.version(), (10, 11));
        assert_eq!(of("8.4.3").version(), (8, 4));
        assert!(!of("8.0.36-28").is_mariadb());
    }

    #[test]
    fn columns_differ_by_family_and_collation_only() {
        let named = |t: &str, c: &str, d: &str, coll: &str| -> MysqlRow {
            [
                ("s", "app"),
                ("t", t),
                ("c", c),
                ("d", d),
                ("full", d),
                ("coll", coll),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
        };
        let row = |t: &str, d: &str, coll: &str| named(t, "user_id", d, coll);
        let pairs = |rows: &[MysqlRow]| pairs_of_columns(rows.to_vec()).len();
        assert_eq!(pairs(&[row("a", "int", ""), row("b", "bigint", "")]), 0);
        assert_eq!(pairs(&[row("a", "int", ""), row("b", "varchar", "x")]), 1);
        assert_eq!(pairs(&[row("a", "char", "x"), row("b", "varchar", "y")]), 1);
        // A name without an underscore, a common name, and the id of another table.
        let of = |name: &str| {
            pairs(&[
                named("a", name, "int", ""),
                named("b", name, "varchar", "x"),
            ])
        };
        assert_eq!((of("SKU"), of("status"), of("id")), (1, 0, 0));
        for table in ["user", "Users"] {
            assert_eq!(
                pairs(&[row("a", "int", ""), named(table, "id", "char", "x")]),
                1
            );
        }
        assert_eq!(
            pairs(&[row("a", "int", ""), named("groups", "id", "char", "x")]),
            0
        );
    }
}
