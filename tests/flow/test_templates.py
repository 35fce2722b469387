"""Templates: `#{key}` by flat key and then by path, and nothing else."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pregel.codec import serializable
from pregel.graph.flow import MissingKeyError, Template, TemplateError


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


@pytest.mark.parametrize("value", [Order(), "text", b"bytes", 5, None])
def test_no_attributes_and_no_parts_of_texts(value):
    with pytest.raises(MissingKeyError, match=r"mappings and sequences only"):
        render("#{a.0}" if isinstance(value, (str, bytes)) else "#{a.id}", a=value)


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
