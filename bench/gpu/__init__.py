"""Our GPU engine against PyTorch's cuDNN layers, and the check of a machine with a GPU."""
