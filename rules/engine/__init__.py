"""The common part of all rulesets: verdicts, results, the life of a round, money, late events."""
