//! The arguments of `serve`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use record::Nanos;
use tally::store;
use watch::args::ListenAddress;

use crate::http::tokens::Role;
use crate::sources::prometheus::{Address, NamedExpression};

/// Arguments of `serve`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  disksmith serve --open
  disksmith serve --tally mysql://tally@db/sums --prometheus http://prometheus:9090
  disksmith serve --series 'evictions=rate(redis_evicted_keys_total[1m])' --prometheus http://prometheus:9090
  disksmith serve token read --token-file /etc/disksmith/tokens
  disksmith serve --listen 0.0.0.0:9188 --token-file /etc/disksmith/tokens --tls-cert cert.pem --tls-key key.pem

Disks of this host come from its recordings ('disksmith watch --record'), response times from 'disksmith tally'.
It runs until it is stopped."
)]
pub struct ServeArgs {
    /// Task other than serving
    #[command(subcommand)]
    pub verb: Option<ServeVerb>,
    /// Address to serve on, or a port on the loopback
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9188")]
    pub listen: ListenAddress,
    /// Open the page in a browser
    #[arg(long)]
    pub open: bool,
    /// Response times: sqlite:FILE, mysql://user@host:3306/database or clickhouse://user@host:8123/database [default:
    /// tally.db beside the ledger]. Several are read as one
    #[arg(long, value_name = "STORE")]
    pub tally: Vec<store::StoreAddress>,
    /// Disks of other hosts: a server with Prometheus' query API that scrapes 'disksmith watch --prometheus'
    #[arg(long, value_name = "URL")]
    pub(crate) prometheus: Option<Address>,
    /// Another series of that server, which a verdict may name. May be given several times
    #[arg(long, value_name = "NAME=PROMQL", requires = "prometheus")]
    pub(crate) series: Vec<NamedExpression>,
    /// Hashes of the tokens that may read and write; 'disksmith serve token' adds one
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Serve only this peer, a proxy that terminates TLS
    #[arg(long, value_name = "ADDRESS", conflicts_with = "tls_cert")]
    pub behind_proxy: Option<IpAddr>,
    /// A name by which browsers reach this server, beside those of the address and of the host. May be given several
    /// times
    #[arg(long, value_name = "NAME")]
    pub name: Vec<String>,
    /// Length of the slots that verdicts compare
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub slot: Nanos,
}

/// Verbs of `serve`.
#[derive(Debug, Subcommand)]
pub enum ServeVerb {
    /// Make a token: its hash goes to the file, and the token itself is printed once
    #[command(
        after_help = "Example: disksmith serve token write --token-file /etc/disksmith/tokens --name ci"
    )]
    Token {
        /// Role of the token; write includes read
        #[arg(value_enum)]
        role: TokenRole,
        /// The file, which is created if it does not exist
        #[arg(long, value_name = "FILE")]
        token_file: PathBuf,
        /// A name for it, to find its line again
        #[arg(long, value_name = "NAME", default_value = "")]
        name: String,
    },
}

/// Role of a token, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TokenRole {
    /// See all.
    Read,
    /// See all, and set markers.
    Write,
}

impl TokenRole {
    /// The role.
    pub(crate) fn role(self) -> Role {
        match self {
            TokenRole::Read => Role::Read,
            TokenRole::Write => Role::Write,
        }
    }
}

impl FromStr for NamedExpression {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedExpression, String> {
        match text.split_once('=') {
            Some((name, query)) if !name.trim().is_empty() && !query.trim().is_empty() => {
                Ok(NamedExpression {
                    name: name.trim().to_owned(),
                    query: query.trim().to_owned(),
                })
            }
            _ => Err(format!(
                "'{text}' names no series; write it as NAME=PROMQL, such as 'evictions=rate(redis_evicted_keys_total[1m])'"
            )),
        }
    }
}
