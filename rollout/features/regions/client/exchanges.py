"""The calls to one worker process, and their answers: they travel together, so that messages follow time and not nodes."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import replace
from threading import Condition, Thread

from rollout.errors import RemoteError
from rollout.features.regions.client import worker as remote
from rollout.features.regions.client.messages import CallAnswer, Exchange, VerbCall, decode_reply, encode_exchange
from rollout.features.regions.client.steady import steady
from rollout.features.regions.client.workers import CallLostError, RegionWorker, Scheduler

PAUSE_OF_A_CALL = 0.001
LONGEST_PAUSE = 0.1
"""Seconds between two exchanges with a worker: some for each further call in progress, whichever worker has it.

So the number of exchanges follows time, not nodes. The only call of a controller never waits, nor does its answer.
"""

PAUSE_OF_A_QUESTION = 0.01
"""Seconds from an answer to an exchange without a call. In most cases the node's next verb comes sooner."""


MEASURES = 8
"""How many of the last measures of a worker's clock count: old ones do not, since two clocks never have quite the same speed."""


class WorkerExchanges:
    """Thread-safe. While calls are in progress, an exchange waits on the worker for the first answer.

    A new call ends that wait, because the newest exchange carries it and waits itself. A worker without a call gets
    no exchange, and this has no thread then.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        worker: RegionWorker,
        in_progress: Callable[[], int],
        clock: Callable[[], float] = steady,
    ) -> None:
        """``in_progress``: the calls without an answer to all workers of this controller. ``clock``: ours, by which calls expire."""
        self._clock = clock
        self._ahead = deque([worker.ahead], MEASURES)  # of the worker's clock; each less what its message travelled
        self._in_progress = in_progress
        self._scheduler = scheduler
        self._worker = worker
        self._controller = secrets.token_hex(16)
        self._changed = Condition()
        self._waiting: list[VerbCall] = []  # not in an exchange yet
        self._answers: dict[str, Future[CallAnswer]] = {}  # nonce → its answer, of all calls in progress
        self._received: list[str] = []  # nonces, since the last exchange
        self._number = 0
        self._ended = 0  # the newest exchange that has returned
        self._began = self._returned = float("-inf")  # when the last exchange did, on this process's clock
        self._until = 0.0  # on our clock: when the last call expires
        self._is_sending = False

    def answer(self, call: VerbCall) -> CallAnswer:
        """Raises ``RemoteError``: it was not submitted. ``CallLostError``: it was, and no answer arrived in time."""
        future: Future[CallAnswer] = Future()
        with self._changed:
            self._waiting.append(call)
            self._answers[call.nonce] = future
            self._until = max(self._until, call.expires)
            if not self._is_sending:
                self._is_sending = True
                Thread(target=self._send, daemon=True).start()
            self._changed.notify()
        try:
            return future.result(call.expires - self._clock())
        except TimeoutError:
            with self._changed:
                self._answers.pop(call.nonce, None)
                self._changed.notify()
            raise CallLostError("no answer in time") from None

    def _send(self) -> None:
        """Begin exchanges while calls are in progress."""
        while True:
            with self._changed:
                if not self._answers:
                    self._is_sending = False
                    return
                if not self._waiting and self._ended < self._number:
                    self._changed.wait()
                    continue
                wait = self._pause() - time.monotonic()
                if wait > 0:
                    self._changed.wait(wait)
                    continue
                exchange = self._next()
                sent = tuple(self._answers)
            Thread(target=self._carry_out, args=(exchange, sent), daemon=True).start()

    def _pause(self) -> float:
        """When the next exchange may begin, on this process's clock."""
        pause = min(LONGEST_PAUSE, PAUSE_OF_A_CALL * (self._in_progress() - 1))
        return self._began + pause if self._waiting else max(self._began + pause, self._returned + PAUSE_OF_A_QUESTION)

    def _next(self) -> Exchange:
        """The worker gets the time at which each call expires by its own clock.

        Its clock is ahead by at least the greatest of the last measures. So what it takes for a call's age is never too small.
        """
        ahead = max(self._ahead)
        calls = tuple(replace(call, expires=call.expires + ahead) for call in self._waiting)
        received = tuple(self._received)
        self._waiting, self._received = [], []
        self._number += 1
        self._began = time.monotonic()
        seconds = max(0.0, self._until - self._clock())
        return Exchange(self._worker.process, self._controller, self._number, received, seconds, calls)

    def _carry_out(self, exchange: Exchange, sent: Collection[str]) -> None:
        """``sent``: the calls of this exchange and of earlier ones. They are lost if it fails."""
        answers: Mapping[str, CallAnswer] = {}
        errors: Mapping[str, Exception] = {}
        try:
            function, data = remote.exchange, encode_exchange(exchange)
            reply = decode_reply(self._scheduler.call(function, self._worker.address, (data,), exchange.seconds))
            if reply.process != self._worker.process:
                raise CallLostError("it was started again since the call was made")
            self._ahead.append(reply.clock - self._clock())
            answers = {each.nonce: each for each in reply.answers}
        except RemoteError as error:  # it was not submitted
            lost = CallLostError(str(error))
            errors = {**dict.fromkeys(sent, lost), **{call.nonce: error for call in exchange.calls}}
        except CallLostError as error:
            errors = dict.fromkeys(sent, error)
        except ValueError:
            errors = dict.fromkeys(sent, CallLostError("its reply cannot be read"))
        self._end(exchange.number, answers, errors)

    def _end(self, number: int, answers: Mapping[str, CallAnswer], errors: Mapping[str, Exception]) -> None:
        """Of an answer that nobody waits for, only the receipt is reported."""
        with self._changed:
            self._ended = max(self._ended, number)
            self._returned = time.monotonic()
            self._received.extend(answers)
            waiting = {nonce: self._answers.pop(nonce) for nonce in (*answers, *errors) if nonce in self._answers}
            self._changed.notify()
        for nonce, future in waiting.items():
            if nonce in answers:
                future.set_result(answers[nonce])
            else:
                future.set_exception(errors[nonce])
