//! The suites, by name.

/// A suite of phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Suite {
    /// I/O of a database.
    #[default]
    Database,
    /// sysbench fileio.
    Sysbench,
    /// Bonnie++.
    Bonnie,
    /// Random reads, as seeker makes them.
    Seek,
    /// Sequential reads in zones, as ZCAV makes them.
    Zones,
    /// Search for the highest rate that keeps a latency.
    Curve,
}

impl Suite {
    /// All suites, in the order in which they are listed.
    pub(crate) const ALL: [Suite; 6] = [
        Suite::Database,
        Suite::Sysbench,
        Suite::Bonnie,
        Suite::Seek,
        Suite::Zones,
        Suite::Curve,
    ];

    /// Name on the command line and in the ledger.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Suite::Database => "database",
            Suite::Sysbench => "sysbench",
            Suite::Bonnie => "bonnie",
            Suite::Seek => "seek",
            Suite::Zones => "zones",
            Suite::Curve => "curve",
        }
    }

    /// Description in a line of help.
    pub(crate) fn help(self) -> &'static str {
        match self {
            Suite::Database => "The I/O of a database: pages, a log, scans and loads",
            Suite::Sysbench => {
                "sysbench fileio: random reads and writes of 16 KiB, by 1 and by 64 threads"
            }
            Suite::Bonnie => {
                "Bonnie++: one large file byte by byte, in blocks and at random, and many small ones; \
                 through the page cache"
            }
            Suite::Seek => "seeker: random reads, with 1 to 64 in flight",
            Suite::Zones => "ZCAV: sequential reads in 64 zones, from the first to the last",
            Suite::Curve => "The highest request rate that meets --p99",
        }
    }
}
