"""Training scripts that time themselves."""
