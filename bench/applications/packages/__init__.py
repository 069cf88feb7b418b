"""Calls of packages' own functions, a module for each package."""
