"""The clock against closed forms of queueing theory and of asynchronous training. No files, no torch."""
