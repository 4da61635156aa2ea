"""What a site of many computers adds: the way of journals to the backbone, NATS JetStream.

`forward` sends rows, `streams` names them, `backbone` is the connection; `health` and `acl` are for who makes one.

Called by: `feltd forward`, `feltd site` (daemon/cli/backbone.py) and `feltd doctor`.
May import: journal, config.model, words, the read model's list of events that name no card, protocols; no processes.
  Nobody else imports nats.
"""
