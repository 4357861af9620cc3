"""Answer checking: where an answer stands, what it says, and whether it is right. Imports nothing heavy."""
