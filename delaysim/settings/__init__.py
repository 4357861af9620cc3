"""What a run is: its typed settings, the rules between them, its identity."""
