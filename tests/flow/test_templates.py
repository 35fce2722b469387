"""Templates: `#{key}` by flat key and then by path, and nothing else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pregel.codec import serializable
from pregel.graph.flow import MissingKeyError, Template, TemplateError
from pregel.graph.flow.templates import never_reached


def render(text, **data):
    return Template(text).render({key.replace("__", "."): value for key, value in data.items()}, "node 'risk'")


def test_a_flat_dotted_key_is_found():
    assert render("no=#{order.id}, #{ order.amount }", order__id="SO-1001", order__amount=15000.0) == (
        "no=SO-1001, 15000.0"
    )


def test_a_path_leads_through_mappings_and_sequences():
    assert render("#{order.items.1.name}", order={"items": [{"name": "a"}, {"name": "b"}]}) == "b"
    assert render("#{a.b.0}", a={"b": ("x",)}) == "x"


def test_the_flat_key_comes_before_the_path_and_the_longest_one_first():
    assert render("#{order.id}", order={"id": "nested"}, order__id="flat") == "flat"
    assert render("#{order.box.id}", order={"box": {"id": "short"}}, order__box={"id": "long"}) == "long"


def test_an_optional_place_is_empty_and_a_default_stands_for_what_is_missing_or_none():
    assert render("[#{x?}|#{x|none given}|#{y?}|#{y|-}]", y=None) == "[|none given||-]"
    assert render("[#{x?}|#{x|d}]", x=0) == "[0|0]"
    assert render("#{x|}") == ""
    assert render("#{a.b?}", a={"c": 1}) == ""


def test_none_is_shown_where_the_place_is_not_optional():
    assert render("#{x}", x=None) == "None"


def test_an_escape_is_literal():
    assert render(r"\#{x} #{x}", x=1) == "#{x} 1"
    assert render("# {x} {x} #x ${x}", x=1) == "# {x} {x} #x ${x}"


def test_values_are_never_read_as_templates():
    assert render("#{a}", a="#{hidden}", hidden="s3") == "#{hidden}"
    assert render("#{a}#{b}", a="#", b="{hidden}", hidden="s3") == "#{hidden}"
    assert render("#{x|#{hidden}", hidden="s3") == "#{hidden"


def test_a_missing_key_names_key_reader_and_nearest():
    with pytest.raises(MissingKeyError) as caught:
        render("#{order.amuont}", order__amount=1)
    message = str(caught.value)
    assert "node 'risk'" in message
    assert "'#{order.amuont}'" in message
    assert "Did you mean 'order.amount'?" in message
    assert isinstance(caught.value, KeyError)


def test_a_path_that_ends_says_where():
    with pytest.raises(MissingKeyError, match=r"'order' has no 'nr'"):
        render("#{order.nr}", order={"id": 1})
    with pytest.raises(MissingKeyError, match=r"'order.items' has 1 items and no '3'"):
        render("#{order.items.3}", order={"items": [1]})


@serializable
@dataclass
class Order:
    id: str = "x"


class Pair(NamedTuple):
    id: str


class Level(StrEnum):
    HIGH = "high"


REACHED = {
    "a dataclass": (Order(), "id"),
    "a field by its name": (Pair("x"), "id"),
    "an enum": (Level.HIGH, "name"),
    "a date": (date(2026, 1, 1), "year"),
    "a set": ({"x"}, "0"),
}


@pytest.mark.parametrize("mark", ["", "?", "|none"])
@pytest.mark.parametrize("name", REACHED)
def test_what_is_there_and_can_not_be_reached_is_an_error_that_no_default_covers(name, mark):
    value, label = REACHED[name]
    with pytest.raises(MissingKeyError, match=r"'a' is of type .*mappings and sequences only") as caught:
        render(f"#{{a.{label}{mark}}}", a=value)
    assert f"ctx['a.{label}'] = ..." in str(caught.value)
    assert "Where it may be missing" not in str(caught.value)
    assert render("#{a.0}", a=Pair("x")) == "x"


@pytest.mark.parametrize("value", ["text", b"bytes", 5, None])
def test_what_has_no_parts_has_none_that_could_be_there(value):
    with pytest.raises(
        MissingKeyError, match=r"the context has no key 'a.0', and 'a' is of type .*no parts.*'#\{a.0\?\}'"
    ):
        render("#{a.0}", a=value)
    assert render("#{a.0?}#{a.id|-}", a=value) == "-"
    assert render("#{a.0}", a=value, a__0="flat") == "flat"


class Told(TypedDict):
    order: Order


Alias = Annotated[dict[str, Order], "said of it"]
NEVER = {
    "a dataclass": (Order, "a.id"),
    "or None": (Order | None, "a.id"),
    "in a dict": (dict[str, Order], "a.b.id"),
    "in a list": (list[Order], "a.0.id"),
    "annotated": (Alias, "a.b.id"),
    "a text": (str, "a.id"),
    "an enum": (Level, "a.name"),
    "a field by its name": (Pair, "a.id"),
}
PERHAPS = {
    "anything": (Any, "a.id"),
    "an object": (object, "a.id"),
    "the value itself": (Order, "a"),
    "a dict": (dict[str, Order], "a.id"),
    "an open dict": (dict, "a.b.c"),
    "a list": (list[Order], "a.0"),
    "what may be a list": (Iterable[Order], "a.0"),
    "one of several": (Order | dict[str, str], "a.id"),
    "a mapping": (Mapping[str, Any], "a.b.c"),
    "a literal": (Literal["x"], "a.b"),
    "a typed dict": (Told, "a.order"),
    "a field by its number": (Pair, "a.0"),
}


@pytest.mark.parametrize(("name", "why"), [*((name, True) for name in NEVER), *((name, False) for name in PERHAPS)])
def test_a_type_tells_whether_a_path_can_lead_anywhere(name, why):
    kind, path = (NEVER if why else PERHAPS)[name]
    root, *labels = path.split(".")
    assert (never_reached(kind, root, labels) is not None) is why


def test_no_calls_and_no_expressions():
    for text in ("#{a.keys()}", "#{a['id']}", "#{a.__class__}", "#{1+1}"):
        with pytest.raises(MissingKeyError):
            render(text, a={"id": 1})


@pytest.mark.parametrize("text", ["#{", "a #{b", "#{}", "#{ }", "#{?}", "#{|x}"])
def test_a_place_without_end_or_name_is_an_error_when_it_is_read(text):
    with pytest.raises(TemplateError, match=r"the prompt of agent 'a'"):
        Template(text, "the prompt of agent 'a'")


def test_a_template_tells_what_it_reads():
    assert Template(r"#{a.b} \#{c} #{d?} #{e|x} #{a.b}").reads == ("a.b", "d", "e")


@given(st.text(alphabet="#{}\\|?ab .", max_size=30))
def test_any_text_is_rendered_or_refused_by_name(text):
    try:
        rendered = Template(text).render({"a": "A", "b": "#{a}"}, "here")
    except (TemplateError, MissingKeyError):
        return
    assert isinstance(rendered, str)
    if "#{" not in text:
        assert rendered == text


class NoSearch(dict):
    """A mapping that may be asked for keys, and is not searched for near ones."""

    def __iter__(self):
        raise AssertionError("searched")


def test_near_keys_are_searched_for_errors_only():
    data = NoSearch(order=NoSearch(id=1))
    assert Template("#{order.id}#{order.no?}#{none|-}").render(data, "node 'n'") == "1-"


def test_of_near_keys_the_one_where_the_path_ends_is_told():
    with pytest.raises(MissingKeyError, match=r"'order' has no 'idd'. Did you mean 'id'\? Where it may be missing"):
        Template("#{order.idd}").render({"order": {"id": 1, 2: 3}, "order.id": 1}, "node 'n'")
