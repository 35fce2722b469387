"""Loops that perform what the superstep machine asks for. No decision lives here."""
