"""What tests of workflows share."""

from pregel.graph.workflow.event import NO_OUTPUT, shown

__all__ = ["Way", "deltas", "events", "outputs", "run", "thread"]


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


class Way:
    """Runs a workflow in one of the three ways."""

    def __init__(self, door):
        self.door = door

    def events(self, runner, *args, **options):
        """Return the events of a run, with the error that ended it, if one did, as the last item."""
        found = []
        try:
            if self.door.way == "sync":
                for event in runner.run(*args, **options):
                    found.append(event)
            else:

                async def main():
                    async for event in runner.arun(*args, **options):
                        found.append(event)

                self.door.run(main)
        except Exception as error:
            found.append(error)
        return found
