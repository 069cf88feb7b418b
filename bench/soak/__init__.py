"""A serving loop under `TWILL=1` for minutes, while contests, records and kernels are thrown away and processes begin anew."""
