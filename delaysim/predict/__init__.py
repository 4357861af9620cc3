"""What an operation of given GPUs takes, in hours and in delay: costs in, the clock in between. Imports no torch."""
