"""What a site of many computers adds: the way of journals to NATS JetStream and PostgreSQL.

`forward` sends rows, `streams` names them, `backbone` is the connection; `health` and `acl` are for who makes one.
`reader` reads streams, for the ledger and for a replica of the rules. `ledger` writes results to PostgreSQL,
`ledger_rows` and `ledger_schema` are its rows, `reports` asks it.

Called by: daemon/cli/backbone.py, daemon/cli/ledger.py (`feltd forward`, `site`, `ledger`, `report`), `feltd rules`
  where they are a replica, and `doctor`.
May import: journal, config.model, words, the read model's list of events that name no card, protocols; no processes.
  Nobody else imports nats or psycopg.
"""
