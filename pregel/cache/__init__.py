"""What nodes have returned, kept for later runs: `compile(cache=...)` and `CachePolicy` of a node.

Import a cache from its module, as `pregel.cache.memory.InMemoryCache`.
"""
