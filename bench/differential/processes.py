"""Processes that may crash or hang without ending the run."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import queue
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

START_SECONDS = 180
IS_OVER = "the run is over"


def serve(pipe, log: str, gpu: int | None, tasks: dict[str, Callable]) -> None:
    """A process that does tasks until one leaves the GPU broken. It sends the stage it is at, then what came of it."""
    # What it starts ends with it, and does not hold the pipe.
    os.setpgid(0, 0)
    os.set_inheritable(pipe.fileno(), False)
    with open(log, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible(gpu)
        import torch
        import triton

        torch.zeros(1, device="cuda")
        triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    pipe.send("ready")
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            task = pipe.recv()
            try:
                answer = tasks[task["task"]](task, pipe.send)
            except Exception as error:
                kinds = [kind.__name__ for kind in type(error).__mro__]
                answer = {"error": describe(error), "refused": "Refused" in kinds}
            answer["broken"] = gpu is not None and is_broken()
            pipe.send(answer)
            if answer["broken"]:
                os._exit(1)


def visible(gpu: int) -> str:
    """The GPU of this number among those that may be used, as CUDA names it."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    return given.split(",")[gpu] if given else str(gpu)


def is_broken() -> bool:
    """Whether an error stays with this process. Frees memory, too."""
    import torch

    try:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except Exception:
        return True
    return False


def describe(error: BaseException) -> str:
    """An error on one line: of CUDA's the first, of compilers' the last."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[0] if 'CUDA' in lines[0] else lines[-1]}"[:300]


class Worker:
    """A process for tasks, started anew after one that crashed, hung or broke the GPU."""

    context = multiprocessing.get_context("spawn")

    def __init__(self, folder: str, gpu: int | None, tasks: dict[str, Callable]):
        self.gpu, self.tasks, self.process, self.pipe = gpu, tasks, None, None
        self.is_over, self.lock = False, threading.Lock()
        self.log = Path(folder) / f"{id(self)}.log"
        self.log.touch()

    def start(self) -> bool:
        with self.lock:
            if self.is_over:
                return False
            self.pipe, other = self.context.Pipe()
            arguments = (other, str(self.log), self.gpu, self.tasks)
            process = self.context.Process(target=serve, args=arguments, daemon=True)
            process.start()
            self.process = process
            other.close()
        return self._is_heard(time.monotonic() + START_SECONDS) and self._received() == "ready"

    def stop(self) -> None:
        with self.lock:
            process, self.process = self.process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.join(30)

    def _received(self):
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None

    def _is_heard(self, end: float) -> bool:
        """Waits for what the process says, to an end of time or of the run."""
        while not self.is_over and time.monotonic() < end:
            if self.pipe.poll(min(1, max(end - time.monotonic(), 0))):
                return True
        return False

    def ask(self, task: dict, seconds: float) -> dict:
        """What came of a task; with `error` and `stage` if nothing did. Ends the run if no process starts."""
        if self.is_over:
            return {"stage": "start", "error": IS_OVER}
        if self.process is None and not self.start():
            self.stop()
            if self.is_over:
                return {"stage": "start", "error": IS_OVER}
            raise SystemExit(f"no process starts: {self.complaint()}")
        with contextlib.suppress(OSError):
            self.pipe.send(task)
        stage, end = "start", time.monotonic() + seconds
        while self._is_heard(end):
            answer = self._received()
            if isinstance(answer, str):
                stage = answer
                continue
            if answer is None:
                process = self.process
                if process is None or self.is_over:
                    return {"stage": stage, "error": IS_OVER}
                process.join(10)
                answer = {"error": f"crashed ({process.exitcode}): {self.complaint()}", "broken": True}
            elif "PassManager" in answer.get("error", ""):
                answer["error"] += f": {self.complaint()}"
            if answer.pop("broken", False):
                self.stop()
            return answer | ({"stage": stage} if "error" in answer else {})
        self.stop()
        return {"stage": stage, "error": IS_OVER if self.is_over else f"nothing within {seconds} s"}

    def complaint(self) -> str:
        """What the process printed last, an error if there is one."""
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()] or [""]
        return ([line for line in lines if "error" in line.lower()] or lines)[-1][:300]


def each(
    tasks: list,
    work: Callable[[Worker, object], dict],
    jobs: int,
    gpus: int,
    kinds: dict[str, Callable],
    seconds: float | None = None,
) -> Iterator[dict]:
    """What `work` makes of each task by a worker, as it comes.

    gpus: how many there are to share. kinds: what workers can be asked for, by name. seconds: the time there is for all.
    """
    own, workers = threading.local(), []

    def with_worker(task) -> dict:
        if not hasattr(own, "worker"):
            own.worker = Worker(logs, len(workers) % gpus if gpus else None, kinds)
            workers.append(own.worker)
        return work(own.worker, task)

    with tempfile.TemporaryDirectory() as logs, ThreadPoolExecutor(jobs) as pool:
        try:
            completed = as_completed([pool.submit(with_worker, task) for task in tasks], seconds)
            while True:
                try:
                    done = next(completed, None)
                except concurrent.futures.TimeoutError:
                    break
                if done is None:
                    break
                yield done.result()
        finally:
            # Whoever stops early does not wait for tasks that have begun.
            pool.shutdown(wait=False, cancel_futures=True)
            end(workers)
            pool.shutdown()
            end(workers)


def end(workers: list[Worker]) -> None:
    """No worker does anything any more."""
    for worker in workers:
        worker.is_over = True
    for worker in workers:
        worker.stop()


class Lent:
    """A few workers on GPUs, which many threads borrow in turn."""

    def __init__(self, count: int, gpus: int, kinds: dict[str, Callable]):
        self.logs = tempfile.TemporaryDirectory()
        self.workers = [Worker(self.logs.name, number % gpus, kinds) for number in range(count)]
        self.free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self.workers:
            self.free.put(worker)

    @contextlib.contextmanager
    def borrow(self) -> Iterator[Worker]:
        worker = self.free.get()
        try:
            yield worker
        finally:
            self.free.put(worker)

    def end(self) -> None:
        """Whoever borrows one from now on gets no work done."""
        end(self.workers)
        self.logs.cleanup()
