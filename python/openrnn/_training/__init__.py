"""Training loops, learning-rate schedules and reports; `openrnn.train` shows them."""
