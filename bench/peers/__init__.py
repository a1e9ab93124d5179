"""`make bench-peers`: the recurrent layers against those of other libraries, in one interleaved run."""
