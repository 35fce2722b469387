"""Models behind OpenAI's chat completions, by the official client: OpenAI's own, and any server that speaks the same.

The client does the requests and their retries. The answers are read by `openai_answers`, so that both forms of a call
read them alike.
"""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from importlib import import_module
from ssl import SSLError
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

from anyio import CancelScope, EndOfStream

from pregel.errors import GraphDefinitionError, nearest
from pregel.graph.agent.models.openai_answers import BrokenStreamError, ServerError, StreamReader, answer_of
from pregel.graph.agent.models.openai_requests import body_of
from pregel.graph.agent.models.protocol import ModelError
from pregel.graph.agent.models.surrogates import without_surrogates

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence

    from pregel.graph.agent.models.chunks import AIMessageChunk
    from pregel.graph.messages import AIMessage

__all__ = ["OpenAIChat"]

#: What a request says by itself, and so no setting can.
OWN: Final = ("messages", "stream", "stream_options", "tools")


class OpenAIChat:
    """A chat model of OpenAI, or of a server that speaks its protocol. Needs the extra `pregel[openai]`.

    It may be shared by threads and event loops; the async form runs on asyncio and on trio. Errors of the service are
    the client's own: `openai.RateLimitError`, `openai.APITimeoutError` and so on. Arguments of a tool call that are no
    JSON object make it one of the answer's `invalid_tool_calls`. A stream that breaks off raises.

    Args:
        model: The model's name.
        base_url: Where the server is; None for OpenAI, or what the environment's OPENAI_BASE_URL says.
        api_key: None for the environment's OPENAI_API_KEY. A server of your own may need none: give any text.
        max_retries: How often a request is repeated after a 408, 409, 429 or 5xx or a lost connection, with pauses
            that grow or that the server asks for. A stream that has begun is not repeated.
        timeout: Seconds to wait for a connection, and for each part of an answer.
        settings: What every request says, such as `temperature`; a call may say otherwise. What only another server
            knows goes into `extra_body`, a dict.

    Raises:
        ModelError: The client is not installed, or there is no key.
        GraphDefinitionError: A setting is none.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_retries: int = 2,
        timeout: float = 60.0,
        **settings: Any,
    ) -> None:
        try:
            self._openai = import_module("openai")
        except ImportError as error:
            raise ModelError("OpenAIChat needs the openai client: pip install 'pregel[openai]'") from error
        self.model = model
        self.settings = settings
        self._httpx: Any = import_module("httpx2")
        self._tls = tls_of(self._httpx)
        self._options = {"base_url": base_url, "api_key": api_key, "max_retries": max_retries, "timeout": timeout}
        try:
            self._client = self._openai.OpenAI(
                http_client=self._openai.DefaultHttpxClient(verify=self._tls), **self._options
            )
        except self._openai.OpenAIError as error:
            raise ModelError(f"OpenAIChat({model!r}) has no client: {error}") from error
        finalize(self, self._client.close)
        check_settings(settings, self._client)

    @property
    def profile(self) -> dict[str, bool]:
        """What the model can do. Of other servers than OpenAI's nobody knows whether they keep to a schema."""
        return {"structured_output": self._client.base_url.host == "api.openai.com"}

    def invoke(
        self,
        messages: Any,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | None = None,
        response_format: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> AIMessage:
        """Return the answer.

        Raises:
            ModelAnswerError: What the server sent is no answer.
            openai.APIError: The server refused, or could not be reached.
        """
        body = self._body(messages, tools, tool_choice, response_format, settings)
        response = self._client.chat.completions.with_raw_response.create(**body)
        return answer_of(response.http_response.content).message()

    async def ainvoke(
        self,
        messages: Any,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | None = None,
        response_format: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> AIMessage:
        """Do the same, awaited.

        Raises:
            ModelAnswerError: What the server sent is no answer.
            openai.APIError: The server refused, or could not be reached.
        """
        body = self._body(messages, tools, tool_choice, response_format, settings)
        async with self._async_client() as client:
            response = await client.chat.completions.with_raw_response.create(**body)
            return answer_of(response.http_response.content).message()

    def stream(
        self,
        messages: Any,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | None = None,
        response_format: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Generator[AIMessageChunk, None, None]:
        """Yield the answer in pieces.

        Raises:
            ModelAnswerError: What the server sent is no answer.
            openai.APIError: The server refused, could not be reached, or broke off.
        """
        body = self._body(messages, tools, tool_choice, response_format, settings, streamed=True)
        reader = StreamReader()
        with (
            self._client.chat.completions.with_streaming_response.create(**body) as response,
            self._told_by_the_client(response),
        ):
            for data in response.iter_bytes():
                yield from reader.feed(data)
                if reader.done:
                    break
            yield reader.close()

    async def astream(
        self,
        messages: Any,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | None = None,
        response_format: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> AsyncGenerator[AIMessageChunk, None]:
        """Do the same, awaited.

        Raises:
            ModelAnswerError: What the server sent is no answer.
            openai.APIError: The server refused, could not be reached, or broke off.
        """
        body = self._body(messages, tools, tool_choice, response_format, settings, streamed=True)
        reader = StreamReader()
        async with (
            self._async_client() as client,
            client.chat.completions.with_streaming_response.create(**body) as response,
            ended(response.iter_bytes()) as received,
        ):
            with self._told_by_the_client(response):
                async for data in received:
                    for piece in reader.feed(data):
                        yield piece
                    if reader.done:
                        break
                yield reader.close()

    def _async_client(self) -> Any:
        """Return a client for one call: its connections belong to the event loop, and nothing tells when that ends."""
        return self._openai.AsyncOpenAI(
            http_client=self._openai.DefaultAsyncHttpxClient(verify=self._tls), **self._options
        )

    def _body(
        self,
        messages: Any,
        tools: Sequence[Mapping[str, Any]],
        tool_choice: str | None,
        response_format: Mapping[str, Any] | None,
        settings: Mapping[str, Any],
        *,
        streamed: bool = False,
    ) -> dict[str, Any]:
        """Return the fields of a request.

        Raises:
            GraphDefinitionError: A setting is none.
        """
        check_settings(settings, self._client)
        stream = {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
        asked = body_of(messages, tools, tool_choice, response_format)
        body: dict[str, Any] = {"model": self.model, **stream, **self.settings, **settings, **asked}
        return without_surrogates(body)  # type: ignore[no-any-return]  # a dict again

    @contextmanager
    def _told_by_the_client(self, response: Any) -> Iterator[None]:
        """Raise what goes wrong while a stream is read as the client's errors, as everything before is."""
        request = response.http_request
        try:
            yield
        except self._httpx.TimeoutException as error:
            raise self._openai.APITimeoutError(request=request) from error
        except BrokenStreamError as error:
            raise self._openai.APIConnectionError(message=str(error), request=request) from error
        # The last two are those that the transport lets through, as the client knows too.
        except (self._httpx.RequestError, SSLError, EndOfStream) as error:
            message = f"the connection broke in the middle of the model's answer: {error}"
            raise self._openai.APIConnectionError(message=message, request=request) from error
        except ServerError as error:
            raise self._openai.APIError(str(error), request, body=error.body) from error


def check_settings(settings: Mapping[str, Any], client: Any) -> None:
    """Check that settings are those of a request.

    Raises:
        GraphDefinitionError: One is unknown to the client, or is what a request says by itself.
    """
    for name in settings:
        if name in OWN:
            raise GraphDefinitionError(
                f"OpenAIChat has no setting {name!r}, which each request says by itself: give messages and tools to "
                "the call or to the agent; stream() and stream_mode='messages' read an answer as it is made"
            )
        completions: Any = type(client.chat.completions)
        known = parameters_of(completions)
        if name not in known:
            raise GraphDefinitionError(
                f"OpenAIChat has no setting {name!r}.{nearest(name, known)} What only another server knows goes into "
                f"extra_body={{{name!r}: ...}}"
            )


@cache
def parameters_of(completions: Any) -> frozenset[str]:
    """Return what a request of the client can say."""
    return frozenset(inspect.signature(completions.create).parameters) - {"self", *OWN}


@cache
def tls_of(httpx: Any) -> Any:
    """Return what all connections use: to read the certificates takes longer than the rest of a client."""
    return httpx.create_ssl_context()


@asynccontextmanager
async def ended(received: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    """Give what reads a response, and end it, with the generators inside it, however far it was read.

    To close it would leave those to the garbage collector, which trio warns of. A cancellation at the innermost read
    goes through them all.
    """
    try:
        yield received
    finally:
        with CancelScope() as scope, suppress(Exception):
            scope.cancel()
            async for _ in received:
                pass
