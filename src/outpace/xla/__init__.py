"""What the graphs that XLA compiles cost: the operators of a jaxpr, and what is fused into one kernel."""
