"""The keywords of ssh_config: those with an effect here, with parsers of their values, and ignored ones.

A keyword unknown to OpenSSH is refused, as in OpenSSH: it may be a misspelt important one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from rollout.adapters.ssh.ascii_text import printable
from rollout.adapters.ssh.ssh_conditions import NotSupportedError
from rollout.app.ports import Target
from rollout.errors import RemoteError

# The value of ``ProxyJump``: bastions, nearest first.


MOST = 8
_HOP = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^@\s/]+)@)?(?:\[(?P<literal>[0-9A-Fa-f:.%]+)\]|(?P<host>[^@\s/:\[\]-][^@\s/:\[\]]*))"
    r"(?::(?P<port>[0-9]{1,5}))?/?"
)


def hops(text: str) -> Iterator[Target]:
    """``user@host:port,…`` or ``ssh://…``. Raises ``RemoteError`` for anything else."""
    words = text.strip('"').split(",")
    if len(words) > MOST:
        raise RemoteError("ssh-config-invalid", f"ProxyJump has more than {MOST} hosts: {printable(text, 80)}")
    for word in words:
        match = _HOP.fullmatch(word.strip())
        port = int(match["port"]) if match and match["port"] else None
        if match is None or (port is not None and not 1 <= port <= 65535):
            raise RemoteError(
                "ssh-config-invalid",
                f"ProxyJump {printable(text, 80)} is not [user@]host[:port], or several with commas",
            )
        address = match["literal"] or match["host"]
        yield Target(name=address, address=address, user=match["user"], port=port)


Values = tuple[str, ...]
Reader = Callable[[Values, str], Values]

OF_A_SHELL = frozenset("$`\\';&|<>(){}")
"""ssh gives its shell the bastions of ``ProxyJump`` without quotes: ``$USER@bastion`` is no user `$USER`."""
MOST_FILES = 32
MOST_SECONDS = 2**31 - 1
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def _one(words: Values, _rest: str) -> Values:
    if not words or not words[0]:
        raise ValueError("has no value")
    if len(words) > 1:
        raise ValueError("has more than one value")
    return words


def _several(words: Values, _rest: str) -> Values:
    if not all(words):
        raise ValueError("has an empty value")
    if len(words) > MOST_FILES:
        raise ValueError(f"has more than {MOST_FILES} values")
    if len(words) > 1 and any(word.lower() == "none" for word in words):
        raise ValueError("combines none with other values")
    return words


def _whole(_words: Values, rest: str) -> Values:
    return (rest.lstrip(" \t\r\n="),)


def _choice(**meanings: str) -> Reader:
    """``meanings``: the value of each word. ``_`` in a name stands for ``-``."""
    known = {word.replace("_", "-"): meaning for word, meaning in meanings.items()}

    def read(words: Values, rest: str) -> Values:
        word = _one(words, rest)[0]
        if word.lower() not in known:
            raise ValueError(f"is not one of {', '.join(known)}: {word}")
        return (known[word.lower()],)

    return read


def _port(words: Values, rest: str) -> Values:
    word = _one(words, rest)[0]
    if not (word.isascii() and word.isdigit()) or not 1 <= int(word[:20]) <= 65535:
        raise ValueError(f"is not a port: {word}")
    return (str(int(word)),)


def _time(words: Values, rest: str) -> Values:
    """Seconds. ``none`` counts as unset: the next value wins."""
    word = _one(words, rest)[0]
    return () if word == "none" else (str(seconds_of(word)),)


def seconds_of(text: str) -> int:
    """``90``, ``1m30s``, ``2h``. Raises ``ValueError``."""
    total, digits = 0, ""
    for char in f"{text.lower()}s" if text[-1:].isdigit() else text.lower():
        if char.isascii() and char.isdigit():
            digits += char
        elif digits and char in UNITS:
            total, digits = total + int(digits[:20]) * UNITS[char], ""
        else:
            raise ValueError(f"is not a time: {text}")
    if not text or total > MOST_SECONDS:
        raise ValueError(f"is not a time: {text}")
    return total


def _jump(_words: Values, rest: str) -> Values:
    text = rest.lstrip(" \t\r\n=").partition("#")[0].rstrip()
    if text.lower() == "none":
        return ("none",)
    if found := sorted(OF_A_SHELL & set(text)):
        raise NotSupportedError(f"ProxyJump with {' '.join(found)} is not supported: ssh passes it to a shell")
    try:
        list(hops(text))
    except RemoteError as error:
        raise ValueError(error.message) from None
    return (text,)


def _canonicalize(words: Values, rest: str) -> Values:
    if _choice(yes="yes", true="yes", no="no", false="no", always="yes")(words, rest) != ("no",):
        raise NotSupportedError("CanonicalizeHostname is not supported")
    return ("no",)


def _no_names_followed(words: Values, _rest: str) -> Values:
    if words != ("none",):
        raise NotSupportedError("CanonicalizePermittedCNAMEs is not supported")
    return words


_flag = _choice(yes="yes", true="yes", no="no", false="no")

READ: Mapping[str, Reader] = {
    "addressfamily": _choice(any="any", inet="inet", inet6="inet6"),
    "bindaddress": _one,
    "bindinterface": _one,
    "canonicalizehostname": _canonicalize,
    "canonicalizepermittedcnames": _no_names_followed,
    "certificatefile": _one,
    "connecttimeout": _time,
    "globalknownhostsfile": _several,
    "gssapiauthentication": _flag,
    "hostkeyalias": _one,
    "hostname": _one,
    "identitiesonly": _flag,
    "identityagent": _one,
    "identityfile": _one,
    "ignoreunknown": _one,
    "knownhostscommand": _whole,
    "pkcs11provider": _one,
    "port": _port,
    "proxycommand": _whole,
    "proxyjump": _jump,
    "pubkeyauthentication": _choice(
        yes="yes", true="yes", no="no", false="no", unbound="unbound", host_bound="host-bound"
    ),
    "refuseconnection": _one,
    "revokedhostkeys": _one,
    "stricthostkeychecking": _choice(
        yes="yes", true="yes", no="no", false="no", off="no", ask="ask", accept_new="accept-new"
    ),
    "user": _one,
    "userknownhostsfile": _several,
    "verifyhostkeydns": _choice(yes="yes", true="yes", no="no", false="no", ask="ask"),
}
ALIASES = {
    "dsaauthentication": "pubkeyauthentication",
    "identityfile2": "identityfile",
    "smartcarddevice": "pkcs11provider",
}
OF_OPENSSH_9_2_TO_10_5 = """
addkeystoagent afstokenpassing batchmode canonicaldomains canonicalizefallbacklocal canonicalizemaxdots
casignaturealgorithms challengeresponseauthentication channeltimeout checkhostip cipher ciphers clearallforwardings
compression compressionlevel connectionattempts controlmaster controlpath controlpersist dynamicforward
enableescapecommandline enablesshkeysign escapechar exitonforwardfailure fallbacktorsh fingerprinthash
forkafterauthentication forwardagent forwardx11 forwardx11timeout forwardx11trusted gatewayports
globalknownhostsfile2 gssapidelegatecredentials hashknownhosts hostbasedacceptedalgorithms hostbasedauthentication
hostbasedkeytypes hostkeyalgorithms ipqos kbdinteractiveauthentication kbdinteractivedevices keepalive
kerberosauthentication kerberostgtpassing kexalgorithms localcommand localforward loglevel logverbose macs
nohostauthenticationforlocalhost numberofpasswordprompts obscurekeystroketiming passwordauthentication
permitlocalcommand permitremoteopen preferredauthentications protocol proxyusefdpass pubkeyacceptedalgorithms
pubkeyacceptedkeytypes rekeylimit remotecommand remoteforward requesttty requiredrsasize rhostsauthentication
rhostsrsaauthentication rsaauthentication securitykeyprovider sendenv serveralivecountmax serveraliveinterval
sessiontype setenv skeyauthentication stdinnull streamlocalbindmask streamlocalbindunlink syslogfacility tag
tcpkeepalive tisauthentication tunnel tunneldevice updatehostkeys useprivilegedport userknownhostsfile2 useroaming
usersh versionaddendum visualhostkey warnweakcrypto xauthlocation
"""
OF_DEBIAN_RED_HAT_AND_APPLE = """
gssapiclientidentity gssapikexalgorithms gssapikeyexchange gssapirenewalforcesrekey gssapiserveridentity
gssapitrustdns rsaminsize usekeychain
"""
WITHOUT_MEANING_HERE = frozenset(f"{OF_OPENSSH_9_2_TO_10_5} {OF_DEBIAN_RED_HAT_AND_APPLE}".split())
COLLECTED = frozenset({"identityfile", "certificatefile"})
"""All values of these keywords count; of all others the first value counts."""
