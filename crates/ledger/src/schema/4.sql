-- What other tools reported, so that the same output is kept once. Runs that were imported before are not here.
CREATE TABLE reports (
    run  INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    -- A hash of what was reported (report.rs). Equal ones are compared in full.
    hash INTEGER NOT NULL
) STRICT;

CREATE INDEX reports_by_hash ON reports (hash);
