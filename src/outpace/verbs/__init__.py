"""What outpace does: one module per command, each with the Python function of the same name."""
