"""Searches for schedules: their time, and what the paper and other solvers found."""
