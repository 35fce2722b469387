"""How tests read and change threads, and see all that is stored of one."""

THREAD = {"configurable": {"thread_id": "t"}}


def call(door, graph, method, *args, **options):
    """Call a method of the state API, or its twin on the door's event loop."""
    if door.way == "sync":
        found = getattr(graph, method)(*args, **options)
        return list(found) if method == "get_state_history" else found

    async def main():
        found = getattr(graph, f"a{method}")(*args, **options)
        return [each async for each in found] if method == "get_state_history" else await found

    return door.run(main)


def rows(saver, thread="t", namespaces=((),)):
    """Return everything that is stored of a thread."""
    branches = saver.branches(thread)
    numbers = [0, *(row.branch for row in branches)]
    found = [namespace for number in numbers for namespace in saver.namespaces(thread, number, ())] or namespaces
    return (
        branches,
        saver.last_seq(thread),
        [saver.checkpoints(thread, namespace) for namespace in found],
        [saver.values(thread, ((number, 2**62),), namespace) for number in numbers for namespace in found],
        [
            saver.tasks(thread, number, namespace, step)
            for number in numbers
            for namespace in found
            for step in range(20)
        ],
        [saver.head(thread, number, namespace) for number in numbers for namespace in found],
    )


def ids(snapshots):
    return [shown.config["configurable"]["checkpoint_id"] for shown in snapshots]
