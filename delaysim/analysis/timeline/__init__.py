"""A finished run's clock as pictures: a trace for Perfetto, a Gantt chart, delays, lengths. No torch."""
