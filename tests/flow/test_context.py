"""`FlowContext` by itself: a mapping of business data, and what is kept beside it."""

import pytest

from pregel.errors import EncodeError, InvalidIdError
from pregel.graph.flow import ContextKeyError, FlowContext, FlowRunError, MissingKeyError


def test_none_is_a_value_and_a_delete_is_real():
    ctx = FlowContext(k=1)
    ctx["k"] = None
    assert ctx["k"] is None
    assert "k" in ctx
    del ctx["k"]
    assert "k" not in ctx
    assert dict(ctx) == {}


def test_a_missing_key_says_which_are_near():
    ctx = FlowContext()
    ctx["order.amount"] = 1
    with pytest.raises(KeyError, match=r"order.amout.*Did you mean 'order.amount'"):
        ctx["order.amout"]
    with pytest.raises(KeyError, match=r"order.amount"):
        del ctx["order.amout"]
    assert ctx.get("order.amout") is None


def test_the_first_data_may_be_a_mapping_with_dotted_keys_beside_keywords():
    ctx = FlowContext("job", {"order.id": "SO-1", "n": 1}, n=2)
    assert (ctx.id, dict(ctx)) == ("job", {"order.id": "SO-1", "n": 2})
    assert dict(FlowContext(None, {"data": 1}, data=2, id_="x")) == {"data": 2, "id_": "x"}
    assert FlowContext(id="job", data=1).id == "job"
    with pytest.raises(ContextKeyError, match=r"'@a' is reserved"):
        FlowContext("job", {"@a": 1})
    with pytest.raises(TypeError, match=r"at most 1"):
        FlowContext("job", {}, {})


def test_a_value_that_is_taken_out_is_gone_and_a_default_stands_for_what_is_not_there():
    ctx = FlowContext(a=None)
    assert ctx.pop("a", 1) is None
    assert ctx.pop("a", 1) == 1
    with pytest.raises(MissingKeyError, match=r"context .* has no key 'a'\. It is empty"):
        ctx.pop("a")


def test_near_keys_are_looked_for_only_where_a_miss_is_an_error():
    class Counted(dict):
        def __iter__(self):
            raise AssertionError("all keys were gone through")

    ctx = FlowContext()
    ctx.home.values = Counted(a=1)
    assert (ctx.get("a"), ctx.get("b"), ctx.pop("b", 2), "b" in ctx) == (1, None, 2, False)
    ctx.setdefault("c", 3)
    assert ctx["c"] == 3


def test_of_many_keys_an_error_names_some():
    ctx = FlowContext(None, {f"k{number}": 0 for number in range(14)})
    with pytest.raises(MissingKeyError, match=r"It has k0, .*, k11 and 2 more\.$"):
        ctx["other"]


def test_an_update_is_whole_or_nothing():
    ctx = FlowContext(a=1)
    with pytest.raises(ContextKeyError):
        ctx.update({"a": 2, "__a": 3})
    assert dict(ctx) == {"a": 1}


@pytest.mark.parametrize("key", ["@trace", "__team", "", 1, None])
def test_names_that_are_no_business_data_are_refused(key):
    ctx = FlowContext()
    with pytest.raises(ContextKeyError):
        ctx[key] = 1
    assert len(ctx) == 0


def test_setdefault_and_get_or_create_make_a_value_once():
    ctx = FlowContext()
    made = []
    assert ctx.get_or_create("n", lambda: made.append(1) or 7) == 7
    assert ctx.get_or_create("n", lambda: made.append(1) or 8) == 7
    assert made == [1]
    assert ctx.setdefault("n", 9) == 7
    assert ctx.setdefault("m", None) is None


def test_an_id_names_a_context_and_two_of_one_id_are_two():
    one, other = FlowContext("risk-job-001"), FlowContext("risk-job-001")
    one["a"] = 1
    assert one.id == other.id == "risk-job-001"
    assert "a" not in other
    assert one != other
    assert one == one  # noqa: PLR0124 - it is itself
    assert FlowContext().id != FlowContext().id
    with pytest.raises(AttributeError):
        one.id = "x"
    with pytest.raises(InvalidIdError):
        FlowContext("")


def test_a_group_is_a_live_view_of_the_keys_below_a_prefix():
    ctx = FlowContext()
    ctx.update({"analysis.tech": 1, "analysis.risk": 2, "analysisx": 3, "order.id": 4})
    group = ctx.group("analysis")
    assert dict(group) == {"tech": 1, "risk": 2}
    group["cost"] = 5
    del group["tech"]
    assert ctx["analysis.cost"] == 5
    assert "analysis.tech" not in ctx
    assert len(group) == 2
    with pytest.raises(KeyError, match=r"analysis.tech"):
        group["tech"]


def test_a_view_stays_as_it_was_and_takes_nothing():
    ctx = FlowContext(a=1)
    view = ctx.view()
    ctx["a"] = 2
    assert view == {"a": 1}
    with pytest.raises(TypeError):
        view["a"] = 3


def test_scoped_values_are_seen_inside_the_block_only():
    ctx, other = FlowContext(user="ann", left=1), FlowContext(user="else")
    with ctx.scoped({"order.id": 7}, user="bob"):
        assert ctx["user"] == "bob"
        assert ctx["order.id"] == 7
        assert set(ctx) == {"user", "left", "order.id"}
        assert len(ctx) == 3
        assert other["user"] == "else"
        with ctx.scoped(user="eve"):
            assert ctx["user"] == "eve"
        assert ctx["user"] == "bob"
        with pytest.raises(ContextKeyError, match=r"laid over"):
            ctx["user"] = "x"
        with pytest.raises(ContextKeyError, match=r"laid over"):
            del ctx["user"]
        ctx["left"] = 2
    assert dict(ctx) == {"user": "ann", "left": 2}


def test_a_scope_ends_with_an_error_too():
    ctx = FlowContext(a=1)
    with pytest.raises(ZeroDivisionError), ctx.scoped(a=2):
        raise ZeroDivisionError
    assert ctx["a"] == 1


def test_a_new_context_has_no_trace_and_nothing_to_stop():
    ctx = FlowContext()
    assert ctx.trace == ()
    assert ctx.last_node is None
    with pytest.raises(FlowRunError, match=r"nothing to stop"):
        ctx.stop()


def test_adding_needs_a_key_with_a_reducer():
    with pytest.raises(ContextKeyError, match=r"reducer"):
        FlowContext(a=[1]).add("a", [2])


def test_a_large_value_is_handed_out_as_it_is():
    value = bytearray(1_000_000)
    ctx = FlowContext(big=value)
    assert ctx["big"] is value
    assert ctx.view()["big"] is value


def test_any_name_may_be_a_keyword():
    ctx = FlowContext("c", self=1)
    ctx.update(self=2, others=3)
    assert dict(ctx) == {"self": 2, "others": 3}


@pytest.mark.parametrize("key", ["a\0b", "half \ud800", "x" * 513])
def test_a_key_that_no_database_takes_is_refused(key):
    ctx = FlowContext()
    with pytest.raises(ContextKeyError, match=r"a key of a context"):
        ctx[key] = 1
    assert not ctx


def test_a_group_is_updated_whole_or_not_at_all():
    ctx = FlowContext()
    with pytest.raises(EncodeError, match=r"'analysis.bad'"):
        ctx.group("analysis").update(good=1, bad=object())
    assert not ctx
    ctx.group("analysis").update({"tech": 1}, cost=2)
    assert dict(ctx) == {"analysis.tech": 1, "analysis.cost": 2}


def test_what_is_no_text_is_no_key_of_a_group():
    group = FlowContext(**{"a.1": 1}).group("a")
    assert 1 not in group
    assert group.get(1) is None
    for key in (1, ""):
        with pytest.raises(ContextKeyError, match=r"a key of a context"):
            group[key] = 1


def test_a_context_is_cleared_whole_or_not_at_all():
    ctx = FlowContext(a=1, b=2)
    with ctx.scoped(b=3), pytest.raises(ContextKeyError, match=r"'b' is laid over"):
        ctx.clear()
    assert dict(ctx) == {"a": 1, "b": 2}
    ctx.clear()
    assert not ctx
