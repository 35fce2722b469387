"""The codec: values to bytes and back, without loss and without running anything that the bytes say.

Decoding builds values of the standard types, of classes that were registered before, and nothing else. A tag in the
bytes is looked up in a closed table; no name of a module, class or attribute is taken from bytes, and nothing is
imported. There are two exceptions. *Our own* tags for numpy's arrays and for langchain-core's messages import `numpy`
and `langchain_core.messages`, names that stand in our code, so that a process can resume what another one stored. And a
time zone is read from the machine's data, or from the package tzdata, once its name was found among those that exist.

`encode`, `decode`: with what is registered for the whole process. `Codec`: with the types of one graph as well.
`seal`, `unseal`: the envelope of a stored row, which finds damage and rows that stand in the wrong place.
"""

from pregel.codec.codec import Codec, decode, encode
from pregel.codec.registry import register, serializable
from pregel.codec.seal import seal, unseal

__all__ = ["Codec", "decode", "encode", "register", "seal", "serializable", "unseal"]
