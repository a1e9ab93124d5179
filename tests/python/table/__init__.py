"""Every row of the behaviour that the package promises, from the description alone."""
