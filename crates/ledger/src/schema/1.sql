-- What a list shows of a run.
CREATE TABLE runs (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    -- RFC 3339 in UTC with nine digits, so that the order of the text is the order of time.
    started     TEXT NOT NULL,
    host        TEXT NOT NULL,
    target      TEXT NOT NULL,
    -- The block device below, such as nvme1n1.
    device      TEXT,
    suite       TEXT NOT NULL,
    -- The names of the phases, a JSON array.
    phases      TEXT NOT NULL,
    -- The tool whose output was imported; NULL when measured by disksmith.
    tool        TEXT,
    interrupted INTEGER NOT NULL
) STRICT;

CREATE INDEX runs_by_start ON runs (started);

-- What was measured.
CREATE TABLE documents (
    run  INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    -- The form of the document, raised when the record of a run changes.
    form INTEGER NOT NULL,
    -- Bytes of JSON before compression.
    size INTEGER NOT NULL,
    -- The JSON, zlib. In the sqlite3 shell: SELECT sqlar_uncompress(body, size) FROM documents.
    body BLOB NOT NULL
) STRICT;

-- What was concluded from it.
CREATE TABLE conclusions (
    run       INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    verdict   TEXT NOT NULL,
    -- A JSON array.
    findings  TEXT NOT NULL,
    -- The version of the program that concluded.
    disksmith TEXT NOT NULL
) STRICT;
