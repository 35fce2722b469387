"""The workloads, one file each, in the order in which they run."""

from benchmarks.model import Workload
from benchmarks.workloads import (
    chain,
    chain_async,
    chain_async_sync_nodes,
    compiling,
    importing,
    loop,
    send,
    stream,
    wide,
)

WORKLOADS: dict[str, Workload] = {
    module.WORKLOAD.name: module.WORKLOAD
    for module in (chain, chain_async, chain_async_sync_nodes, loop, stream, send, wide, compiling, importing)
}
