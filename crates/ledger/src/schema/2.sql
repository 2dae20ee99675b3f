-- Where long work stands, so that a kill or a power cut can be repaired or resumed.
CREATE TABLE work (
    number   INTEGER PRIMARY KEY,
    -- What is done, such as array or sweep.
    kind     TEXT NOT NULL,
    -- To what: an array's UUID, a volume's serial number, a sweep's id.
    key      TEXT NOT NULL,
    -- The name of the host of its owner.
    host     TEXT NOT NULL,
    -- RFC 3339 in UTC with nine digits, as in runs.
    began    TEXT NOT NULL,
    changed  TEXT NOT NULL,
    -- NULL while it is unfinished.
    finished TEXT,
    -- The process that works on it, or did: a JSON object.
    owner    TEXT NOT NULL,
    -- The form of the document, counted for each kind of work by itself.
    form     INTEGER NOT NULL,
    -- Bytes of JSON before compression.
    size     INTEGER NOT NULL,
    -- The JSON, zlib.
    body     BLOB NOT NULL,
    UNIQUE (kind, key)
) STRICT;
