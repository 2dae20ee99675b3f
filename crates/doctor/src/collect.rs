//! Collection of the facts that the arguments select.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::args::DoctorArgs;
use crate::client::mysql::MysqlClient;
use crate::client::postgres::PostgresClient;
use crate::facts::Facts;
use crate::facts::backup::{Backup, Safety, usual_places};
use crate::facts::evidence::Evidence;
use crate::facts::host::HostFacts;
use crate::facts::mysql::Mysql;
use crate::facts::postgres::Postgres;
use crate::{sql, wal_sync};
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

/// Facts from the host, the ledger and the database.
pub(crate) fn facts(
    args: &DoctorArgs,
    context: &Context,
    now: Timestamp,
) -> Result<Facts, Failure> {
    let mut host = HostFacts::read(&context.root).refused()?;
    if let Some(data) = &args.data {
        std::fs::metadata(data)
            .map_err(|error| Failure::refused(linux::remedy::unread(data, &error)))?;
        host.add_folder("data", data).refused()?;
    }
    let evidence = match context.open_ledger_if_there()? {
        Some(ledger) => Evidence::read(&ledger, &host.name, now).refused()?,
        None => Evidence::default(),
    };
    let (mut mysql, mut statements) = (None, None);
    if let Some(url) = &args.mysql {
        let client = MysqlClient::of(url).refused()?;
        let server = Mysql::read(&client, &host).refused()?;
        let folders = folders_of_mysql(&server, &host.name);
        add_folders(&mut host, folders);
        if is_wanted(args, "sql") {
            let slow_log = server.folder("slow_query_log_file");
            let sql_server = sql::ExplainedServer {
                client: &client,
                has_notes: server.has_notes(),
                slow_log: slow_log.as_deref(),
            };
            statements = Some(sql::explain(&sql_server, args.queries.as_deref()).refused()?);
        }
        mysql = Some(server);
    }
    let mut postgres = None;
    if let Some(connection) = &args.postgres {
        let client = PostgresClient::of(connection).refused()?;
        let mut server = Postgres::read(&client).refused()?;
        add_folders(&mut host, folders_of_postgres(&server));
        if args.measure {
            measure(&mut server);
        }
        postgres = Some(server);
    }
    let safety = safety(args, &host, mysql.as_ref(), now)?;
    Ok(Facts {
        host,
        evidence,
        mysql,
        postgres,
        sql: statements,
        safety,
    })
}

/// True if the arguments may select a check of this area; otherwise statements are not explained.
fn is_wanted(args: &DoctorArgs, area: &str) -> bool {
    let names = ["implicit-conversion", area];
    let is_one = |name: &String| names.contains(&name.as_str());
    (args.check.is_empty() || args.check.iter().any(is_one)) && !args.ignore.iter().any(is_one)
}

/// Adds the folders that can be reached.
fn add_folders(host: &mut HostFacts, folders: Vec<(&'static str, PathBuf)>) {
    for (what, path) in folders {
        // The location of a folder that cannot be examined is not known.
        let _ = host.add_folder(what, &path);
    }
}

fn folders_of_mysql(server: &Mysql, host: &str) -> Vec<(&'static str, PathBuf)> {
    let is_here = server.pid.is_some() || server.variable("hostname") == Some(host);
    if !is_here {
        return Vec::new();
    }
    let of = |what: &'static str, variable: &str| Some((what, server.folder(variable)?));
    let binlog = server.folder("log_bin_basename");
    let binlog = binlog.and_then(|path| Some(("binary log", path.parent()?.to_path_buf())));
    [
        of("data", "datadir"),
        of("redo log", "innodb_log_group_home_dir"),
        binlog,
        of("doublewrite buffer", "innodb_doublewrite_dir"),
        of("temporary files", "tmpdir"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn folders_of_postgres(server: &Postgres) -> Vec<(&'static str, PathBuf)> {
    let Some(data) = &server.folder else {
        return Vec::new();
    };
    let own = [("data", data.clone()), ("WAL", data.join("pg_wal"))];
    let spaces = server.tablespaces.iter();
    let spaces = spaces.map(|one| ("tablespace", PathBuf::from(&one.path)));
    own.into_iter().chain(spaces).collect()
}

fn measure(server: &mut Postgres) {
    let Some(folder) = server.folder.as_ref().map(|data| data.join("pg_wal")) else {
        server.unmeasured = Some(
            "The WAL is not on this host, or its folder may not be seen: run this there as root."
                .to_owned(),
        );
        return;
    };
    let now = server
        .text("wal_sync_method")
        .unwrap_or_default()
        .to_owned();
    match wal_sync::measure(&folder, &now) {
        Ok(measured) => server.wal_sync = Some(measured),
        Err(error) => {
            server.unmeasured = Some(format!(
                "{}: {error}. Run this as root, or as the user of the server.",
                folder.display()
            ));
        }
    }
}

/// Facts about backups, where a database is checked or backups are requested.
fn safety(
    args: &DoctorArgs,
    host: &HostFacts,
    mysql: Option<&Mysql>,
    now: Timestamp,
) -> Result<Option<Safety>, Failure> {
    let is_named = !args.backup.is_empty() || args.ebs_snapshots;
    let is_asked = is_named || args.rpo.is_some() || args.restored_on.is_some();
    if !is_asked && args.mysql.is_none() && args.postgres.is_none() {
        return Ok(None);
    }
    let today = now.to_zoned(TimeZone::system()).date();
    if let Some(date) = args.restored_on.filter(|date| *date > today) {
        return Err(Failure::refused(format!(
            "--restored-on {date} is still to come"
        )));
    }
    let mut safety = Safety {
        rpo: args.rpo.as_ref().map(|span| span.0.into()),
        restored_on: args.restored_on,
        now,
        ..Safety::default()
    };
    let usual = usual_places();
    let places: &[PathBuf] = if is_named { &args.backup } else { &usual };
    for place in places {
        safety.search(place, host);
    }
    if args.ebs_snapshots {
        safety.ask_aws(host);
    }
    safety.backups.extend(mysql.and_then(of_history));
    Ok(Some(safety))
}

/// The last backup in the server's own backup history.
fn of_history(mysql: &Mysql) -> Option<Backup> {
    Some(Backup {
        kind: "backup",
        ended: mysql.last_backup.as_ref()?.parse().ok()?,
        place: Path::new("the server's history of backups")
            .display()
            .to_string(),
        is_whole: true,
        is_with_data: None,
    })
}
