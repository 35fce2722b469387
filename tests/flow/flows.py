"""What tests of agents share: messages of models with what they cost, and what a trace counted."""

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
