"""Long-term memory beside threads: items under namespaces. Import a store from its module: it may need an extra."""
