"""A site of many computers: sends journals to NATS JetStream and from there to PostgreSQL.

`forward` sends rows, `streams` names them, `backbone` is the connection; `health` and `acl` serve its set-up.
`reader` reads streams, for the ledger and for a replica of the rules. `ledger` writes results to PostgreSQL,
`ledger_rows` and `ledger_schema` are its rows, `reports` reads it.

Called by: daemon/cli/backbone.py, daemon/cli/ledger.py (`feltd forward`, `site`, `ledger`, `report`), `feltd rules`
  where they are a replica, and `doctor`.
May import: journal, config.model, words, the read model's list of events that name no card, protocols; no processes. No
other package imports nats or psycopg.
"""
