"""Verdicts of `twill fit`, and what Triton's compiler allocates."""
