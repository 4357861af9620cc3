"""The command line: compose a configuration, check it, hand it to its mode; and the commands beside runs."""
