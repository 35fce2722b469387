"""Where a text holds personal data."""

from __future__ import annotations

import re
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from typing_extensions import TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["DETECTORS", "Detector", "PIIMatch", "Strategy", "by_pattern", "distinct", "replaced"]


class PIIMatch(TypedDict):
    """A piece of personal data in a text."""

    #: Its kind, such as "email".
    type: str
    value: str
    #: Where it begins and ends in the text.
    start: int
    end: int


Detector: TypeAlias = "Callable[[str], Iterable[PIIMatch]]"
Strategy: TypeAlias = Literal["block", "redact", "mask", "hash"]

# Each pattern takes time linear in the text, whatever the text: no part of one may repeat without a bound in it.
EMAIL: Final = re.compile(r"[A-Za-z0-9._%+-]{1,64}+@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,63}(?![A-Za-z0-9-])")
# Looks ahead, so that what begins inside a number that is none is found too.
CARD: Final = re.compile(r"(?<!\d)(?=(\d{13,19}(?!\d)|\d{4,8}(?:[ -]\d{3,8}(?!\d)){1,4}))")
IPV4: Final = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\d)")
IPV6: Final = re.compile(r"(?<![\w:])[0-9A-Fa-f:]{2,39}(?:(?<=:)(?:\d{1,3}\.){3}\d{1,3})?(?![\w:]|\.\d)")
MAC: Final = re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}(?:(?::[0-9A-Fa-f]{2}){5}|(?:-[0-9A-Fa-f]{2}){5})(?![\w:-])")
URL: Final = re.compile(r"(?:https?://|(?<![\w.@])www\.)[^\s<>\"'`]{1,2048}", re.IGNORECASE)
#: What ends a sentence and not a link.
CLOSING: Final = ".,;:!?)]}"
#: How many digits of a card's number stay visible, and of a text that no rule for masks is known for.
VISIBLE: Final = 4
HASH_DIGITS: Final = 8
LUHN_NINE: Final = 9
CARD_DIGITS: Final = range(13, 20)


def found(kind: str, matches: Iterable[re.Match[str]]) -> Iterator[PIIMatch]:
    """Yield what a pattern has matched."""
    for match in matches:
        yield {"type": kind, "value": match.group(), "start": match.start(), "end": match.end()}


def emails(text: str) -> Iterator[PIIMatch]:
    """Yield e-mail addresses."""
    return found("email", EMAIL.finditer(text))


def cards(text: str) -> Iterator[PIIMatch]:
    """Yield numbers of 13 to 19 digits, also in groups with spaces or dashes, whose check digit is right (Luhn)."""
    for match in CARD.finditer(text):
        value = match.group(1)
        # What follows a number may look like one more group of it.
        while value and not (sum(map(str.isdigit, value)) in CARD_DIGITS and is_luhn(value)):
            value = value[: max(value.rfind(" "), value.rfind("-"), 0)]
        if value:
            yield {"type": "credit_card", "value": value, "start": match.start(1), "end": match.start(1) + len(value)}


def is_luhn(number: str) -> bool:
    """Return whether the check digit of a number is right, by ISO/IEC 7812-1 annex B."""
    total = 0
    for place, digit in enumerate(int(character) for character in reversed(number) if character.isdigit()):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - LUHN_NINE if doubled > LUHN_NINE else doubled
    return total % 10 == 0


def addresses(text: str) -> Iterator[PIIMatch]:
    """Yield IP addresses of both versions."""
    found_ones = [*IPV4.finditer(text), *(match for match in IPV6.finditer(text) if match.group().count(":") > 1)]
    return found("ip", (match for match in found_ones if is_address(match.group())))


def is_address(text: str) -> bool:
    """Return whether a text is an IP address that names somebody: not "::", which names nobody."""
    try:
        return int(ip_address(text)) != 0
    except ValueError:
        return False


def macs(text: str) -> Iterator[PIIMatch]:
    """Yield hardware addresses of network devices."""
    return found("mac_address", MAC.finditer(text))


def urls(text: str) -> Iterator[PIIMatch]:
    """Yield links: with http or https, or beginning with "www."."""
    for match in found("url", URL.finditer(text)):
        value = match["value"].rstrip(CLOSING)
        yield {**match, "value": value, "end": match["start"] + len(value)}


#: The kinds of data that are known, and what finds them.
DETECTORS: Final[Mapping[str, Detector]] = {
    "email": emails,
    "credit_card": cards,
    "ip": addresses,
    "mac_address": macs,
    "url": urls,
}


def by_pattern(kind: str, pattern: re.Pattern[str]) -> Detector:
    """Return a detector that finds what matches a pattern; an empty match is none."""

    def detect(text: str) -> Iterator[PIIMatch]:
        return found(kind, (match for match in pattern.finditer(text) if match.group()))

    return detect


def distinct(matches: Iterable[PIIMatch]) -> list[PIIMatch]:
    """Return matches in the order of the text, of those that overlap the longest of the first."""
    chosen: list[PIIMatch] = []
    for match in sorted(matches, key=lambda match: (match["start"], -match["end"])):
        if not chosen or match["start"] >= chosen[-1]["end"]:
            chosen.append(match)
    return chosen


def replaced(text: str, matches: Sequence[PIIMatch], strategy: Strategy) -> str:
    """Return a text with something else in the place of each match.

    Args:
        text: The text.
        matches: Where, in order and without overlap.
        strategy: "redact" names the kind, "mask" leaves a part visible, "hash" gives what is equal for equal data.
    """
    parts: list[str] = []
    end = 0
    for match in matches:
        parts += [text[end : match["start"]], instead(match, strategy)]
        end = match["end"]
    return "".join([*parts, text[end:]])


def instead(match: PIIMatch, strategy: Strategy) -> str:
    """Return what stands in the place of a match."""
    kind, value = match["type"], match["value"]
    if strategy == "redact":
        return f"[REDACTED_{kind.upper()}]"
    if strategy == "hash":
        return f"<{kind}_hash:{sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:HASH_DIGITS]}>"
    return masked(kind, value)


def masked(kind: str, value: str) -> str:
    """Return a value of which only a part is visible: of an unknown kind its last characters, if there are enough."""
    if kind == "email":
        user, _, domain = value.partition("@")
        return f"{user[0]}****@****.{domain.rpartition('.')[2]}"
    if kind == "credit_card":
        digits = [character for character in value if character.isdigit()]
        return f"****-****-****-{''.join(digits[-VISIBLE:])}"
    if kind == "ip":
        return f"*.*.*.{value.rpartition('.')[2]}" if ":" not in value else f"****:{value.rpartition(':')[2]}"
    if kind == "mac_address":
        return f"**:**:**:**:**:{value[-2:]}"
    if kind == "url":
        return "[MASKED_URL]"
    return f"****{value[-VISIBLE:]}" if len(value) > 2 * VISIBLE else "****"
