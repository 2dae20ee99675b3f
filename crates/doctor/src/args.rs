//! The arguments of `doctor` and `playbook`.

use std::path::PathBuf;

use clap::Args;
use domain::values::Span;
use jiff::civil::Date;

/// Arguments of `doctor`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith doctor
  disksmith doctor --mysql
  disksmith doctor --mysql 'mysql://?socket=/run/mysqld/mysqld.sock' --queries slow.log
  disksmith doctor --postgres service=app --measure
  disksmith doctor --data /var/lib/mysql --check host --ignore swappiness
  disksmith doctor --postgres --backup /mnt/backup --rpo 24h --restored-on 2026-10-01
  disksmith doctor --mysql --nagios

It changes nothing, and prints the command that would. Exit status: 0 nothing to fix; 1 there is
something to fix; 2 refused. With --nagios: 0, 1 to consider, 2 to fix, 3 no answer.")]
pub struct DoctorArgs {
    /// Check this MySQL or MariaDB: mysql://[USER@][HOST[:PORT]][/DB][?socket=PATH], or without a
    /// URL what the client's own files name. Its password is read by the client, from ~/.my.cnf
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", conflicts_with = "postgres")]
    pub mysql: Option<String>,
    /// Check this PostgreSQL: a connection string or URI of libpq, or without one its defaults
    /// (PGSERVICE, PGHOST, ~/.pgpass)
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    pub postgres: Option<String>,
    /// The folder of the data: checks of disks and mounts are about those below it
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Explain the statements of this file, a slow log or SQL, in place of those that the server
    /// remembers
    #[arg(long, value_name = "FILE", requires = "mysql")]
    pub queries: Option<PathBuf>,
    /// Time the methods of wal_sync_method, in a file of 16 MiB in pg_wal that is removed
    #[arg(long, requires = "postgres")]
    pub measure: bool,

    /// Folder or file of backups
    #[arg(long, value_name = "PLACE")]
    pub backup: Vec<PathBuf>,
    /// Ask for snapshots of the EBS volumes of the data, through your own aws
    #[arg(long)]
    pub ebs_snapshots: bool,
    /// Recovery point objective: the age that the last backup may have
    #[arg(long, value_name = "DURATION")]
    pub rpo: Option<Span>,
    /// A backup was restored on this day
    #[arg(long, value_name = "DATE")]
    pub restored_on: Option<Date>,

    /// Only these checks, or those of these areas: host, mysql, sql, postgres, safety
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub check: Vec<String>,
    /// Leave these checks out
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// List the checks with their rules and sources, and check nothing
    #[arg(long)]
    pub list: bool,
    /// Also show the checks that pass
    #[arg(long)]
    pub all: bool,
    /// Print nothing: the exit status is the answer
    #[arg(long, conflicts_with_all = ["json", "nagios", "all", "list"])]
    pub check_only: bool,
    /// Answer as a Nagios plugin does
    #[arg(long, conflicts_with_all = ["json", "all", "list"])]
    pub nagios: bool,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write a page
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Replace FILE.html, whatever it holds
    #[arg(long, requires = "report")]
    pub force: bool,
}

/// Arguments of `playbook`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith playbook
  disksmith playbook slow-commits")]
pub struct PlaybookArgs {
    /// The page; without one, their list
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}
