"""The backends that have names: each file is one."""
