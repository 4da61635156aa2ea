"""What people read, in three languages: catalogues, money, numbers, dates and citations.

Called by: console, journal, consumer, jackpots and the command line.
May import: protocols.
"""
