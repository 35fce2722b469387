"""What tests of workflows share."""

from pregel.graph.workflow.event import NO_OUTPUT, shown

__all__ = ["deltas", "events", "outputs", "run", "thread"]


def thread(name="t"):
    """The config of a thread."""
    return {"configurable": {"thread_id": name}}


def run(door, workflow, node_input=None, state=None, **options):
    """Run a workflow once, and return its result."""
    return door.invoke(workflow.compile(**options), {"node_input": node_input, "state": state or {}})


def events(graph, config=None):
    """The events of a thread but those of the user, as users read them."""
    stored = graph.get_state(config or thread()).values["@events"]
    return [shown(event, number) for number, event in enumerate(stored, 1) if event.author != "user"]


def deltas(graph, config=None):
    """The changes of the state that a thread's events tell of."""
    return [event.actions.state_delta for event in events(graph, config)]


def outputs(graph, config=None):
    """The outputs that a thread's events tell of, by node."""
    return [
        (event.path.split("/", 1)[1], event.output) for event in events(graph, config) if event.output is not NO_OUTPUT
    ]
