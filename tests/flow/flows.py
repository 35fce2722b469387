"""What tests share: messages of models with what they cost, what a trace counted, and a flow with branches."""

from pregel import interrupt
from pregel.graph.flow import FlowGraph
from pregel.graph.messages import AIMessage


def said(text, given=0, made=0, calls=(), **more):
    """A model's message, with what it cost; `calls` are names of tools, or pairs of id and name."""
    pairs = [call if isinstance(call, tuple) else (call, call) for call in calls]
    return AIMessage(
        text,
        tool_calls=[{"name": name, "args": {}, "id": key} for key, name in pairs],
        usage_metadata={"input_tokens": given, "output_tokens": made, "total_tokens": given + made, **more},
    )


def tokens(metrics):
    """What a trace counted, without the time."""
    return (metrics.model_calls, metrics.tool_calls, metrics.input_tokens, metrics.output_tokens, metrics.total_tokens)


class Log(list):
    """What ran, outside of all state."""

    def activity(self, name, asks=None):
        """Return an activity that writes its name, after it has asked something, if it does."""

        def act(ctx):
            self.append(name)
            if asks is not None:
                ctx[f"{name}.answer"] = interrupt(asks)
            ctx[name] = "done"

        return act


def branches(log):
    """Two branches, one of which asks, and a join."""
    return (
        FlowGraph("branches")
        .add_activity("start", log.activity("start"), to="fork")
        .add_parallel("fork", ["a", "b"])
        .add_activity("a", log.activity("a", asks="A?"), to="join")
        .add_activity("b", log.activity("b"), to="join")
        .add_join("join", to="x")
        .add_activity("x", log.activity("x"))
    )
