# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the batches of a sweep run: here, in processes, on Dask, on Ray, or on an executor."""

from __future__ import annotations

import concurrent.futures
import pickle
import queue
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from . import worker


class Lost(Exception):
    """A batch ended with its worker, and may run again."""


class Backend(ABC):
    """Runs functions, one batch a call."""

    def slots(self) -> int:
        """Number of batches that can run at the same time."""
        return 1

    @abstractmethod
    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Begin a call."""

    @abstractmethod
    def wait(self, futures: list[Any]) -> list[Any]:
        """Wait until at least one of the calls has ended; those that have."""

    @abstractmethod
    def result(self, future: Any) -> Any:
        """What the call returned. Raises what it raised, and :class:`Lost` if its worker died."""

    def close(self) -> None:
        """End what this object began."""


class Here(Backend):
    """This process, one batch after the other."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return lambda: function(*args)

    def wait(self, futures: list[Any]) -> list[Any]:
        return futures[:1]

    def result(self, future: Any) -> Any:
        return future()


class OnExecutor(Backend):
    """An executor of ``concurrent.futures``."""

    def __init__(self, executor: concurrent.futures.Executor, slots: int) -> None:
        self._executor = executor
        self._slots = slots

    def slots(self) -> int:
        return self._slots

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self._executor.submit(function, *args)

    def wait(self, futures: list[Any]) -> list[Any]:
        first = concurrent.futures.FIRST_COMPLETED
        return list(concurrent.futures.wait(futures, return_when=first).done)

    def result(self, future: Any) -> Any:
        try:
            return future.result()
        except (concurrent.futures.BrokenExecutor, concurrent.futures.CancelledError) as error:
            raise Lost(str(error)) from error


class Processes(OnExecutor):
    """Processes of this machine. One that dies is replaced."""

    def __init__(self, workers: int) -> None:
        # A thread for each process, which waits for its answer.
        super().__init__(concurrent.futures.ThreadPoolExecutor(workers), workers)
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes] | None] = queue.SimpleQueue()
        for _ in range(workers):
            self._idle.put(None)

    @staticmethod
    def _begin() -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        process = subprocess.Popen([sys.executable, worker.__file__], stdin=pipe, stdout=pipe)
        assert process.stdin is not None
        pickle.dump(sys.path, process.stdin)
        return process

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self._executor.submit(self._call, function, args)

    def _call(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        process = self._idle.get() or self._begin()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump((function, args), process.stdin)
            process.stdin.flush()
            is_ok, answer = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            process.kill()
            self._idle.put(None)
            raise Lost(f"process {process.pid} ended with {process.wait()}") from error
        self._idle.put(process)
        if not is_ok:
            raise answer
        return answer

    def close(self) -> None:
        self._executor.shutdown(cancel_futures=True)
        while not self._idle.empty():
            process = self._idle.get()
            if process is not None:
                process.communicate()


class Dask(Backend):
    """A cluster of Dask: a ``distributed.Client``."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def slots(self) -> int:
        return max(1, sum(self._client.nthreads().values()))

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self._client.submit(function, *args, pure=False)

    def wait(self, futures: list[Any]) -> list[Any]:
        import distributed

        return list(distributed.wait(futures, return_when="FIRST_COMPLETED").done)

    def result(self, future: Any) -> Any:
        import distributed

        try:
            return future.result()
        except (
            distributed.scheduler.KilledWorker,
            distributed.client.FutureCancelledError,
            concurrent.futures.CancelledError,
        ) as error:
            raise Lost(str(error)) from error


class Ray(Backend):
    """A cluster of Ray: the module ``ray``, initialised."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        # The process, its machine, or its answer is gone. Ray has tried some of these again itself.
        names = ("WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "ObjectLostError")
        self._lost = tuple(
            getattr(ray.exceptions, name) for name in names if hasattr(ray.exceptions, name)
        )
        if not ray.is_initialized():
            ray.init()

    def slots(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self._ray.remote(function).remote(*args)

    def wait(self, futures: list[Any]) -> list[Any]:
        return list(self._ray.wait(futures, num_returns=1)[0])

    def result(self, future: Any) -> Any:
        try:
            return self._ray.get(future)
        except self._lost as error:
            raise Lost(str(error)) from error


def backend(client: Any, workers: int) -> Backend:
    """The backend for the arguments of :func:`schedlab.sweep`."""
    if client is None:
        return Processes(workers) if workers > 1 else Here()
    if workers != 1:
        raise ValueError("workers and client are both given: the client knows its own workers")
    if isinstance(client, concurrent.futures.Executor):
        return OnExecutor(client, getattr(client, "_max_workers", 1))
    if getattr(client, "__name__", "") == "ray" and hasattr(client, "remote"):
        return Ray(client)
    if hasattr(client, "nthreads") and hasattr(client, "submit"):
        return Dask(client)
    raise TypeError(
        f"client is a {type(client).__name__}: allowed are a distributed.Client, the module ray, "
        "an executor of concurrent.futures, and None"
    )
