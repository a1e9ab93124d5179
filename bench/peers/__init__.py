"""`make bench-peers`: the recurrent layers and those of other libraries, measured in turn."""
