"""A support desk: agents that hand a customer over to one another, and a refund that a person approves.

    python -m examples.desk FILE "my lamp is broken, I want my money back"   # ends with the question
    python -m examples.desk FILE --answer approve                           # goes on, in a process of its own
    python -m examples.desk FILE --answer edit 20                           # or: refund 20 euro
    python -m examples.desk FILE --answer reject "the warranty is over"     # or: refund nothing, and say why

Without a network the models answer by rules, so that a new process goes on as the old one would have;
PREGEL_MODEL=openai:gpt-5 (with OPENAI_API_KEY and OPENAI_BASE_URL as the openai client reads them) makes a real model
answer.
"""

from __future__ import annotations

import json
import operator
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

from pregel import START, Command, MessagesState, SqliteSaver, StateGraph
from pregel.graph.agent import AgentState, ScriptedModel, ToolRuntime, create_agent
from pregel.graph.agent.handoff import handoff_tool
from pregel.graph.agent.middleware import HumanInTheLoopMiddleware
from pregel.graph.agent.models import named_model
from pregel.graph.messages import AIMessage, ToolMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pregel import Interrupt
    from pregel.checkpoint.base import Checkpointer
    from pregel.graph.compile import CompiledStateGraph

CONFIG: Final = {"configurable": {"thread_id": "desk"}}
ORDERS: Final[tuple[dict[str, Any], ...]] = (
    {"order": "A17", "what": "lamp", "euro": 49.0, "days_ago": 12},
    {"order": "B03", "what": "kettle", "euro": 35.0, "days_ago": 400},
)


class Desk(MessagesState):
    """What the desk knows."""

    refunds: Annotated[list[str], operator.add]


class BillingState(AgentState[Any]):
    """What billing adds to it."""

    refunds: Annotated[list[str], operator.add]


# --- Tools ------------------------------------------------------------------------------------------------------------


def find_order(what: str) -> dict[str, Any]:
    """Find what a customer has bought.

    Args:
        what: The thing, in one word.
    """
    return next((order for order in ORDERS if order["what"] == what.lower()), {"error": f"nobody bought a {what}"})


def send_part(order: str) -> str:
    """Send a spare part for something that is broken, for free.

    Args:
        order: The order's number.
    """
    return f"a part for {order} is on its way"


def refund(order: str, euro: float, runtime: ToolRuntime[Any, Any]) -> Command[Any]:  # noqa: D417 - no model gives it
    """Give a customer money back.

    Args:
        order: The order's number.
        euro: How much.
    """
    # A bank would be given `runtime.task_id`: it is the same if the process dies here and the task runs again.
    done = f"{euro:.2f} euro for {order}"
    answer = ToolMessage(f"refunded {done}", tool_call_id=runtime.tool_call_id or "", name="refund")
    return Command(update={"messages": [answer], "refunds": [done]})


# --- What answers where there is no real model: rules that look at nothing but the conversation -----------------------


def calls(tool: str, messages: Sequence[Any], **args: Any) -> AIMessage:
    """Return the message of a model that calls a tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": args, "id": f"{tool}-{len(messages)}"}])


def asked(messages: Sequence[Any]) -> str:
    """Return what the customer said last."""
    return next(str(message.text).lower() for message in reversed(messages) if message.type == "human")


def thing(messages: Sequence[Any]) -> str:
    """Return what the customer speaks of."""
    return next((order["what"] for order in ORDERS if order["what"] in asked(messages)), "thing")


def found(messages: Sequence[Any]) -> Any:
    """Return the order that was looked up since the customer spoke, or None."""
    for message in reversed(messages):
        if message.type == "human":
            return None
        if message.type == "tool" and message.name == "find_order":
            return json.loads(message.text)
    return None


def receive(messages: Sequence[Any]) -> str | AIMessage:
    """Send the customer to whoever can help."""
    if "broken" in asked(messages):
        return calls("transfer_to_repairs", messages)
    if "money" in asked(messages):
        return calls("transfer_to_billing", messages)
    return "What is broken, or what do you want your money back for?"


def repair(messages: Sequence[Any]) -> str | AIMessage:
    """Send a part, if that is what the customer wants."""
    order = found(messages)
    if messages[-1].name == "send_part":
        return f"Good news: {messages[-1].text}."
    if "money" in asked(messages):
        return calls("transfer_to_billing", messages)
    if order is None:
        return calls("find_order", messages, what=thing(messages))
    return calls("send_part", messages, order=order["order"]) if "order" in order else f"I am sorry: {order['error']}."


def bill(messages: Sequence[Any]) -> str | AIMessage:
    """Refund the price."""
    order, last = found(messages), messages[-1]
    if last.type == "tool" and last.name == "refund":
        return f"I am sorry: {last.text}" if last.status == "error" else f"It is done: {last.text}."
    if order is None:
        return calls("find_order", messages, what=thing(messages))
    if "order" not in order:
        return f"I am sorry: {order['error']}."
    return calls("refund", messages, order=order["order"], euro=order["euro"])


# --- The desk ---------------------------------------------------------------------------------------------------------


def model_of(rules: Callable[..., Any]) -> Any:
    """Return the model that the environment names, or one that answers by rules."""
    name = os.environ.get("PREGEL_MODEL")
    return named_model(name) if name else ScriptedModel(rules)


def described(call: Any, state: Any, runtime: Any) -> str:  # noqa: ARG001 - what the middleware gives
    """Say what a person is asked to approve."""
    return f"refund {call['args'].get('euro')} euro for order {call['args'].get('order')}?"


def support_desk(saver: Checkpointer) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the desk, stored there."""
    to_repairs = handoff_tool("repairs", description="Hand over to repairs, who send spare parts.")
    to_billing = handoff_tool("billing", description="Hand over to billing, who give money back.")
    reception = create_agent(
        model_of(receive),
        [to_repairs, to_billing],
        system_prompt="You receive customers. Hand them over to repairs or billing; ask if you don't know to whom.",
        name="reception",
    )
    repairs = create_agent(
        model_of(repair),
        [find_order, send_part, to_billing],
        system_prompt="You send spare parts. Who wants money back is for billing.",
        name="repairs",
    )
    billing = create_agent(
        model_of(bill),
        [find_order, refund, to_repairs],
        system_prompt="You give money back: look up the order, then refund its price.",
        middleware=[
            HumanInTheLoopMiddleware(
                {"refund": {"allowed_decisions": ["approve", "edit", "reject"], "description": described}}
            )
        ],
        state_schema=BillingState,
        name="billing",
    )
    builder = StateGraph(Desk)
    builder.add_node("reception", reception, destinations=["repairs", "billing"])
    builder.add_node("repairs", repairs, destinations=["billing"])
    builder.add_node("billing", billing, destinations=["repairs"])
    return builder.add_edge(START, "reception").compile(saver, name="desk")


def decision(action: Any, answer: str, *more: str) -> dict[str, Any]:
    """Return what a person decided about a call, from the words of the command line."""
    if answer == "edit":
        return {"type": "edit", "edited_action": {"name": action["name"], "args": {**action["args"], "euro": more[0]}}}
    if answer == "reject" and more:
        return {"type": "reject", "message": " ".join(more)}
    return {"type": answer}


def questions(interrupts: Iterable[Interrupt]) -> Iterator[str]:
    """Yield what is asked."""
    for interrupt in interrupts:
        yield from (f"approval needed: {action['description']}" for action in interrupt.value["action_requests"])


def told(parts: Iterable[Any]) -> Iterator[str]:
    """Yield what the agents say and do, as they do it, and what they ask."""
    for path, part in parts:
        if "__interrupt__" in part:
            if not path:
                yield from questions(part["__interrupt__"])
        elif path:
            name = path[0].partition(":")[0]
            updates = [update for update in part.values() if update]
            for message in (message for update in updates for message in update.get("messages", ())):
                if message.type == "tool":
                    yield f"{name} is told: {message.text}"
                    continue
                if message.text:
                    yield f"{name}: {message.text}"
                for call in message.tool_calls:
                    yield f"{name} calls {call['name']}({', '.join(map(str, call['args'].values()))})"


def main(path: str, *words: str) -> None:
    """Take what a customer says, or a person's answer, and print what comes of it."""
    with SqliteSaver(path) as saver:
        desk = support_desk(saver)
        waiting: Sequence[Any] = desk.get_state(CONFIG).interrupts
        if words[:1] == ("--answer",):
            actions = [action for each in waiting for action in each.value["action_requests"]]
            given: Any = Command(resume={"decisions": [decision(action, *words[1:]) for action in actions]})
        elif waiting:
            print("answer first:", *questions(waiting), sep="\n")
            return
        else:
            given = {"messages": " ".join(words)}
        for line in told(desk.stream(given, CONFIG, stream_mode="updates", subgraphs=True)):
            print(line, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
