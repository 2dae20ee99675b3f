//! A snapshot of PostgreSQL: settings and statistics.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::client::postgres::PostgresClient;
use crate::wal_sync::WalSync;

/// A setting (pg_settings).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) setting: String,
    pub(crate) unit: Option<String>,
    pub(crate) pending_restart: bool,
}

/// A line of a configuration file that does not apply (pg_file_settings).
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct FileError {
    pub(crate) name: Option<String>,
    pub(crate) error: Option<String>,
}

/// Counters of the whole cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Statistics {
    /// Number of checkpoints by time.
    pub(crate) timed: f64,
    /// Number of requested checkpoints: by a command, or because the WAL had grown to `max_wal_size`.
    pub(crate) requested: f64,
    /// Number of buffers that checkpoints wrote.
    pub(crate) checkpoint_buffers: f64,
    /// Time since these counters were reset, in seconds.
    pub(crate) seconds: Option<f64>,
    pub(crate) blocks_hit: f64,
    pub(crate) blocks_read: f64,
    pub(crate) is_replica: bool,
    pub(crate) replay_lag_s: Option<f64>,
    pub(crate) replicas: f64,
    pub(crate) archived_age_s: Option<f64>,
    pub(crate) archive_failing: bool,
    /// Size of all databases, in bytes.
    pub(crate) bytes: Option<f64>,
}

/// A tablespace in its own folder.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Tablespace {
    pub(crate) name: String,
    pub(crate) path: String,
}

/// Snapshot of the server.
#[derive(Default)]
pub(crate) struct Postgres {
    pub(crate) settings: BTreeMap<String, Setting>,
    pub(crate) file_errors: Vec<FileError>,
    pub(crate) statistics: Statistics,
    pub(crate) tablespaces: Vec<Tablespace>,
    /// The data folder; `None` where it is not on this host.
    pub(crate) folder: Option<PathBuf>,
    /// Measurement of the WAL's sync methods; `None` without `--measure`, or where it failed.
    pub(crate) wal_sync: Option<WalSync>,
    /// Reason why the sync methods could not be measured.
    pub(crate) unmeasured: Option<String>,
}

impl Postgres {
    /// Queries the server.
    ///
    /// # Errors
    /// When its settings or statistics cannot be read.
    pub(crate) fn read(client: &PostgresClient) -> anyhow::Result<Postgres> {
        let settings: Vec<Setting> =
            client.rows("SELECT name, setting, unit, pending_restart FROM pg_settings")?;
        let mut found = Postgres {
            settings: settings
                .into_iter()
                .map(|one| (one.name.clone(), one))
                .collect(),
            ..Postgres::default()
        };
        let statistics: Vec<Statistics> = client.rows(statistics(found.version()))?;
        found.statistics = statistics.into_iter().next().unwrap_or_default();
        // For superusers only.
        found.file_errors = client
            .rows(
                "SELECT name, error FROM pg_file_settings AS f WHERE error IS NOT NULL \
                 AND NOT EXISTS (SELECT FROM pg_settings AS s WHERE s.name = f.name AND s.pending_restart)",
            )
            .unwrap_or_default();
        found.tablespaces = client
            .rows(
                "SELECT spcname AS name, pg_tablespace_location(oid) AS path FROM pg_tablespace \
                 WHERE pg_tablespace_location(oid) <> ''",
            )
            .unwrap_or_default();
        found.folder = found
            .text("data_directory")
            .map(PathBuf::from)
            .filter(|path| path.join("PG_VERSION").exists());
        Ok(found)
    }

    /// A setting as text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(|one| one.setting.as_str())
    }

    /// A setting without a unit, as a number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.parse().ok()
    }

    /// A setting with a unit, converted to bytes or seconds.
    pub(crate) fn quantity(&self, name: &str) -> Option<f64> {
        let one = self.settings.get(name)?;
        let value: f64 = one.setting.parse().ok()?;
        // A unit may be a multiple: 8kB for blocks, 16MB for segments before PostgreSQL 10.
        let unit = one.unit.as_deref().unwrap_or("B");
        let name = unit.trim_start_matches(|c: char| c.is_ascii_digit());
        let count = &unit[..unit.len() - name.len()];
        let times: f64 = if count.is_empty() {
            1.0
        } else {
            count.parse().ok()?
        };
        let of_one = match name {
            "B" => 1.0,
            "kB" => 1024.0,
            "MB" => 1_048_576.0,
            "us" => 0.000_001,
            "ms" => 0.001,
            "s" => 1.0,
            "min" => 60.0,
            _ => return None,
        };
        Some(value * times * of_one)
    }

    /// Version of the server, from `server_version_num`, such as 150018; 0 where it is not known.
    pub(crate) fn version(&self) -> u32 {
        self.text("server_version_num")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    }

    /// Share of requested blocks that were found in shared buffers, from 0 to 1; `None` with too few requests.
    pub(crate) fn hit_share(&self) -> Option<f64> {
        let all = self.statistics.blocks_hit + self.statistics.blocks_read;
        (all >= 100_000.0).then(|| self.statistics.blocks_hit / all)
    }
}

/// Query for [`Statistics`]. Checkpoints have a separate view since PostgreSQL 17.
fn statistics(version: u32) -> &'static str {
    macro_rules! query {
        ($view:literal, $timed:literal, $requested:literal, $written:literal) => {
            concat!(
                "SELECT c.",
                $timed,
                " AS timed, c.",
                $requested,
                " AS requested, c.",
                $written,
                " AS checkpoint_buffers, EXTRACT(EPOCH FROM now() - c.stats_reset)::float8 AS seconds, \
                 d.blocks_hit, d.blocks_read, pg_is_in_recovery() AS is_replica, \
                 CASE WHEN pg_is_in_recovery() AND pg_last_wal_receive_lsn() IS DISTINCT FROM pg_last_wal_replay_lsn() \
                 THEN EXTRACT(EPOCH FROM now() - pg_last_xact_replay_timestamp())::float8 END AS replay_lag_s, \
                 (SELECT count(*) FROM pg_stat_replication) AS replicas, \
                 EXTRACT(EPOCH FROM now() - a.last_archived_time)::float8 AS archived_age_s, \
                 COALESCE(a.last_failed_time > COALESCE(a.last_archived_time, '-infinity'), false) AS archive_failing, \
                 d.bytes FROM ",
                $view,
                " AS c, pg_stat_archiver AS a, (SELECT COALESCE(sum(blks_hit), 0)::float8 AS blocks_hit, \
                 COALESCE(sum(blks_read), 0)::float8 AS blocks_read, \
                 sum(pg_database_size(datid))::float8 AS bytes FROM pg_stat_database WHERE datid <> 0 \
                 AND has_database_privilege(datid, 'CONNECT')) AS d"
            )
        };
    }
    match version >= 170_000 {
        true => query!(
            "pg_stat_checkpointer",
            "num_timed",
            "num_requested",
            "buffers_written"
        ),
        false => query!(
            "pg_stat_bgwriter",
            "checkpoints_timed",
            "checkpoints_req",
            "buffers_checkpoint"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_in_bytes_or_seconds() {
        for (setting, unit, expected) in [
            ("16384", Some("8kB"), Some(134_217_728.0)),
            ("64", Some("16MB"), Some(1_073_741_824.0)),
            ("1024", Some("MB"), Some(1_073_741_824.0)),
            ("5", Some("min"), Some(300.0)),
            ("200", Some("ms"), Some(0.2)),
            ("7", None, Some(7.0)),
            ("7", Some("furlongs"), None),
        ] {
            let one = Setting {
                setting: setting.to_owned(),
                unit: unit.map(str::to_owned),
                ..Setting::default()
            };
            let postgres = Postgres {
                settings: [("x".to_owned(), one)].into(),
                ..Postgres::default()
            };
            assert_eq!(postgres.quantity("x"), expected, "{setting} {unit:?}");
        }
    }
}
