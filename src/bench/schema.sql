-- The store of mica bench. PRAGMA user_version is the version of this schema; store.c refuses a newer one.
-- A run is one row; its replies and samples are added while it lasts, each in a transaction of its own: a crash loses what came after the last one.
CREATE TABLE IF NOT EXISTS run (
    id      TEXT PRIMARY KEY,
    created INTEGER NOT NULL,                 -- Unix seconds
    name    TEXT NOT NULL,                    -- "llama.cpp cpu"
    state   TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed', 'interrupted')),
    head    TEXT NOT NULL,                    -- JSON: conditions, versions, protocol
    summary TEXT                              -- JSON: what was reported; derived from the rest
);
CREATE TABLE IF NOT EXISTS series (
    run          TEXT NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    seq          INTEGER NOT NULL,
    phase        TEXT NOT NULL,
    exact        INTEGER NOT NULL,
    prompt_asked INTEGER NOT NULL,
    n_asked      INTEGER NOT NULL,
    seed         INTEGER NOT NULL,
    started_ns   INTEGER NOT NULL,
    done_ns      INTEGER NOT NULL,
    prompt_n     INTEGER NOT NULL,
    cached_n     INTEGER NOT NULL,            -- -1: the runtime does not count
    gen_n        INTEGER NOT NULL,
    reason       TEXT NOT NULL,
    times        BLOB NOT NULL,               -- see src/bench/pack.c
    tokens       BLOB NOT NULL,
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS samples (
    run  TEXT NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    seq  INTEGER NOT NULL,
    data BLOB NOT NULL,                       -- zstd of a JSON array
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;
-- The lowest temperature that each zone of a machine ever had: what "cooled down" is measured against.
CREATE TABLE IF NOT EXISTS idle_zone (
    machine TEXT NOT NULL,
    zone    TEXT NOT NULL,
    celsius REAL NOT NULL,
    PRIMARY KEY (machine, zone)
) WITHOUT ROWID;
-- A campaign, and the shards that its tokens have been cut into. A shard is "pending" from when it was cut until its result is there; both change in
-- one transaction. The blobs stand last: sums over the columns in front of them do not read them.
CREATE TABLE IF NOT EXISTS campaign (
    id       TEXT PRIMARY KEY,                -- SHA-256 of manifest and model
    created  INTEGER NOT NULL,                -- Unix seconds
    name     TEXT NOT NULL,
    model    TEXT NOT NULL,                   -- SHA-256
    tokens   INTEGER NOT NULL,
    manifest TEXT NOT NULL                    -- JSON
);
CREATE TABLE IF NOT EXISTS shard (
    campaign      TEXT NOT NULL REFERENCES campaign(id),
    seq           INTEGER NOT NULL,
    id            TEXT NOT NULL UNIQUE,
    input         TEXT NOT NULL,              -- SHA-256 of all that decides the result
    first_item    INTEGER NOT NULL,
    n_items       INTEGER NOT NULL,
    before        INTEGER NOT NULL,           -- planned tokens of all shards in front of this one
    planned       INTEGER NOT NULL,           -- tokens
    state         TEXT NOT NULL CHECK (state IN ('pending', 'done')),
    started       INTEGER,                    -- Unix seconds
    wall_ns       INTEGER,
    prompt_tokens INTEGER,
    cached_tokens INTEGER,
    reply_tokens  INTEGER,
    joules        REAL,                       -- NULL: no source
    head          TEXT,                       -- JSON: what computed it
    answers       BLOB,                       -- see src/bench/campaign_store.c
    times         BLOB,
    tokens        BLOB,
    samples       BLOB,
    PRIMARY KEY (campaign, seq)
);
