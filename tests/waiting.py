"""What must not wait for ever."""

import threading

#: Seconds after which a test that hangs fails.
PATIENCE = 30


def finishes(call):
    """Return what a call gives that must not wait for ever; a thread that does is left behind."""
    results = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert results, "it waits for ever"
    return results[0]
