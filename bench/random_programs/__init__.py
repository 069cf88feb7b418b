"""Random Triton programs: what stock Triton makes of them, what Twill makes of them, and what an interpreter computes."""
