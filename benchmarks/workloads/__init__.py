"""The workloads, one file each, in the order in which they run."""

from benchmarks.model import Workload
from benchmarks.workloads import (
    chain,
    chain_async,
    chain_async_sync_nodes,
    ck_mem,
    ck_sqlite,
    compiling,
    cpu,
    fanout,
    grow,
    importing,
    io,
    loop,
    many,
    memory,
    send,
    stream,
    wide,
    workflow,
)

WORKLOADS: dict[str, Workload] = {
    module.WORKLOAD.name: module.WORKLOAD
    for module in (
        chain,
        chain_async,
        chain_async_sync_nodes,
        loop,
        stream,
        fanout,
        send,
        wide,
        workflow,
        ck_mem,
        ck_sqlite,
        grow,
        io,
        many,
        cpu,
        compiling,
        importing,
        memory,
    )
}
