//! Facts about the host, the measured figures of its disks, and its database.

pub(crate) mod backup;
pub(crate) mod evidence;
pub(crate) mod host;
pub(crate) mod limits;
pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod server;

use backup::Safety;
use evidence::Evidence;
use host::HostFacts;
use mysql::Mysql;
use postgres::Postgres;

use crate::sql::ExplainedStatements;

/// Facts that checks judge. A part that was not requested is `None`, and its checks return no judgements.
pub(crate) struct Facts {
    pub(crate) host: HostFacts,
    pub(crate) evidence: Evidence,
    pub(crate) mysql: Option<Mysql>,
    pub(crate) postgres: Option<Postgres>,
    pub(crate) sql: Option<ExplainedStatements>,
    pub(crate) safety: Option<Safety>,
}
