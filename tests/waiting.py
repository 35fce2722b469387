"""What must not wait for ever."""

import threading


def finishes(call):
    """Return what a call gives that must not wait for ever; a thread that does is left behind."""
    results = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    thread.join(20)
    assert results, "it waits for ever"
    return results[0]
