//! The arguments of `tally`.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, Subcommand};
use domain::moment::MomentOrDay;
use domain::values::{Size, Span};
use record::Nanos;

use crate::classes::ClassBounds;
use crate::level::{RollUpLevel, Zone};
use crate::parse::{EventFormat, LogFormat};
use crate::query::Selection;
use crate::{source, store};

/// Parser of store addresses. Its error does not repeat the argument, which may hold a password.
#[derive(Clone)]
struct StoreParser;

impl TypedValueParser for StoreParser {
    type Value = store::StoreAddress;

    fn parse_ref(
        &self,
        command: &Command,
        _argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<store::StoreAddress, clap::Error> {
        let text = value
            .to_str()
            .ok_or("an address of a store is UTF-8".to_owned());
        text.and_then(str::parse).map_err(|reason| {
            clap::Error::raw(ErrorKind::ValueValidation, format!("{reason}\n")).with_cmd(command)
        })
    }
}

/// Arguments of `tally`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  disksmith tally --from /var/log/app/events.log --follow
  disksmith tally --from gearman://127.0.0.1/events --store mysql://tally@db/sums
  disksmith tally --from statsd://127.0.0.1:8125 --from http://127.0.0.1:8080/events
  disksmith tally --from kafka://broker1,broker2/events --config tally.toml
  producer | disksmith tally --from - --store sqlite:tally.db
  disksmith tally send --to http://127.0.0.1:8080/events 'login:1|c'
  disksmith tally query login --from -2h --by minute

It runs until it is stopped; with '--from -', or files without --follow, to the end of the input."
)]
pub struct TallyArgs {
    /// An action other than taking events
    #[command(subcommand)]
    pub verb: Option<TallyVerb>,
    /// Where events come from: a file, - for standard input, gearman://host:4730/function,
    /// http://127.0.0.1:8080/events, statsd://127.0.0.1:8125, kafka://host:9092/topic. May be given several times
    #[arg(long, value_name = "SOURCE", required = true)]
    pub from: Vec<source::SourceAddress>,
    /// Where sums go: sqlite:FILE, mysql://user@host:3306/database, clickhouse://user@host:8123/database?outbox=FILE
    /// [default: tally.db beside the ledger]. May be given several times
    #[arg(long, value_name = "STORE", value_parser = StoreParser)]
    pub store: Vec<store::StoreAddress>,
    /// Stores, rules by which tags go to them, and what is off [default: tally.toml beside the ledger, if it is there].
    /// Read again at SIGHUP
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    pub config: Option<PathBuf>,
    /// Form of the events [default: found for each line]
    #[arg(long, value_enum, default_value = "auto", hide_default_value = true)]
    pub format: EventFormat,
    /// Format of access logs: nginx' log_format or Apache's LogFormat [default: common or combined]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Read files as they grow, across rotation
    #[arg(long)]
    pub follow: bool,
    /// A file with the token that clients of http:// must send; needed if other hosts can reach it
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Serve Prometheus metrics here
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Flush at so many different sums
    #[arg(long, value_name = "COUNT", default_value = "30000")]
    pub flush_sums: NonZeroUsize,
    /// Flush after this time
    #[arg(long, value_name = "DURATION", default_value = "20s")]
    pub flush_every: Span,
    /// Flush at this size of all sums in memory; if the store is slow, stop taking events there
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub memory: Size,
    /// Keep minutes for this time
    #[arg(long, value_name = "DURATION", default_value = "14d")]
    pub keep_minutes: Nanos,
    /// Keep hours for this time
    #[arg(long, value_name = "DURATION", default_value = "366d")]
    pub keep_hours: Nanos,
    /// Keep the store at this size: the oldest minutes go first, then the oldest hours
    #[arg(long, value_name = "SIZE", default_value = "10GiB")]
    pub max_size: Size,
    /// Sum the events of tags beyond so many as '(other)'
    #[arg(long, value_name = "COUNT", default_value = "1000000")]
    pub max_tags: u64,
    /// Zone of hours, days and months, for a new store [default: UTC]
    #[arg(long, value_name = "ZONE", value_parser = Zone::named)]
    pub timezone: Option<Zone>,
    /// Bounds of the classes of response times in ms, for a new store [default: 200,500,1000,2000]
    #[arg(long, value_name = "MS,…")]
    pub classes: Option<ClassBounds>,
    /// Keep rejected lines here, with the reason [default: tally.rejected beside the ledger]
    #[arg(long, value_name = "FILE")]
    pub rejected: Option<PathBuf>,
}

/// Verbs of `tally`.
#[derive(Debug, Subcommand)]
pub enum TallyVerb {
    /// Send events to a source
    Send(SendArgs),
    /// Show the roll-ups of a tag
    Query(QueryArgs),
    /// Move roll-ups to another store
    Move(Box<MoveArgs>),
}

/// Arguments of `tally send`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith tally send --to http://127.0.0.1:8080/events 'login:1|c' 'api.get:12.5|ms'
  disksmith tally send --to gearman://127.0.0.1/events --batch 100 < events.log

It returns when all is taken: by http:// when it is committed, by gearman:// when it is queued.")]
pub struct SendArgs {
    /// The events. Without any, the lines of standard input
    pub events: Vec<String>,
    /// Where to: a file, gearman://, http:// or statsd:// (UDP)
    #[arg(long, value_name = "SOURCE")]
    pub to: source::SourceAddress,
    /// Events of one payload
    #[arg(long, value_name = "COUNT", default_value = "100")]
    pub batch: NonZeroUsize,
    /// Name that the keys of payloads begin with: the same events are counted once under the same name
    #[arg(long, value_name = "NAME")]
    pub key: Option<String>,
    /// A file with the token for http://
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// Arguments of `tally query`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith tally query login
  disksmith tally query 'api.get;host=a' --from -2h --by minute
  disksmith tally query api.get --from 2026-11-01 --by day --json
  disksmith tally query

Labels that are not named are summed. Exit status 1 says that there are no events.")]
pub struct QueryArgs {
    /// The tag, with labels if any: 'api.get;host=a'. Without it, the tags are listed
    pub tag: Option<Selection>,
    /// The store [default: tally.db beside the ledger]. Several are read as one
    #[arg(long, value_name = "STORE", value_parser = StoreParser)]
    pub store: Vec<store::StoreAddress>,
    /// A configuration whose stores are read as one [default: tally.toml beside the ledger, if it is there]
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    pub config: Option<PathBuf>,
    /// From this moment on
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "-2h",
        allow_hyphen_values = true
    )]
    pub from: MomentOrDay,
    /// Up to this moment [default: now]
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub to: Option<MomentOrDay>,
    /// Length of the periods
    #[arg(long, value_enum, default_value = "minute")]
    pub by: RollUpLevel,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tally move`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith tally move login --from mysql://tally@db1/sums --to mysql://tally@db2/sums
  disksmith tally move --until 2026-07-01 --from sqlite:tally.db --to sqlite:archive.db

Only what is over is moved: minutes of hours that are over, and whole hours, days and months. Stopped or killed, the
same command goes on: no row is lost or counted twice.")]
pub struct MoveArgs {
    /// The tag, with labels if any [default: all tags]
    pub tag: Option<Selection>,
    /// The store that has the rows: sqlite:FILE or mysql://…
    #[arg(long, value_name = "STORE", value_parser = StoreParser)]
    pub from: store::StoreAddress,
    /// The store that they go to, which is made if it is not there
    #[arg(long, value_name = "STORE", value_parser = StoreParser)]
    pub to: store::StoreAddress,
    /// Periods that begin at this moment or later [default: all]
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub since: Option<MomentOrDay>,
    /// Periods that end by this moment [default: all]
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub until: Option<MomentOrDay>,
}
