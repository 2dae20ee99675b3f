//! The checks, one file per subject. A check is added as a row in the table of its file.

mod arrays;
mod file_systems;
mod files;
mod memory;
mod mysql_commit;
mod mysql_innodb;
mod mysql_limits;
mod placement;
mod postgres_planner;
mod postgres_wal;
mod queues;
mod replicas;
mod safety;
mod sql;
#[cfg(test)]
mod tests;
mod volumes;

use crate::check::Check;

/// All checks, in the order of the modules.
pub(crate) fn all() -> impl Iterator<Item = &'static Check> {
    [
        files::CHECKS,
        queues::CHECKS,
        memory::CHECKS,
        file_systems::CHECKS,
        arrays::CHECKS,
        volumes::CHECKS,
        mysql_innodb::CHECKS,
        mysql_commit::CHECKS,
        mysql_limits::CHECKS,
        sql::CHECKS,
        postgres_planner::CHECKS,
        postgres_wal::CHECKS,
        placement::CHECKS,
        replicas::CHECKS,
        safety::CHECKS,
    ]
    .into_iter()
    .flatten()
}
