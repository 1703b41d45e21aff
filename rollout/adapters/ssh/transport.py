"""paramiko's transport, extended beyond its public API: host certificates, and tunnels through a bastion.

paramiko stores the reason of a refused channel in one place, so concurrent requests may get each other's reason. And a
channel that opens after its caller gave up stays open at the other end. Both are fixed in its message handlers (they
exist since 1.x; no public call lies between).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paramiko.auth_handler import AuthHandler
from paramiko.channel import Channel
from paramiko.common import MSG_CHANNEL_CLOSE, MSG_CHANNEL_REQUEST, cMSG_CHANNEL_OPEN
from paramiko.message import Message
from paramiko.packet import Packetizer
from paramiko.pkey import PKey
from paramiko.ssh_exception import ChannelException, SSHException
from paramiko.transport import Transport

from rollout.adapters.ssh.ascii_text import printable
from rollout.adapters.ssh.certificates import SUFFIX
from rollout.adapters.ssh.limits import KIB, Deadline
from rollout.adapters.ssh.tunnel import Closer
from rollout.adapters.ssh.wire import VERSION
from rollout.errors import RemoteError

# The messages of one channel, in an order that OpenSSH accepts.
#
# paramiko checks that a channel is open, releases its lock, and then sends. Meanwhile another thread may send the
# channel's CLOSE. OpenSSH ends the whole connection at the first message for a closed channel, and a bastion's
# connection carries many nodes. Once the other side has closed too, it reuses the channel's number for a new
# channel. So a late message must be identified by its sending channel, not by the number in it.
#
# So each channel has an outlet, in place of the channel's transport in paramiko. A thread queues its message there;
# if no thread is sending, it sends the queue. No thread waits here for another one: paramiko's own thread, which also
# closes channels, must never wait for a sender.


if TYPE_CHECKING:
    from paramiko.channel import Channel
    from paramiko.message import Message
    from paramiko.transport import Transport


class Outlet:
    """Sends a channel's messages in order, and nothing after its CLOSE. The transport does everything else."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._waiting: deque[Message] = deque()
        self._sending = False
        self._closed = False

    @classmethod
    def of(cls, channel: Channel, transport: Transport) -> None:
        """Give a channel its outlet, before its first message."""
        channel.transport = cls(transport)  # type: ignore[assignment]  # it stands for the transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _send_user_message(self, message: Message) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = message.asbytes()[0] == MSG_CHANNEL_CLOSE
            self._waiting.append(message)
            if self._sending:
                return
            self._sending = True
        try:
            while (following := self._next()) is not None:
                self._transport._send_user_message(following)  # type: ignore[attr-defined]  # noqa: SLF001 - Channel calls it
        except BaseException:
            with self._lock:  # a message is missing: no later message may be sent
                self._closed, self._sending = True, False
                self._waiting.clear()
            raise

    def _next(self) -> Message | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._sending = False
            return None


BIGGEST_PACKET = 256 * KIB
WINDOW = 256 * KIB


class Packets(Packetizer):
    """Limited packet size, and no timer thread per handshake: the watchdog enforces the deadline.

    ``ended``: nothing more can be read. paramiko ends the channels first and marks the transport inactive later.
    ``said``: our version, which was sent already.
    """

    ended = False
    said = b""

    def write_all(self, out: Any) -> None:
        if self.said and out == self.said:
            self.said = b""
        else:
            super().write_all(out)

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:  # noqa: FBT001, FBT002
        if n > BIGGEST_PACKET:
            raise SSHException("a packet larger than 256 KiB")
        try:
            return super().read_all(n, check_rekey)
        except (EOFError, OSError):
            self.ended = True
            raise

    def start_handshake(self, timeout: float) -> None:
        """The watchdog does this."""


def _requested(channel: Channel, message: Message) -> None:
    """The command has ended, by a signal too: paramiko notes that only for an exit status."""
    begin = message.packet.tell()
    if message.get_text() == "exit-signal":
        channel.status_event.set()
    message.packet.seek(begin)
    channel._handle_request(message)  # type: ignore[attr-defined]  # noqa: SLF001 - what paramiko's table has here


class LoginAtOnce(AuthHandler):
    """Sends the request to log in behind that for the service which checks it, without waiting for its answer (RFC 4252 allows it)."""

    def _request_auth(self) -> None:
        super()._request_auth()  # type: ignore[misc]  # not in the stubs
        granted = Message()
        granted.add_string("ssh-userauth")
        granted.rewind()
        super()._parse_service_accept(granted)  # type: ignore[misc]

    def _parse_service_accept(self, message: Message) -> None:
        """What it allows was sent before."""


class NodeTransport(Transport):
    """To a node. ``certified``: ask for a host certificate first, which only helps with a known authority."""

    certified = False
    opens_ahead = True
    """A session will be needed."""
    farewell = ""
    """The other side's disconnect message."""
    accepted_key = ""
    """The type and fingerprint of our key, once the login has succeeded."""

    def __init__(self, wire: Any) -> None:
        super().__init__(wire, default_window_size=WINDOW, packetizer_class=Packets)
        self.local_version = VERSION.decode().strip()
        self._ahead: tuple[Channel, threading.Event] | None = None
        self._channel_handler_table = {
            **self._channel_handler_table,  # type: ignore[has-type]
            MSG_CHANNEL_REQUEST: _requested,
        }

    @property
    def preferred_keys(self) -> tuple[str, ...]:
        plain = tuple(self.get_security_options().key_types)
        return (*(f"{kind}{SUFFIX}" for kind in plain), *plain) if self.certified else plain

    @property
    def extensions(self) -> Mapping[str, bytes]:
        """What the server has said so far of its abilities."""
        found: Mapping[str, bytes] = self.server_extensions  # type: ignore[attr-defined]
        return found

    @property
    def lost(self) -> bool:
        return bool(self.farewell or self.packetizer.ended or not self.is_active())  # type: ignore[attr-defined]

    def start_behind(self, said: bytes, done: threading.Event) -> None:
        """As ``start_client``, after this part of what it says was sent."""
        self.packetizer.said = said  # type: ignore[attr-defined]
        self.start_client(event=done)

    def log_in(self, user: str, key: PKey, done: threading.Event) -> None:
        """As ``auth_publickey``, and a round trip shorter where the kind of signature need not be agreed on."""
        if not self.active or not self.initial_kex_done:  # type: ignore[attr-defined]
            raise SSHException("No existing session")
        handler = LoginAtOnce(self)
        self.auth_handler = handler
        handler.auth_publickey(user, key, done)

    def open_ahead(self) -> None:
        """Send the request for a session, for the next ``session``, without waiting for an answer: to a login, say.

        A server handles messages in their order. If it refuses the login, it answers this one with an error, or ends the connection.
        """
        with self.lock:
            number = self._next_channel()  # type: ignore[attr-defined]
            channel, opened = Channel(number), threading.Event()
            self._channels.put(number, channel)  # type: ignore[attr-defined]
            self.channel_events[number] = opened
            self.channels_seen[number] = True
            channel._set_transport(self)  # type: ignore[attr-defined]  # noqa: SLF001 - as open_channel does
            channel._set_window(WINDOW, self.default_max_packet_size)  # type: ignore[attr-defined]  # noqa: SLF001
            self._ahead = channel, opened  # paramiko itself keeps only weak references
        request = Message()
        request.add_byte(cMSG_CHANNEL_OPEN)
        request.add_string("session")
        request.add_int(number)
        request.add_int(WINDOW)
        request.add_int(self.default_max_packet_size)
        self._send_user_message(request)  # type: ignore[attr-defined]

    def session(self, seconds: float) -> Channel:
        """The session that was requested ahead, or a new one. Errors as of ``open_session``."""
        with self.lock:
            ahead, self._ahead = self._ahead, None
        if ahead is None:
            return self.open_session(timeout=seconds)
        channel, opened = ahead
        if not opened.wait(seconds):
            raise SSHException("Timeout opening channel.")
        refused = self._channels.get(channel.get_id()) is None  # type: ignore[attr-defined]
        if refused or not self.is_active():
            raise self.get_exception() or SSHException("Unable to open channel.")
        return channel

    def _parse_channel_open_success(self, message: Message) -> None:
        channel = self._channels.get(message.get_int())  # type: ignore[attr-defined]
        if channel is not None:
            Outlet.of(channel, self)
        message.rewind()
        super()._parse_channel_open_success(message)  # type: ignore[misc]

    def _parse_channel_open_failure(self, message: Message) -> None:
        """A session behind a login that the server has not granted is not the reason of anything: after another login a new one is requested."""
        if self.is_authenticated():
            super()._parse_channel_open_failure(message)  # type: ignore[misc]
        else:
            self._ahead = None

    def _parse_debug(self, message: Message) -> None:
        """sshd sends the options of the accepted key. paramiko would prepare them for its log byte by byte, at the cost of a key exchange."""

    def _parse_disconnect(self, message: Message) -> None:
        message.get_int()
        self.farewell = printable(message.get_text())


def answer_seconds(transport: Transport) -> float:
    """Until the other side answers a question that opens nothing. Any answer counts; sshd refuses it, which proves that it is alive.

    Raises ``SSHException`` if the connection ends instead.
    """
    began = time.monotonic()
    transport.global_request("keepalive@openssh.com", wait=True)
    if not transport.is_active():
        raise SSHException("the connection was lost")
    return time.monotonic() - began


class CarrierTransport(NodeTransport):
    """To a bastion: opens tunnels for many threads at once; each gets its own reason."""

    opens_ahead = False  # a bastion may allow tunnels and no session

    def __init__(self, wire: Any) -> None:
        super().__init__(wire)
        self._mine = threading.local()
        self._refusals: dict[int, tuple[int, str]] = {}
        self._given_up: set[int] = set()
        self.closer = Closer()
        self._channel_handler_table = {
            **self._channel_handler_table,
            MSG_CHANNEL_CLOSE: self._closed_by_the_other_side,
        }

    def open_tunnel(self, host: str, port: int, deadline: Deadline) -> Channel:
        """Raises ``ChannelException`` with sshd's message, ``TimeoutError``, or ``RemoteError`` when it is dead."""
        try:
            return self.open_channel("direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=deadline.left())
        except ChannelException as error:
            code, text = self._refusals.pop(self._mine.number, (error.code, error.text))
            raise ChannelException(code, text) from None
        except (SSHException, OSError, EOFError) as error:
            number = self._mine.number
            refusal = self._refusals.pop(number, None)
            if refusal is not None:
                raise ChannelException(*refusal) from None
            if not self.is_active():
                raise RemoteError("connection-lost", "the connection was lost") from None
            with self.lock:
                self._given_up.add(number)
            raise TimeoutError(str(error)) from None

    def _next_channel(self) -> int:
        self._mine.number = number = int(super()._next_channel())  # type: ignore[misc]  # not in the stubs
        return number

    def _parse_channel_open_failure(self, message: Message) -> None:
        number, code, text = message.get_int(), message.get_int(), message.get_text()
        if number in self._given_up:
            self._given_up.discard(number)
        else:
            self._refusals[number] = (code, text)
        message.rewind()
        super()._parse_channel_open_failure(message)

    def _parse_channel_open_success(self, message: Message) -> None:
        number, theirs = message.get_int(), message.get_int()
        with self.lock:
            late = number in self._given_up
            self._given_up.discard(number)
        if late:
            close = Message()
            close.add_byte(bytes([MSG_CHANNEL_CLOSE]))
            close.add_int(theirs)
            self.closer.send(self, close)
            return
        message.rewind()
        super()._parse_channel_open_success(message)

    def _closed_by_the_other_side(self, channel: Channel, _message: Message) -> None:
        """The closer thread answers: this reading thread must not wait until sending is allowed again."""
        self.closer.end(channel)
        self._unlink_channel(channel.chanid)  # type: ignore[attr-defined]
