"""How well recall works, measured: data sets, metrics, profiles side by side."""
