-- A stretch of time in which one process recorded what the disks of a host did.
CREATE TABLE recordings (
    number INTEGER PRIMARY KEY,
    host   TEXT NOT NULL,
    -- RFC 3339 in UTC with nine digits, as in runs.
    began  TEXT NOT NULL,
    -- NULL while it goes on, and when the process was killed.
    ended  TEXT,
    -- The process that records, or did: a JSON object.
    owner  TEXT NOT NULL,
    -- What is known of the host: a JSON object.
    source TEXT NOT NULL
) STRICT;

-- Samples that follow each other.
CREATE TABLE blocks (
    number    INTEGER PRIMARY KEY,
    recording INTEGER NOT NULL REFERENCES recordings ON DELETE CASCADE,
    -- 0 as they were taken, in the few seconds after that; 1 as they were taken; 60 and 3600
    -- thinned out to so many seconds.
    step      INTEGER NOT NULL,
    -- Nanoseconds from the recording's first reading to the end of the first sample: this order is
    -- kept also where the time of day was set back.
    elapsed   INTEGER NOT NULL,
    -- When the first sample's interval began, and when the last one's ended.
    began     TEXT NOT NULL,
    ended     TEXT NOT NULL,
    samples   INTEGER NOT NULL,
    -- How many figures of devices it has: one for each device and sample.
    rows      INTEGER NOT NULL,
    body      BLOB NOT NULL
) STRICT;

CREATE INDEX blocks_in_order ON blocks (recording, step, elapsed);
CREATE INDEX blocks_by_time ON blocks (step, began);

-- What was found meanwhile.
CREATE TABLE events (
    recording INTEGER NOT NULL REFERENCES recordings ON DELETE CASCADE,
    id        INTEGER NOT NULL,
    -- The end of the sample in which it was found.
    found     TEXT NOT NULL,
    -- When it was over; NULL while it lasts, or when the recording ended before.
    over      TEXT,
    -- The event: a JSON object.
    body      TEXT NOT NULL,
    PRIMARY KEY (recording, id)
) STRICT;

-- Moments that somebody gave a name.
CREATE TABLE marks (
    number INTEGER PRIMARY KEY,
    at     TEXT NOT NULL,
    host   TEXT NOT NULL,
    text   TEXT NOT NULL
) STRICT;

CREATE INDEX marks_by_time ON marks (at);
