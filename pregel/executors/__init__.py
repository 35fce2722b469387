"""Executors that run the code of nodes elsewhere: for `executor=` of `add_node` and `compile`.

Any `concurrent.futures.Executor` does, such as Dask's `client.get_executor()`. `process` has one whose worker processes
die alone, `ray` one for Ray.
"""
