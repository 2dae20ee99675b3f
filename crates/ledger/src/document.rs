//! A stored document: compressed JSON, which holds a run or the state of long work.

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use record::{ImportedRun, Run};
use rusqlite::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// The form of the documents that are written. Raise it when [`Run`] changes so that an older
/// document is no longer read, or an older program would misread a new one; and give
/// [`StoredDocument::unpack`] a step from the form before.
pub(crate) const FORM: u32 = 1;
/// The form of the documents of imported runs ([`ImportedRun`]). Programs that know only measured
/// runs refuse it as a newer one.
pub(crate) const IMPORTED_FORM: u32 = 2;
/// The form of the documents of runs with [`record::JobOptions`]: a program that does not know them
/// would show Zipf-distributed offsets as uniform ones, and mixed block sizes as their mean.
pub(crate) const DETAILED_FORM: u32 = 3;
/// The form of the documents of replays ([`record::RecordedSpan`]): a program that does not know them would show the
/// load of a trace as a requested one.
pub(crate) const REPLAY_FORM: u32 = 4;
/// The newest form that this program knows.
const NEWEST: u32 = REPLAY_FORM;

/// Compression level. Beyond 6, a tenth of a percent less space costs half as much time again (measured; see the
/// crate's documentation).
const LEVEL: u8 = 6;

/// A run as the ledger keeps it.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredRun {
    /// A run that this program measured.
    Measured(Box<Run>),
    /// A run that another tool reported.
    Imported(Box<ImportedRun>),
}

/// A JSON document as the ledger stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredDocument {
    /// Number of the JSON's form, such as [`FORM`].
    pub(crate) form: u32,
    /// Size of the uncompressed JSON in bytes.
    pub(crate) size: usize,
    /// The JSON, compressed.
    pub(crate) body: Vec<u8>,
}

impl StoredDocument {
    /// Packs a run, and verifies that it can be read back unchanged.
    pub(crate) fn pack(run: &Run) -> Result<StoredDocument> {
        check_round_trip(run)?;
        let json = serde_json::to_vec(run).map_err(|error| unfaithful(run, "run", &error))?;
        let mut workloads = run.phases.iter().map(|phase| &phase.workload);
        let detailed = workloads.any(|workload| workload.details.is_some());
        let form = match (&run.replay, detailed) {
            (Some(_), _) => REPLAY_FORM,
            (None, true) => DETAILED_FORM,
            (None, false) => FORM,
        };
        Ok(StoredDocument::of_json(form, &json))
    }

    /// Packs an imported run, and verifies that it can be read back unchanged.
    pub(crate) fn pack_imported(run: &ImportedRun) -> Result<StoredDocument> {
        let refused = |why: &dyn std::fmt::Display| Error::Unfaithful {
            id: run.id.to_string(),
            detail: format!("{}: {why}", run.summary.tool),
        };
        let json = serde_json::to_vec(run).map_err(|error| refused(&error))?;
        let back: ImportedRun = serde_json::from_slice(&json).map_err(|error| refused(&error))?;
        if back != *run {
            return Err(refused(&"a figure is not a number"));
        }
        Ok(StoredDocument::of_json(IMPORTED_FORM, &json))
    }

    /// Packs JSON.
    pub(crate) fn of_json(form: u32, json: &[u8]) -> StoredDocument {
        StoredDocument {
            form,
            size: json.len(),
            body: compress_to_vec_zlib(json, LEVEL),
        }
    }

    /// The document of columns `form`, `size` and `body`, which begin at column `first`.
    pub(crate) fn of_row(row: &Row<'_>, first: usize) -> rusqlite::Result<StoredDocument> {
        Ok(StoredDocument {
            form: row.get(first)?,
            size: row.get::<_, u32>(first + 1)? as usize,
            body: row.get(first + 2)?,
        })
    }

    /// Unpacks the run `id`, which was measured or imported.
    pub(crate) fn unpack(&self, id: &str) -> Result<StoredRun> {
        let unreadable = |detail: String| Error::UnreadableRun {
            id: id.to_owned(),
            detail,
        };
        match self.form {
            ..=FORM | DETAILED_FORM | REPLAY_FORM => {
                self.read().map(Box::new).map(StoredRun::Measured)
            }
            IMPORTED_FORM => self.read().map(Box::new).map(StoredRun::Imported),
            newer => {
                return Err(Error::NewerRun {
                    id: id.to_owned(),
                    found: newer,
                    known: NEWEST,
                });
            }
        }
        .map_err(unreadable)
    }

    /// Reads the JSON as a `T`; the error is a clause that describes the damage.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> std::result::Result<T, String> {
        let json = decompress_to_vec_zlib_with_limit(&self.body, self.size)
            .map_err(|error| format!("its document is damaged ({error})"))?;
        if json.len() != self.size {
            return Err("its document is cut short".to_owned());
        }
        serde_json::from_slice(&json)
            .map_err(|error| format!("its document is not understood ({error})"))
    }
}

/// Verifies that the run can be read back unchanged. JSON has no NaN and no infinity, and a histogram whose parts
/// contradict each other is refused when read: either would make a run that can be listed and never shown.
///
/// It is read back in parts, because a long run as a whole would take its memory twice.
fn check_round_trip(run: &Run) -> Result<()> {
    same(run, "target", &run.target)?;
    same(run, "replay", &run.replay)?;
    for phase in &run.phases {
        let name = &phase.name;
        same(run, name, &phase.workload)?;
        same(run, name, &phase.cpu)?;
        same(
            run,
            name,
            &[phase.began_s, phase.seconds, phase.drain_seconds],
        )?;
        for (_, flow) in phase.directions() {
            same(run, name, flow)?;
        }
        for window in &phase.windows {
            same(run, name, window)?;
        }
    }
    Ok(())
}

fn same<T: Serialize + DeserializeOwned + PartialEq>(
    run: &Run,
    part: &str,
    piece: &T,
) -> Result<()> {
    let back: T = serde_json::to_vec(piece)
        .and_then(|json| serde_json::from_slice(&json))
        .map_err(|error| unfaithful(run, part, &error))?;
    if back == *piece {
        Ok(())
    } else {
        Err(unfaithful(run, part, &"a figure is not a number"))
    }
}

fn unfaithful(run: &Run, part: &str, why: &dyn std::fmt::Display) -> Error {
    Error::Unfaithful {
        id: run.id.to_string(),
        detail: format!("{part}: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{arbitrary, database_run, imported_run, small_run};
    use proptest::prelude::*;

    /// A document of the first form. If this can no longer be read, no run that was kept can: raise FORM and write
    /// the step between, instead of changing the fixture.
    const FORM_1: &str = include_str!("fixtures/run-form-1.json");

    fn packed(json: &str, form: u32) -> StoredDocument {
        StoredDocument {
            form,
            size: json.len(),
            body: compress_to_vec_zlib(json.as_bytes(), LEVEL),
        }
    }

    /// The measured run of a document.
    fn measured(document: &StoredDocument) -> Result<Run> {
        match document.unpack("x")? {
            StoredRun::Measured(run) => Ok(*run),
            StoredRun::Imported(run) => panic!("{run:?} was not measured"),
        }
    }

    #[test]
    fn an_imported_run_comes_back_with_what_is_not_known() {
        let run = imported_run(0);
        let document = StoredDocument::pack_imported(&run).unwrap();
        assert_eq!(document.form, IMPORTED_FORM);
        assert_eq!(
            document.unpack("x").unwrap(),
            StoredRun::Imported(Box::new(run))
        );

        let mut run = imported_run(0);
        run.summary.phases[0].flows[0].ops_per_s = Some(f64::NAN);
        let error = StoredDocument::pack_imported(&run).unwrap_err();
        assert!(matches!(error, Error::Unfaithful { .. }), "{error}");
    }

    #[test]
    fn a_document_of_the_first_form_is_still_read() {
        let run = measured(&packed(FORM_1, 1)).unwrap();
        assert_eq!(run.id.as_str(), "20261121-204512-h3dc");
        let phase = &run.phases[0];
        assert_eq!(phase.name, "log-append");
        assert_eq!(phase.windows[0].t_s, 0.0);
        let commits = phase.commit.as_ref().unwrap();
        assert_eq!(commits.ops, 7);
        assert_eq!(commits.latency.count(), 8);
        assert_eq!(run.target.device.as_deref(), Some("nvme1n1"));
    }

    #[test]
    fn a_run_with_details_is_none_that_an_older_program_reads() {
        let mut run = database_run(0, 0.001);
        assert_eq!(StoredDocument::pack(&run).unwrap().form, 1);
        run.phases[0].workload.details = Some(Box::new(record::JobOptions {
            spread: record::RandomDistribution::Zipf(1.2),
            ..record::JobOptions::default()
        }));
        let document = StoredDocument::pack(&run).unwrap();
        // The program that wrote the first form refuses all above it by number.
        assert!(document.form > 1, "{}", document.form);
        assert_eq!(measured(&document).unwrap(), run);
    }

    #[test]
    fn a_document_of_a_newer_form_is_refused_by_name() {
        let error = packed(FORM_1, NEWEST + 1).unpack("x").unwrap_err();
        assert!(matches!(error, Error::NewerRun { .. }), "{error}");
    }

    #[test]
    fn no_damage_to_a_document_passes_or_panics() {
        let run = small_run(0);
        let good = StoredDocument::pack(&run).unwrap();
        for place in 0..good.body.len() {
            let mut damaged = good.clone();
            damaged.body[place] ^= 0x10;
            // Some of zlib's header bits mean nothing; then the run comes back as it was.
            if let Ok(back) = measured(&damaged) {
                assert_eq!(back, run, "{place}");
            }
            damaged.body.truncate(place);
            assert!(damaged.unpack("x").is_err(), "{place}");
        }
        for size in [0, good.size - 1, good.size + 1] {
            let wrong = StoredDocument {
                size,
                ..good.clone()
            };
            assert!(wrong.unpack("x").is_err(), "{size}");
        }
    }

    #[test]
    fn a_figure_that_is_no_number_is_refused_when_saved_and_not_when_read() {
        let mut run = database_run(0, 0.001);
        run.phases[2].windows[1].idle_fraction = f64::NAN;
        let error = StoredDocument::pack(&run).unwrap_err();
        assert!(error.to_string().contains("page-write"), "{error}");

        let mut run = small_run(0);
        run.target.unwritten_fraction = Some(f64::INFINITY);
        assert!(matches!(
            StoredDocument::pack(&run),
            Err(Error::Unfaithful { .. })
        ));
    }

    #[test]
    fn a_run_of_the_database_suite_shrinks_to_two_fifths() {
        let packed = StoredDocument::pack(&database_run(1, 0.2)).unwrap();
        assert!(
            packed.body.len() * 5 < packed.size * 2,
            "{}",
            packed.body.len()
        );
    }

    proptest! {
        #[test]
        fn every_run_comes_back_as_it_was(run in arbitrary::run()) {
            let document = StoredDocument::pack(&run).unwrap();
            prop_assert_eq!(measured(&document).unwrap(), run);
        }
    }
}
