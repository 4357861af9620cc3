"""Logs of real systems as one ledger of responses. Reads files, executes nothing in them, imports no torch."""
