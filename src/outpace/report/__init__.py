"""What a person sees: live progress and the result as text."""
