"""Schedules of large graphs by `twill gaus`, and by other schedulers."""
