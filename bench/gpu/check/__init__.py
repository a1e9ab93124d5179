"""gpu_check: one command that proves the GPU engine on the machine where it runs."""
