"""What the error of a failed pull says: a chain ``outer: …: last cause``, of which each known end is a whole form.

Go programs join errors with ``": "``. Quoted texts, URLs, digests, paths and addresses are tokens here, so that neither a digest
with ``403`` in it nor a file's name is taken for a cause. What stands behind a registry's own code or status is the
registry's text: it may contain any words, and counts for nothing.

Sources of the forms: containerd core/remotes/docker (resolver.go, fetcher.go, authorizer.go), core/unpack, core/content and
core/snapshots, 1.5 to 2.3; moby distribution and registry (errors.go), 19.03 to 28; containers/image docker/docker_client.go,
internal/image and signature; docker/distribution registry/api/errcode; Go net, net/http, crypto/tls, crypto/x509, syscall.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.features.diagnose.rules.finding import Confidence


class PullCause(StrEnum):
    """Why a pull failed, for people: the end of a sentence that begins with "because"."""

    NO_IMAGE = "the registry has no such image or tag"
    INVALID_NAME = (
        "the image's name, in the pod or in the node's configuration, is not a valid one, so no registry is asked"
    )
    SHORT_NAME = "the image's name is short, without a registry, and the node's runtime does not choose one of several, or has none to choose"
    OLD_FORMAT = "the image has a manifest of the old format (schema 1), which this runtime does not pull: the image has to be built anew"
    NEVER = "the pod forbids the pull (imagePullPolicy: Never), and the node does not have the image"
    NO_PART = "the host that was asked lacks a manifest or a layer that the image names"
    NO_IMAGE_OR_ACCESS = "the registry has no such repository, or does not show it without other credentials"
    CREDENTIALS = "the registry refuses the credentials, or there are none"
    FORBIDDEN = "the registry refuses the node or its credentials (403)"
    STORAGE_REFUSES = "the signed link to the storage that the registry names for its layers is refused (403), by the storage or by what is between: the registry's credentials are no part of it"
    DENIED_OTHERWISE = "the registry denies the pull, for a reason of its own"
    BLOCKED = "the node's own configuration blocks this registry"
    ADDRESS_BLOCKED = (
        "the registry is public and refuses this address (403): the address is blocked, or a proxy refuses the request"
    )
    RATE = "the registry limits the rate of pulls"
    SERVER = "the registry answers with an error of its own (5xx)"
    NO_NAME = "the registry's name cannot be resolved: its DNS server knows no such name"
    DNS_SILENT = (
        "the registry's name cannot be resolved: the node's DNS server does not answer, or answers with an error"
    )
    PROXY = "the node's HTTP proxy cannot be used"
    PROXY_REFUSES = "the node's HTTP proxy refuses the request"
    WEB_PAGE = "something other than a registry answers: a web page, for example of a proxy or of a login"
    UNREACHABLE = "the registry cannot be reached"
    SOCKET = "the node asks for images through a socket of its own, and no program answers there"
    NODE_LIMIT = "the runtime on the node cannot open another file or connection: it has reached a limit of the node"
    REFUSED = "the host that was asked refuses the request (4xx)"
    SLOW_ANSWER = "the registry does not answer in time"
    RESET = "the connection broke during the transfer"
    NOT_TLS = "the registry answers without TLS at this address"
    CERTIFICATE = "the registry's certificate is not trusted"
    CERTIFICATE_NAME = "the registry's certificate is for other names than the one that was asked"
    CERTIFICATE_REFUSED = "the registry's certificate is not accepted"
    TLS_REFUSED = "the registry refuses the node's TLS handshake"
    CERTIFICATE_TIME = "the registry's certificate is not valid at this time by the node's clock: the clock is wrong, or the certificate has expired"
    PLATFORM = "the image has no variant for this node's platform"
    LAYER_KIND = "the runtime cannot unpack a layer of this media type: it is of an artifact that is no image, is encrypted, or needs a newer runtime or a plugin"
    NO_KEY = "the image's layers are encrypted, and the node has no key for them"
    ARTIFACT = "the name is that of an artifact, such as a Helm chart or a signature, and not of an image that can run"
    MISMATCH = "the image's manifest and its configuration do not have the same layers: the image was built wrongly, or it is an artifact"
    DISK_FULL = "the node's disk is full: it has no space or no inodes left"
    MOUNTS_FULL = (
        "the node cannot mount a layer: its disk is full, or it has as many mounts as its kernel allows (fs.mount-max)"
    )
    QUOTA = "a disk quota of the node is used up"
    READ_ONLY = "the node's file system is read-only"
    DISK_ERROR = "the node's disk reports input or output errors"
    NO_MEMORY = "the node's kernel gives the runtime no memory (ENOMEM): for example, the memory is used up, or a limit of the runtime's unit or cgroup is reached"
    KILLED = "a program that unpacks the layer was killed on the node (SIGKILL), for example for lack of memory"
    NO_RIGHT = "the runtime may not do this to a file of the node: by the rights of its service, a user namespace or a security module"
    NO_ATTRIBUTES = "the node's file system cannot store the extended attributes of a layer's files"
    NO_OWNER = "the layer has a user or a group that the runtime's user namespace does not map"
    NO_PROGRAM = "a program that the runtime starts for the pull is in no folder of its PATH on the node"
    SNAPSHOTS = "the runtime's own store lacks a layer or a snapshot that it has recorded: the image and the registry are not the cause"
    LEFTOVERS = "the runtime's own store still has the directory of a layer that it has not recorded: the image and the registry are not the cause"
    SNAPSHOTTER = "the runtime's snapshotter, which is a program of its own, does not answer: the image and the registry are not the cause"
    LOCKED = "another pull of the same layer holds its lock in the runtime"
    UNPACK = (
        "the layer that the node has stored cannot be unpacked: its copy on the node, or the image itself, is damaged"
    )
    DAMAGED = "the data that arrived is not that of the image: it was damaged or cut off on its way"
    SIGNATURE = "the node's signature policy rejects the image"
    POLICY_FILE = "the node's signature policy cannot be read, so no image is accepted"
    CANCELLED = "the pull was cancelled"
    OWN_LIMIT = "a program between the kubelet and the registry ended the pull at a time limit of its own"
    RUNTIME_AWAY = "the container runtime does not answer"


LONGEST = 4096
"""Characters of an error that are read: its end, which has the last cause."""
LONGEST_CHAIN = 512
"""Characters of its end that are compared with the forms, where names, files and digests have one each."""


@dataclass(frozen=True, slots=True)
class PullError:
    """``confidence``: CERTAIN for a whole form; LIKELY where only its last words are known; UNKNOWN else, with no ``cause``.

    ``words``: the last cause as it was printed. ``host``: the host that was asked (``""``: the error names none). ``mirror_of``: the registry
    for which it is a mirror. ``links``: the beginnings of the chain's links, up to their first name, file or digest. ``mirrors``: what the mirrors
    answered that were asked before. ``others``: the last words of the other tries of a list, where they differ.
    """

    cause: PullCause | None
    confidence: Confidence
    words: str
    host: str = ""
    links: tuple[str, ...] = ()
    mirror_of: str = ""
    mirrors: str = ""
    others: str = ""


def read_error(text: str) -> PullError:
    """What the error says. Any text is read; an unknown one has no cause. A list has an error for each of the credentials that were tried."""
    tries = [_read(each) for each in _tries(_unescaped(text[-LONGEST:]))]
    last = tries[-1]
    if last.confidence is Confidence.CERTAIN and len({each.cause for each in tries}) > 1:
        others = "`, `".join(dict.fromkeys(each.words for each in tries[:-1] if each.cause is not last.cause))
        return replace(last, confidence=Confidence.LIKELY, others=others[:200])
    return last


_NEXT_TRY = re.compile(
    r", (?=rpc error: code = \w{1,20} desc = |failed to pull and unpack image \"|unable to pull image or OCI artifact: pull image err: "
    r"|initializing source docker://|\(Mirrors also failed: \[)"
)
_AS_ARTIFACT = "; artifact err: "
"""Behind it, CRI-O from 1.32 on prints what the same pull answered for an artifact that is no image."""
_MIRRORS = "(Mirrors also failed: ["
_AFTER_MIRRORS = re.compile(r"\]\): (?=[^ ]{1,400}: )")
"""containers/image docker/docker_image_src.go: the last source that was tried, which is the registry itself, stands behind its mirrors."""


def _tries(plain: str) -> list[str]:
    """The errors of a list as the kubelet joins them, see ``NewAggregate`` of apimachinery; else the one error."""
    tries = _NEXT_TRY.split(plain[1:-1]) if plain.startswith("[") and plain.endswith("]") else [plain]
    return [each.partition(_AS_ARTIFACT)[0] for each in tries]


def _read(plain: str) -> PullError:
    before, _, behind = plain.partition(_MIRRORS)
    end = _AFTER_MIRRORS.search(behind)
    if end:
        return replace(_chain(before + behind[end.end() :]), mirrors=behind[: end.start()])
    return _chain(plain)


def _chain(plain: str) -> PullError:
    skeleton, tokens = _skeleton(plain)
    links = _links(skeleton)
    asked = _host(tokens, links)
    chain = ": ".join(links)
    shown = chain if len(chain) <= LONGEST_CHAIN else f"…{chain[-LONGEST_CHAIN:]}"
    begins = tuple(re.split(rf" ?[{_MARKS}(]", link)[0] for link in links)
    for form in _FORMS:
        if form.pattern.search(shown):
            refused = form.cause is PullCause.FORBIDDEN or (
                form.cause is PullCause.NO_IMAGE_OR_ACCESS and links[-1] == "denied"
            )
            cause = PullCause.ADDRESS_BLOCKED if refused and _is_public(asked, tokens) else form.cause
            confidence = form.confidence
            url = _url(links, tokens)
            words, mirror_of = _printed(links, tokens)[-1][:200], _mirrored(url)
            if cause is PullCause.SLOW_ANSWER and words == "context deadline exceeded" and not url.endswith("/v2/"):
                # a limit of the whole pull ends a later request than the first one with the same words
                confidence = Confidence.LIKELY
            if words.startswith("403 ") and "httpReadSeeker" in links and _SIGNED.match(url):
                cause = PullCause.STORAGE_REFUSES
            if cause is PullCause.NO_IMAGE_OR_ACCESS and links[-1] == "denied":
                told = _behind(skeleton, tokens, "denied: ")
                if any(form.match(told) for form in _OTHERWISE):
                    words, cause = told, PullCause.DENIED_OTHERWISE
                elif _SOUNDS_OTHERWISE.search(told) and not _OF_ACCESS.search(told):
                    words, cause, confidence = told, PullCause.DENIED_OTHERWISE, Confidence.LIKELY
            if cause is PullCause.REFUSED and (told := _behind(skeleton, tokens, f"{links[-1]} - Server message: ")):
                words = f"{links[-1]}: {told}"[:200]
            return PullError(cause, confidence, words, asked, begins, mirror_of)
    return PullError(None, Confidence.UNKNOWN, _printed(links, tokens)[-1][:200], asked, begins)


_SIGNED = re.compile(
    r"https?://[^/?]+/(?!v2/)[^?]*\?(?:.*&)?(?:X-Amz-(?:Algorithm|Signature|Expires)|X-Goog-(?:Algorithm|Signature|Expires)|Signature|sig|verify)="
)
"""A link that carries its own permission, and is not the registry's. A client gets it from the registry, which has taken the credentials by then."""
_OTHERWISE = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"You have exceeded your [\w ]{0,40}(?:quota|limit)\b",
        r"(?:[\w.-]{1,40} ){0,4}quota (?:has been )?exceeded\b",
        r"client with IP '[^']{1,60}' is not allowed access\b",
        r"current image (?:with \d+ vulnerabilities|without vulnerability scanning) cannot be pulled\b",
        r"(?:Artifact|Container|Google Container) Registry API has not been used in project\b",
    )
)
"""How texts of registries begin that deny a pull for something other than the credentials."""
_SOUNDS_OTHERWISE = re.compile(
    r"\b(?:quota|exceeded|suspended|disabled|payment|billing|vulnerabilit(?:y|ies)|severity|scann(?:ed|ing)|quarantined?|maintenance)\b",
    re.IGNORECASE,
)
_OF_ACCESS = re.compile(
    r"\b(?:access|permission|permitted|privileges?|auth\w*|unauthori[sz]ed|log(?:in|ged)|credentials?|tokens?|passwords?|users?|accounts?|roles?|anonymous|forbidden)\b",
    re.IGNORECASE,
)
"""Words of a text about the credentials. A repository or a user may have any of the words above for its name."""


def _behind(skeleton: str, tokens: list[tuple[str, str]], begins: str) -> str:
    """The registry's own text behind these words of a link, as it was printed."""
    told = re.search(rf"(?:^|: ){re.escape(begins)}(.*)$", skeleton)
    return _printed([told[1]], tokens[len(tokens) - sum(map(told[1].count, _MARKS)) :])[0][:200] if told else ""


def _url(links: list[str], tokens: list[tuple[str, str]]) -> str:
    """The last URL ahead of a registry's own text."""
    own = sum(map("".join(links).count, _MARKS))
    return next((text for kind, text in reversed(tokens[:own]) if kind == "url"), "")


_OF_A_MIRROR = re.compile(
    r"https?://(?P<host>[^/?#]+)/[^?#]*\?ns=(?P<of>[\w-]{0,63}(?:[.:][\w-]{1,63}){1,9}|localhost)"
)


def _mirrored(url: str) -> str:
    """The registry for which containerd asked a mirror: it adds ``ns=``, its only key, for no other host. Source: core/remotes/docker, ``isProxy``."""
    found = _OF_A_MIRROR.fullmatch(url)
    own = found is None or found["of"] == found["host"] or (found["of"], found["host"]) == _HUB
    return found["of"] if found and not own else ""


_HUB = ("docker.io", "registry-1.docker.io")
"""A registry and its own host, of another name."""


_PUBLIC = frozenset({"registry.k8s.io", "k8s.gcr.io"})
"""Registries that ask nobody for credentials."""
_BEHIND_PUBLIC = "/v2/k8s-artifacts-prod/"
"""Where registry.k8s.io sends its clients."""


def _is_public(asked: str, tokens: list[tuple[str, str]]) -> bool:
    """Whether the registry that was asked has no private images."""
    return asked in _PUBLIC or any(kind == "url" and _BEHIND_PUBLIC in text for kind, text in tokens)


# Tokens. The private characters stand for them; a text cannot bring its own, see ``_skeleton``.

_QUOTED, _URL, _DIGEST, _PATH, _ADDRESS, _KERNEL = "\ue000", "\ue001", "\ue002", "\ue003", "\ue004", "\ue005"
"""``_KERNEL``: a file of the kernel's own file systems, which are on no disk. Their errors are limits of the kernel."""
_ALL = f"[{_QUOTED}-{_KERNEL}]"
_TOKEN = re.compile(
    r'(?P<url>"?https?://[^\s"]+?"?(?=:? |:?$))'
    r'|(?P<quoted>"[^"]{0,4096}")'
    r"|(?P<digest>\bsha(?:256|512):[0-9a-f]{6,128}\b|\b[0-9a-f]{12,128}\b)"
    r"|(?P<address>\[[0-9a-f:.]+\]:\d{1,5}|\b\d{1,3}(?:\.\d{1,3}){3}:\d{1,5}\b)"
    r"|(?P<kernel>(?<![\w.:/-])/(?:sys|proc)/[^\s:\"]*)"
    r"|(?P<path>(?<![\w.:/-])/[^\s:\"]*)"
)
_MARK = {"quoted": _QUOTED, "url": _URL, "digest": _DIGEST, "path": _PATH, "address": _ADDRESS, "kernel": _KERNEL}
_MARKS = "".join(_MARK.values())


def _unescaped(text: str) -> str:
    """Without the quoting of the lines around it, which may be two deep."""
    lines = [line for line in text.replace("\\n", "\n").splitlines() if line.strip(' "\\')]
    # Joined errors have a line each, and a registry's text has lines too: the first one counts, and what it introduces.
    first = lines[0] if lines else ""
    if first.rstrip().endswith(":") and len(lines) > 1:
        first = f"{first.rstrip()} {lines[1]}"
    return re.sub(r'(?<!\\)\\{1,64}"', '"', first).strip().strip('"').strip()


def _skeleton(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text with a character for each token, and the tokens: kind and text, in their order."""
    plain = re.sub("[\ue000-\uf8ff]", "?", text)
    tokens = [(_kind(match), match[0].strip('"')) for match in _TOKEN.finditer(plain)]
    return _TOKEN.sub(lambda match: _MARK[_kind(match)], plain), tokens


def _kind(match: re.Match[str]) -> str:
    is_url = match[0].startswith(('"http://', '"https://'))
    return "url" if is_url else match.lastgroup or ""


def _links(skeleton: str) -> list[str]:
    """The chain, without gRPC's wrapping, up to the first link after which a registry's own text begins."""
    chain = re.sub(r"rpc error: code = \w+ desc = ", "", skeleton).removesuffix(
        ": unknown"
    )  # containerd's own, of gRPC
    links: list[str] = []
    for link in _unwrapped(chain).split(": "):
        plain = link.strip(" .")
        status = _STATUS.fullmatch(plain)
        links.append((status[1] or f"StatusCode {status[2]}") if status else plain)
        if status or _REGISTRY_SAYS.fullmatch(plain):
            break
    return [link for link in links if link] or [chain.strip()]


_CHILD = re.compile(r": exit status \d{1,3}$")


def _unwrapped(chain: str) -> str:
    """The error of a child process, which dockerd and CRI-O print in brackets: ``processing tar file(CAUSE): exit status 1``."""
    begin = chain.find("processing tar file(")
    if begin >= 0 and (end := _CHILD.search(chain)) and chain[: end.start()].endswith(")"):
        return f"{chain[:begin]}processing tar file: {chain[begin + len('processing tar file(') : end.start() - 1]}"
    begin = chain.find("unpacking failed (error: exit status ")
    output = chain.find("; output: ", begin) if begin >= 0 else -1
    if output >= 0 and chain.endswith(")"):
        return f"{chain[:begin]}unpacking failed: {chain[output + len('; output: ') : -1]}"
    return chain


_STATUS = re.compile(
    r"(\d{3} [A-Z][\w ]{0,40}) - Server message|(?:invalid status code from registry )?(\d{3})(?:,.*| \([A-Z][\w ]{0,40}\))"
)
_CODES = (
    r"blob unknown|blob upload unknown|digest invalid|manifest blob unknown|manifest invalid|manifest unknown|manifest unverified|"
    r"name invalid|name unknown|unauthorized|denied|unsupported|toomanyrequests|unknown|too many requests"
)
"""Error codes of the distribution protocol as clients print them. The registry's own message follows."""
_REGISTRY_SAYS = re.compile(
    rf"(?:.* )?server message|{_CODES}|\d{{3}} [A-Z][\w ]+|(?:received unexpected HTTP status|unexpected HTTP status) .*"
)


@dataclass(frozen=True, slots=True)
class _Form:
    cause: PullCause
    pattern: re.Pattern[str]
    confidence: Confidence


def _whole(cause: PullCause, *ends: str) -> _Form:
    """The chain ends with one of these, from the begin of a link on."""
    return _Form(cause, re.compile(rf"(?:^|: )(?:{'|'.join(ends)})$"), Confidence.CERTAIN)


def _part(cause: PullCause, *words: str) -> _Form:
    """The last link ends with these words, in a form that is not known."""
    return _Form(cause, re.compile(rf"\b(?:{'|'.join(words)})$"), Confidence.LIKELY)


_ERRNO = {
    PullCause.DISK_FULL: "no space left on device",
    PullCause.QUOTA: "disk quota exceeded",
    PullCause.READ_ONLY: "read-only file system",
    PullCause.DISK_ERROR: "input/output error",
    PullCause.NO_MEMORY: "cannot allocate memory",
}
_CALL = rf"(?:[a-z_]+ {_PATH}(?: {_PATH})?|(?:mount|copy_file_range|write|sync|fsync|mkdir|link|symlink|failed to [a-z]+)(?: [^:{_KERNEL}]*)?)"
"""A system call and its file, as Go's os.PathError and os.LinkError print them."""
_ASKED = rf"(?:(?:Get|Head|Post|Put|HEAD|GET) {_URL}|failed to do request)"
_DIALED = rf"dial tcp(?: (?:{_ADDRESS}|\S+))?(?: ->{_ADDRESS})?"
_DNS = rf"(?:{_DIALED}: )?(?:dial tcp: )?lookup \S+(?: on {_ADDRESS})?"
_IMAGE = r"[\w.][\w.:/@-]*"
_UNPACKS = r"(?:failed to extract layer|failed to register layer|[Pp]rocessing tar file|unpacking failed|adding layer with blob)"
"""The steps that read what is stored: containerd and docker verify a layer's digest before them, and CRI-O verifies it while it unpacks."""
_READS = rf"(?:failed to copy|httpReadSeeker|happened during read|failed to read expected number of bytes|{_ASKED})"
"""The steps that read from a host."""
_NO_LAYER = r"(?:archive/tar: )?invalid tar header|gzip: invalid (?:header|checksum)|flate: corrupt input before offset \d{1,20}"
_FORMS = (
    # The node's own store and disk. Each names a call and a file of the node.
    _whole(PullCause.MOUNTS_FULL, rf"(?:error )?(?:creating overlay mount|failed to mount|mount)(?: [^:]*)?: {_ERRNO[PullCause.DISK_FULL]}"),
    *(_whole(cause, rf"{_CALL}: {words}") for cause, words in _ERRNO.items()),
    _whole(PullCause.NODE_LIMIT, r"[^:]{1,300}: too many open files(?: in system)?", rf"fork/exec {_PATH}: resource temporarily unavailable"),
    _whole(
        PullCause.SNAPSHOTS,
        rf"(?:parent )?snapshot (?:{_DIGEST}|{_QUOTED}|\S+) does not exist(?:: not found)?",
        rf"(?:failed to [^:]*: )?content digest {_DIGEST}: not found",
        rf"blob {_DIGEST} expected at {_PATH}: blob not found: not found",
        r"(?:failed to stat snapshot|failed to get snapshot|failed to prepare extraction snapshot) [^:]*: (?:[^:]*: )?not found",
        r"layer does not exist", r"unknown parent layer", r"layer not known",
        rf"(?:failed to create (?:snapshot|active): )?missing parent (?:{_QUOTED} )?bucket: not found",
        rf"(?:error )?creating overlay mount to {_PATH}(?:, mount_data={_QUOTED})?: no such file or directory",
        rf"readlink {_PATH}: (?:invalid argument|no such file or directory)",
    ),
    _Form(
        PullCause.SNAPSHOTTER,
        re.compile(rf"(?:^|: )(?:failed to (?:prepare extraction|stat|get|commit) snapshot|failed to create snapshot)[^:]*: connection error: desc = {_QUOTED}(?:: unavailable)?$"),
        Confidence.CERTAIN,
    ),
    _whole(PullCause.NO_MEMORY, rf"fork/exec {_PATH}: cannot allocate memory"),
    _Form(PullCause.KILLED, re.compile(rf"\b{_UNPACKS}.*: signal: killed$"), Confidence.LIKELY),
    _whole(
        PullCause.NO_RIGHT,
        rf"(?:[a-z_]+|lsetxattr \S+|failed to convert whiteout file) (?:{_PATH}|{_QUOTED})(?: {_PATH})?: (?:operation not permitted|permission denied)",
        rf"Error while loading {_PATH}: Permission denied",
    ),
    _whole(PullCause.NO_ATTRIBUTES, rf"lsetxattr \S+ {_PATH}: operation not supported"),
    _Form(PullCause.NO_OWNER, re.compile(rf": lchown {_PATH}: invalid argument$"), Confidence.LIKELY),
    _Form(PullCause.SNAPSHOTS, re.compile(rf"\b{_UNPACKS}: symlink \S+ {_PATH}: no such file or directory$"), Confidence.LIKELY),
    _whole(PullCause.NO_PROGRAM, rf"exec: {_QUOTED}: executable file not found in \$PATH"),
    _whole(PullCause.LEFTOVERS, rf"rename {_PATH} {_PATH}: (?:file exists|directory not empty)"),
    _whole(PullCause.POLICY_FILE, rf"invalid policy in {_QUOTED}: .*"),
    _whole(PullCause.LOCKED, rf"ref \S*{_ALL}? ?locked for [^:]*(?::\d\d[^:]*)*: unavailable", r"ref \S+ locked(?: for [^:]*)?: unavailable"),
    _whole(
        PullCause.DAMAGED,
        r"unexpected commit (?:digest|size) [^:]*(?:: failed precondition)?",
        rf"manifest verification failed for digest {_DIGEST}",
        rf"{_QUOTED} failed size validation: \d{{1,20}} != \d{{1,20}}: failed precondition",
        rf"filesystem layer verification failed for digest {_DIGEST}",
    ),
    _Form(PullCause.UNPACK, re.compile(rf"\b{_UNPACKS}.*: (?:(?:unexpected )?EOF|{_NO_LAYER})$"), Confidence.LIKELY),
    _Form(PullCause.UNPACK, re.compile(rf"(?:^|: )(?:{_NO_LAYER})$"), Confidence.LIKELY),
    _Form(PullCause.UNPACK, re.compile(r": unpigz: skipping: <stdin>: corrupted -- [^:]*$"), Confidence.LIKELY),
    _whole(
        PullCause.SIGNATURE,
        r"Source image rejected", r"Source image rejected: .*", r"SignatureValidationFailed.*",
    ),
    # The image.
    _whole(PullCause.NO_KEY, r".*\bno suitable key (?:unwrapper )?found .*", r"missing private key needed for decryption.*"),
    _whole(PullCause.LAYER_KIND, r"no processor for media-type"),
    _whole(
        PullCause.ARTIFACT,
        r"unsupported image-specific operation on artifact with type .*", rf"Encountered remote {_QUOTED}\([^)]*\) when fetching",
    ),
    _whole(PullCause.MISMATCH, r"mismatched image rootfs and manifest layers", r"layers from manifest don't match image configuration"),
    _whole(PullCause.BLOCKED, rf"registry \S+ is blocked in {_PATH}(?: or {_PATH})?"),
    _whole(
        PullCause.PLATFORM,
        rf"no match for platform in manifest(?: {_DIGEST})?: not found",
        r"no matching manifest for \S+ in the manifest list entries(?:: .*)?",
        r"no image found in (?:image index|manifest list|image index/manifest list|manifest list or image index) for architecture [^:]*",
        r"no matching manifest for .*", r"no supported platform found in manifest list",
        rf"image operating system {_QUOTED} cannot be used on this platform(?:: operating system is not supported)?",
    ),
    _whole(
        PullCause.WEB_PAGE,
        rf"(?:unexpected|unsupported|unhandled) (?:media|manifest MIME|manifest) ?type text/html[^:]*(?: for {_DIGEST})?(?:: not found)?",
        r"invalid character '<' looking for beginning of value(?:: .*)?",
        r"error parsing HTTP \d{3} response body.*", r"unsupported manifest media type and no default available: text/html.*",
        r"unsupported manifest media type and unexpected content: text/html.*",
        r"Unsupported(?: or missing)? (?:schema version|manifest media type) text/html.*",
    ),
    _whole(
        PullCause.NO_IMAGE,
        rf"failed to resolve (?:reference|image) {_QUOTED}: {_IMAGE}: not found",
        r"(?:.* )?manifest unknown", r"(?:.* )?name unknown",
        rf"manifest for {_IMAGE} not found(?:: manifest unknown)?",
        rf"failed to resolve (?:reference|image) {_QUOTED}: not found",
    ),
    _whole(
        PullCause.INVALID_NAME,
        rf"couldn't parse image (?:name|reference) {_QUOTED}: invalid reference format(?:: .*)?", r"no such image: \S{1,512}: invalid reference format",
    ),
    _whole(
        PullCause.SHORT_NAME,
        r"short name mode is enforcing, but image name \S{1,512} returns ambiguous list",
        rf"short-name {_QUOTED} did not resolve to an alias and no (?:unqualified-search registries are defined|containers-registries\.conf\(5\) was found)(?: in {_QUOTED})?",
    ),
    _whole(
        PullCause.OLD_FORMAT,
        rf"media type {_QUOTED} is no longer supported since containerd v2\.\d{{1,3}}, please rebuild the image as .*",
        r"Pulling Schema 1 images have been deprecated and disabled by default since containerd v2\.0\. .*",
    ),
    _whole(PullCause.NEVER, r"is not present with pull policy of Never"),
    _whole(
        PullCause.NO_PART,
        rf"content at {_URL} not found: not found", r"content at \S+ not found: not found",
        rf"could not fetch content descriptor {_DIGEST} \([^:)]*\) from remote: not found",
    ),
    _whole(
        PullCause.NO_IMAGE_OR_ACCESS,
        r"repository \S+ not found: does not exist or no pull access",
        r"pull access denied(?: for \S+)?, repository does not exist or may require (?:'docker login'|authorization)(?:: (?:denied|server message).*)?",
        r"(?:reading manifest .*: )?(?:errors: )?denied", r"requested access to the resource is denied",
    ),
    _whole(
        PullCause.CREDENTIALS,
        r"401 Unauthorized", r"(?:.* )?unauthorized", r"authentication required", r"no basic auth credentials",
        r"(?:unable to retrieve auth token: )?invalid username/password(?:: unauthorized)?", r"authorization failed",
        rf"unexpected status code \S*{_ALL}?: 401 Unauthorized", r"status code 401.*", r"StatusCode 401",
    ),
    _whole(PullCause.RATE, r"429 Too Many Requests", r"StatusCode 429", r"(?:.* )?toomanyrequests", r"(?:.* )?too many requests"),
    _whole(PullCause.FORBIDDEN, rf"(?:unexpected status from [A-Z]+ request to {_URL}|unexpected status(?: code)?(?: {_URL})?|.*status(?: code)?(?: {_QUOTED})?): 403 Forbidden", r"403 Forbidden", r"StatusCode 403"),
    _whole(PullCause.SERVER, r"StatusCode 5\d\d", r"5\d\d [A-Z][\w ]+", r"received unexpected HTTP status 5\d\d .*"),
    _whole(PullCause.REFUSED, rf"unexpected status(?: code| from [A-Z]+ request to)? {_URL}: 4(?!07)\d\d [A-Z][\w ]+"),
    # The way to it. ``proxyconnect`` is the way to a proxy: its forms come first.
    _whole(
        PullCause.PROXY,
        r"proxyconnect tcp: .*", rf"http: error connecting to proxy {_URL}: .*", r"http: error connecting to proxy \S+: .*",
        r"socks connect tcp [^ ]{1,300}: .*",
    ),
    _whole(
        PullCause.PROXY_REFUSES,
        rf"{_ASKED}: (?:Proxy Authentication Required|Proxy Authorization Required|Forbidden|Bad Gateway|Service Unavailable|Gateway Timeout|Method Not Allowed|Not Found|Bad Request)",
        r"407 Proxy Authentication Required",
    ),
    _whole(PullCause.NO_NAME, rf"{_DNS}: no such host"),
    _whole(
        PullCause.DNS_SILENT,
        rf"{_DNS}: (?:i/o timeout|server misbehaving|Temporary failure in name resolution|Try again|device or resource busy|connection refused|.*(?:i/o timeout|connection refused|no route to host|network is unreachable))",
        rf"(?:{_DNS}: )?(?:dial|read|write) udp .*: (?:i/o timeout|.*connection refused|.*network is unreachable|.*no route to host)",
    ),
    _whole(
        PullCause.UNREACHABLE,
        rf"{_DIALED}: (?:connect: )?(?:connection refused|no route to host|network is unreachable|connection timed out|host is down|i/o timeout|operation was canceled|cannot assign requested address)",
    ),
    _whole(PullCause.SOCKET, rf"{_ASKED}: dial unix {_PATH}: connect: (?:connection refused|no such file or directory|permission denied)"),
    _whole(
        PullCause.SLOW_ANSWER,
        r"net/http: TLS handshake timeout", r"net/http: timeout awaiting response headers",
        r"net/http: request canceled(?: while waiting for connection)? \(Client\.Timeout exceeded while awaiting headers\)",
        rf"{_ASKED}: context deadline exceeded(?: \(Client\.Timeout exceeded[^)]*\))?",
        rf"{_ASKED}: read tcp [^:]*(?:{_ADDRESS})?[^:]*: i/o timeout",
    ),
    _whole(
        PullCause.CERTIFICATE_TIME,
        r"x509: certificate has expired or is not yet valid(?:: current time .*)?",
    ),
    _whole(PullCause.CERTIFICATE, r"(?:tls: failed to verify certificate: )?x509: certificate signed by unknown authority(?: \(.*\))?"),
    _whole(
        PullCause.CERTIFICATE_NAME,
        r"(?:tls: failed to verify certificate: )?x509: (?:certificate is (?:valid for|not valid for any names).*|cannot validate certificate for .*|certificate relies on legacy Common Name.*)",
    ),
    _whole(PullCause.CERTIFICATE_REFUSED, r"(?:tls: failed to verify certificate: )?x509: .*"),
    _whole(PullCause.TLS_REFUSED, r"remote error: tls: .*"),
    _whole(
        PullCause.NOT_TLS,
        r"http: server gave HTTP response to HTTPS client", r"tls: first record does not look like a TLS handshake",
    ),
    _whole(
        PullCause.RESET,
        rf"(?:read|write) tcp [^:]*(?:{_ADDRESS})?[^:]*: (?:read: |write: )?(?:connection reset by peer|broken pipe|use of closed network connection|i/o timeout|connection timed out)",
        rf"{_ASKED}: (?:EOF|http2: .*|stream error: .*)", rf"{_READS}: (?:.*: )?unexpected EOF", r"download failed after attempts=\d{1,3}: EOF",
        r"local error: tls: bad record MAC",
        r"(?:http2: )?server sent GOAWAY.*", r"stream error: stream ID \d+; \w+.*", r"failed to copy: (?:httpReadSeeker: failed open: .*: )?EOF",
    ),
    # Between the kubelet and the registry.
    _whole(
        PullCause.RUNTIME_AWAY,
        rf"connection error: desc = {_QUOTED}", rf"connection error: desc = .*dial unix {_PATH}: .*", r"error reading from server: (?:unexpected )?EOF(?:: unavailable)?",
        r"error reading from server: read unix .*: (?:connection reset by peer|use of closed network connection)", r"transport is closing",
        r"Cannot connect to the Docker daemon at .*", r"the client connection is closing", r"error while dialing.*",
    ),
    _Form(PullCause.OWN_LIMIT, re.compile(r"^context deadline exceeded$"), Confidence.LIKELY),
    _whole(PullCause.CANCELLED, r"context canceled", r"net/http: request canceled", r"operation was canceled"),
    # A known end in an unknown form.
    *(_Form(cause, re.compile(rf"(?:^|(?<!{_KERNEL}): )[^:{_KERNEL}]*\b{words}$"), Confidence.LIKELY) for cause, words in _ERRNO.items()),
    _part(PullCause.SNAPSHOTS, r"snapshot \S+ does not exist(?:: not found)?"),
    _part(PullCause.NO_NAME, r"no such host"),
    _part(PullCause.WEB_PAGE, r"StatusCode 30[1-8]", r"missing or empty Content-Type header"),
    _Form(PullCause.PROXY_REFUSES, re.compile(rf"{_ASKED}: [A-Z][a-z]{{1,20}}(?: [A-Z][a-z]{{1,20}}){{0,3}}$"), Confidence.LIKELY),
    _part(PullCause.UNREACHABLE, r"RegistryUnavailable", r"connection refused", r"no route to host", r"network is unreachable", r"i/o timeout"),
    _part(PullCause.RESET, r"connection reset by peer", r"broken pipe", r"unexpected EOF"),
    _part(PullCause.OWN_LIMIT, r"context deadline exceeded"),
    _Form(PullCause.NO_IMAGE, re.compile(r"\bTag \S{1,128} not found in repository \S{1,256}$"), Confidence.LIKELY),
    _Form(PullCause.NO_IMAGE, re.compile(r"\bError: image \S{1,512} not found$"), Confidence.LIKELY),  # docker's first protocol
    _part(PullCause.NO_IMAGE, r"manifest unknown", r"name unknown"),
    _part(PullCause.CREDENTIALS, r"authentication required", r"unauthorized"),
)  # fmt: skip


_NAMED = re.compile(
    r"(?:lookup|pulling from host|pinging container registry|pinging docker registry) ([\w.-]{1,253}(?::\d{1,5})?|\[[0-9a-f:.]{2,45}\]:\d{1,5})(?: .*)?|"
    r"(?:[Ee]rror )?reading manifest \S{1,300} in ([\w.-]{1,253}(?::\d{1,5})?)/.*"
)


def _host(tokens: list[tuple[str, str]], links: list[str]) -> str:
    """Of the last URL ahead of a registry's own text; else the host that a link names."""
    own = sum(map("".join(links).count, _MARKS))
    urls = [text for kind, text in tokens[:own] if kind == "url"]
    match = re.match(r"https?://([^/?#]+)", urls[-1]) if urls else None
    if match:
        return match[1].lower()
    named = [found[1] or found[2] for link in _printed(links, tokens) if (found := _NAMED.fullmatch(link))]
    return named[-1].lower() if named else ""


def _printed(links: list[str], tokens: list[tuple[str, str]]) -> list[str]:
    """The links as they were printed."""
    texts = iter(text for _, text in tokens)
    return ["".join(next(texts, "") if letter in _MARKS else letter for letter in link) for link in links]
