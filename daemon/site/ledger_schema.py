"""The schema of the ledger in PostgreSQL 15 or newer, its roles, and how it changes.

`MIGRATIONS` are applied in order, each once; a change of the schema is one more of them.
"""

from typing import Final

__all__ = ["MIGRATIONS", "READER", "WRITER"]

WRITER: Final = "feltd_ledger"
READER: Final = "feltd_reports"

_FIRST = f"""
CREATE SCHEMA feltd;

-- The ends of rounds. `day` is the day of play, from the name of the round: the same for each delivery. A day made of
-- the time of arrival would let a second delivery in by another partition.
CREATE TABLE feltd.verdicts (
    day date NOT NULL, site text NOT NULL, tbl text NOT NULL,
    journal text NOT NULL, seq bigint NOT NULL, n integer NOT NULL, -- the event that caused it, and which consequence
    round text NOT NULL, kind text NOT NULL, ruleset text NOT NULL, void boolean NOT NULL,
    ended_at timestamptz NOT NULL,
    wagered numeric, paid numeric, -- smallest units; null where no stake is known, never 0
    body jsonb NOT NULL, digest bytea NOT NULL,
    PRIMARY KEY (site, tbl, day, journal, seq, n)
) PARTITION BY RANGE (day);
CREATE INDEX verdicts_of_a_round ON feltd.verdicts (site, tbl, round);

CREATE TABLE feltd.faults (
    day date NOT NULL, site text NOT NULL, tbl text NOT NULL, journal text NOT NULL, seq bigint NOT NULL,
    device text NOT NULL, code text NOT NULL, at timestamptz NOT NULL,
    PRIMARY KEY (site, tbl, day, journal, seq)
) PARTITION BY RANGE (day);

-- Two contents under one key: both are kept, the first counts, and a person decides.
CREATE TABLE feltd.disagreements (
    LIKE feltd.verdicts, seen_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (site, tbl, journal, seq, n, digest)
);

-- How far a stream was read. `made` is when the stream was made: a new stream counts from 1 again.
CREATE TABLE feltd.position (
    stream text PRIMARY KEY, made text NOT NULL, seq bigint NOT NULL, at timestamptz NOT NULL DEFAULT now()
);

-- Makes the partitions of these days. The writer may call it, and may make nothing else.
CREATE FUNCTION feltd.make_days(first date, last date) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE one date := first; parent text;
BEGIN
    IF first < '1970-01-01' OR last >= '2100-01-01' OR last - first > 400 THEN
        RAISE EXCEPTION 'days % to %: at most 400 between 1970 and 2100', first, last;
    END IF;
    PERFORM pg_advisory_xact_lock(7206538);
    WHILE one <= last LOOP
        FOREACH parent IN ARRAY ARRAY['verdicts', 'faults'] LOOP
            IF to_regclass(format('feltd.%s_%s', parent, to_char(one, 'YYYYMMDD'))) IS NULL THEN
                EXECUTE format('CREATE TABLE feltd.%s_%s PARTITION OF feltd.%s FOR VALUES FROM (%L) TO (%L)',
                    parent, to_char(one, 'YYYYMMDD'), parent, one, one + 1);
            END IF;
        END LOOP;
        one := one + 1;
    END LOOP;
END $$;
REVOKE ALL ON FUNCTION feltd.make_days FROM PUBLIC;

-- The last verdict of each round. Reports read it and always name days.
CREATE VIEW feltd.rounds AS
    SELECT DISTINCT ON (day, site, tbl, round) day, site, tbl, round, kind, ruleset, void, ended_at, wagered, paid
    FROM feltd.verdicts ORDER BY day, site, tbl, round, ended_at DESC, seq DESC, n DESC;

DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{WRITER}') THEN CREATE ROLE {WRITER} LOGIN; END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{READER}') THEN CREATE ROLE {READER} LOGIN; END IF;
END $$;
GRANT USAGE ON SCHEMA feltd TO {WRITER}, {READER};
GRANT SELECT, INSERT ON feltd.verdicts, feltd.faults, feltd.disagreements TO {WRITER};
GRANT SELECT, INSERT, UPDATE ON feltd.position TO {WRITER};
GRANT EXECUTE ON FUNCTION feltd.make_days TO {WRITER};
GRANT SELECT ON feltd.rounds, feltd.verdicts, feltd.faults, feltd.disagreements, feltd.position TO {READER};
"""  # noqa: S608 - constants

_ROLL_UP = f"""
-- Sums of closed days, by hour of the end, for reports over months. `rolled` names the days whose sums are right.
CREATE TABLE feltd.hold_hour (
    day date NOT NULL, hour timestamp NOT NULL, site text NOT NULL, tbl text NOT NULL, ruleset text NOT NULL,
    rounds bigint NOT NULL, voided bigint NOT NULL, corrected bigint NOT NULL, with_stakes bigint NOT NULL,
    wagered numeric, paid numeric,
    PRIMARY KEY (day, hour, site, tbl, ruleset)
);
CREATE TABLE feltd.rolled (day date PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());

CREATE VIEW feltd.hold_of_rounds AS
    SELECT day, date_trunc('hour', ended_at AT TIME ZONE 'UTC') AS hour, site, tbl, ruleset,
        count(*) AS rounds, count(*) FILTER (WHERE void) AS voided,
        count(*) FILTER (WHERE kind = 'corrected') AS corrected, count(wagered) AS with_stakes,
        sum(wagered) AS wagered, sum(paid) AS paid
    FROM feltd.rounds GROUP BY 1, 2, 3, 4, 5;

-- Makes the sums of a day. No writer adds a row to the day meanwhile.
CREATE FUNCTION feltd.roll_up(one date) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7206539);
    DELETE FROM feltd.hold_hour WHERE day = one;
    INSERT INTO feltd.hold_hour SELECT * FROM feltd.hold_of_rounds WHERE day = one;
    INSERT INTO feltd.rolled VALUES (one) ON CONFLICT (day) DO UPDATE SET at = now();
END $$;

-- Called with the rows of a batch, in its transaction: the sums of their days, where there are some, are made again.
CREATE FUNCTION feltd.reopen(days date[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7206539);
    DELETE FROM feltd.rolled WHERE day = ANY(days);
END $$;
REVOKE ALL ON FUNCTION feltd.roll_up, feltd.reopen FROM PUBLIC;
GRANT EXECUTE ON FUNCTION feltd.roll_up, feltd.reopen TO {WRITER};
GRANT SELECT ON feltd.rolled TO {WRITER};
GRANT SELECT ON feltd.hold_hour, feltd.rolled, feltd.hold_of_rounds TO {READER};
"""  # noqa: S608 - constants

_JACKPOTS = f"""
-- The entries in the books of jackpots: what each posts, in 1/unit of a minor unit; the postings sum to zero. Not in
-- partitions: a copy of a journal that was put back would bring other entries under the same numbers on another day.
CREATE TABLE feltd.jackpot_entries (
    day date NOT NULL, site text NOT NULL, pool text NOT NULL, journal text NOT NULL, seq bigint NOT NULL,
    kind text NOT NULL, at timestamptz NOT NULL, tbl text NOT NULL, round text NOT NULL,
    unit numeric NOT NULL, players numeric NOT NULL, house numeric NOT NULL, transferred numeric NOT NULL,
    visible numeric NOT NULL, hidden numeric NOT NULL, overflow numeric NOT NULL,
    pending numeric NOT NULL, paid numeric NOT NULL, margin numeric NOT NULL,
    body jsonb NOT NULL, digest bytea NOT NULL,
    PRIMARY KEY (site, pool, journal, seq),
    CHECK (players + house + transferred + visible + hidden + overflow + pending + paid + margin = 0)
);
CREATE INDEX jackpot_entries_of_a_day ON feltd.jackpot_entries (day);
CREATE TABLE feltd.jackpot_disagreements (
    LIKE feltd.jackpot_entries, seen_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (site, pool, journal, seq, digest)
);

-- Sums for reports, exact in each unit. Money that goes into the pool's accounts comes from players and house.
CREATE VIEW feltd.jackpot_sums AS
    SELECT day, date_trunc('hour', at AT TIME ZONE 'UTC') AS hour, site, pool, tbl, kind, unit, count(*) AS entries,
        -sum(players) AS staked, -sum(house) AS from_house, sum(transferred) AS to_other_pools,
        sum(visible + hidden + overflow) AS to_pool, sum(pending) AS pending, sum(paid) AS paid, sum(margin) AS margin
    FROM feltd.jackpot_entries GROUP BY 1, 2, 3, 4, 5, 6, 7;

GRANT SELECT, INSERT ON feltd.jackpot_entries, feltd.jackpot_disagreements TO {WRITER};
GRANT SELECT ON feltd.jackpot_entries, feltd.jackpot_disagreements, feltd.jackpot_sums TO {READER};
"""  # noqa: S608 - constants

_CORRECTIONS: Final = f"""
-- The sums of days that are not closed. A verdict counts unless a later correction of its round is there: corrections
-- are few and have an index of their own, so that no day has to be sorted. A function, because its days are known on
-- both sides: of other days no partition is read.
CREATE INDEX corrections ON feltd.verdicts (day, site, tbl, round) WHERE kind = 'corrected';
CREATE FUNCTION feltd.hold_of_days(days date[]) RETURNS SETOF feltd.hold_hour LANGUAGE sql STABLE AS $$
    SELECT day, date_trunc('hour', ended_at AT TIME ZONE 'UTC') AS hour, site, tbl, ruleset,
        count(*) AS rounds, count(*) FILTER (WHERE void) AS voided,
        count(*) FILTER (WHERE kind = 'corrected') AS corrected, count(wagered) AS with_stakes,
        sum(wagered) AS wagered, sum(paid) AS paid
    FROM feltd.verdicts one WHERE day = ANY(days) AND NOT EXISTS (
        SELECT FROM feltd.verdicts later
        WHERE later.kind = 'corrected' AND later.day = ANY(days) AND later.day = one.day AND later.site = one.site
            AND later.tbl = one.tbl AND later.round = one.round
            AND (later.ended_at, later.seq, later.n) > (one.ended_at, one.seq, one.n)
    ) GROUP BY 1, 2, 3, 4, 5
$$;
CREATE OR REPLACE FUNCTION feltd.roll_up(one date) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7206539);
    DELETE FROM feltd.hold_hour WHERE day = one;
    INSERT INTO feltd.hold_hour SELECT * FROM feltd.hold_of_days(ARRAY[one]);
    INSERT INTO feltd.rolled VALUES (one) ON CONFLICT (day) DO UPDATE SET at = now();
END $$;
DROP VIEW feltd.hold_of_rounds, feltd.rounds;
REVOKE ALL ON FUNCTION feltd.hold_of_days FROM PUBLIC;
GRANT EXECUTE ON FUNCTION feltd.hold_of_days TO {READER};
"""  # noqa: S608 - constants

_TURNOVER: Final = """
-- Stakes of void rounds go back: they are no turnover, on the floor's page neither. The sums are made again.
CREATE OR REPLACE FUNCTION feltd.hold_of_days(days date[]) RETURNS SETOF feltd.hold_hour LANGUAGE sql STABLE AS $$
    SELECT day, date_trunc('hour', ended_at AT TIME ZONE 'UTC') AS hour, site, tbl, ruleset,
        count(*) AS rounds, count(*) FILTER (WHERE void) AS voided,
        count(*) FILTER (WHERE kind = 'corrected') AS corrected, count(wagered) FILTER (WHERE NOT void) AS with_stakes,
        sum(wagered) FILTER (WHERE NOT void) AS wagered, sum(paid) FILTER (WHERE NOT void) AS paid
    FROM feltd.verdicts one WHERE day = ANY(days) AND NOT EXISTS (
        SELECT FROM feltd.verdicts later
        WHERE later.kind = 'corrected' AND later.day = ANY(days) AND later.day = one.day AND later.site = one.site
            AND later.tbl = one.tbl AND later.round = one.round
            AND (later.ended_at, later.seq, later.n) > (one.ended_at, one.seq, one.n)
    ) GROUP BY 1, 2, 3, 4, 5
$$;
DELETE FROM feltd.rolled;
"""

MIGRATIONS: Final = (_FIRST, _ROLL_UP, _JACKPOTS, _CORRECTIONS, _TURNOVER)
