"""What the engine's own work costs, as a ratio against LangGraph and a bare loop: `python -m benchmarks`."""
