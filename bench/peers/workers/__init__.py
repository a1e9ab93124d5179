"""The sides of a comparison, each a program that speaks the protocol of `server`."""
