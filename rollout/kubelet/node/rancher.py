"""k3s and RKE2: their unit starts the kubelet, with arguments that they make from their own configuration.

The files are ``/etc/rancher/NAME/config.yaml`` and then ``config.yaml.d/*.yaml`` and ``*.yml`` by name. A later file
replaces the value of a key, and a key that ends with ``+`` appends to it (k3s pkg/configfilearg/parser.go; the same in
RKE2, which links k3s: go.mod of v1.36.4+rke2r1). ``kubelet-arg`` is a list or one text. Each of its entries replaces
k3s's own flag of that name; ``NAME+=`` and ``NAME-=`` keep it, and flags that are repeated are all given
(pkg/util/args.go, ``GetArgs``). From 1.32 on the kubelet's fields are in a folder of drop-ins, ``--config-dir``, where k3s
writes ``00-NAME-defaults.conf`` at each start (k3s #2116, k3s-io/docs #433). It then takes ``config`` and ``config-dir`` out of
``kubelet-arg`` and copies what they name to ``10-cli-config.conf`` and ``20-cli-config-dir`` there, at each start, too.

k3s has the kubelet in its own process, and logs its arguments at each start. RKE2's kubelet is a child process; it is started anew 5 s after its end (rke2 pkg/executor/staticpod/staticpod.go). The
flags of its log are not given to it (pkg/logging/logging.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rollout.core.model.frozen import dataclass
from rollout.core.model.settings import Value
from rollout.core.text.diff import REDACTED
from rollout.core.text.yaml_source import Entry, read_yaml
from rollout.errors import Problem
from rollout.kubelet.node import arguments


@dataclass(frozen=True, slots=True)
class Embedding:
    """A unit that starts a kubelet. ``child``: the kubelet is a process of its own, else it is the main process."""

    unit: str
    name: str
    title: str
    child: bool

    @property
    def config(self) -> str:
        return f"/etc/rancher/{self.name}/config.yaml"

    @property
    def folder(self) -> str:
        return f"{self.config}.d"

    def agent_folder(self, running: Sequence[str]) -> str:
        """Where its agent keeps its files, by the arguments of its kubelet that runs."""
        given = arguments.last(running, "--kubeconfig")
        folder = (given.value or "").removesuffix("/kubelet.kubeconfig") if given else ""
        return (
            folder
            if folder.startswith("/") and given and folder != given.value
            else f"/var/lib/rancher/{self.name}/agent"
        )

    @property
    def kubelet_log(self) -> str:
        """Where its kubelet logs to, in the folder of its agent; ``""``: to the journal of the unit."""
        return "logs/kubelet.log" if self.child else ""

    @property
    def own_file(self) -> str:
        """The file with the kubelet's arguments that are ours."""
        return f"{self.folder}/{OWN_NAME}"


OWN_NAME = "99-rollout.yaml"
EMBEDDINGS: Mapping[str, Embedding] = {
    each.unit: each
    for each in (
        Embedding("k3s.service", "k3s", "k3s", child=False),
        Embedding("k3s-agent.service", "k3s", "k3s", child=False),
        Embedding("rke2-server.service", "rke2", "RKE2", child=True),
        Embedding("rke2-agent.service", "rke2", "RKE2", child=True),
    )
}
APPENDING_SINCE = 21
"""From this minor on ``config.yaml.d`` is read (docs.k3s.io, Multiple Config Files)."""

KEY = "kubelet-arg"
DECIDING = frozenset({"--config", "-c", f"--{KEY}"})
"""The options on their command line that decide more than the files."""
HEADER = "# Written by rollout; arguments of your own belong in a file of your own.\n"

_OF_THE_LOG = frozenset({
    "add_dir_header", "add-dir-header", "alsologtostderr", "log_backtrace_at", "log-backtrace-at", "log_dir", "log-dir",
    "log_file", "log-file", "log_file_max_size", "log-file-max-size", "logtostderr", "one_output", "one-output",
    "skip_headers", "skip-headers", "skip_log_headers", "skip-log-headers", "stderrthreshold",
})  # fmt: skip
"""klog's flags without ``-v`` and ``-vmodule``."""

_MANAGED_FOLDER = "/agent/etc/kubelet.conf.d"
"""How the path of the folder ends where k3s and RKE2 copy the files of ``_COPIED`` to; it is below their ``data-dir``."""
_COPIED = frozenset({"config", "config-dir"})

_OWN = frozenset({
    "address", "allowed-unsafe-sysctls", "anonymous-auth", "authentication-token-webhook", "authorization-mode", "cert-dir",
    "cgroup-driver", "cgroup-root", "cgroups-per-qos", "client-ca-file", "cloud-config", "cloud-provider", "cluster-dns",
    "cluster-domain", "cni-bin-dir", "cni-conf-dir", "config", "config-dir", "container-runtime", "container-runtime-endpoint",
    "containerd", "cpu-cfs-quota", "enforce-node-allocatable", "eviction-hard", "eviction-minimum-reclaim", "fail-swap-on",
    "feature-gates", "file-check-frequency", "healthz-bind-address", "hostname-override", "image-credential-provider-bin-dir",
    "image-credential-provider-config", "image-service-endpoint", "kubeconfig", "kubelet-cgroups", "network-plugin", "node-ip",
    "node-labels", "pod-infra-container-image", "pod-manifest-path", "protect-kernel-defaults", "read-only-port",
    "register-with-taints", "resolv-conf", "root-dir", "runtime-cgroups", "seccomp-profile-root", "serialize-image-pulls",
    "sync-frequency", "tls-cert-file", "tls-private-key-file", "v", "vmodule", "volume-plugin-dir",
})  # fmt: skip
"""Flags that k3s or RKE2 sets itself (k3s pkg/daemons/agent/agent_linux.go of 1.21 to 1.37, rke2 pkg/executor/staticpod)."""


def is_own(word: str) -> bool:
    """Whether k3s or RKE2 may have set this argument itself."""
    name = word.partition("=")[0].removeprefix("--")
    return name in _OWN or name in _OF_THE_LOG


@dataclass(frozen=True, slots=True)
class KubeletArg:
    """An entry of ``kubelet-arg`` that counts: ``max-pods=200``, and the file that has it."""

    text: str
    file: str

    @property
    def name(self) -> str:
        """``--max-pods``."""
        return f"--{self._key.rstrip('+-')}"

    @property
    def _key(self) -> str:
        return self.text.removeprefix("--").partition("=")[0]

    @property
    def word(self) -> str:
        """The argument that the kubelet gets."""
        return f"{self.name}={self.text.partition('=')[2] if '=' in self.text else 'true'}"

    @property
    def keeps(self) -> bool:
        """Whether the flag that k3s sets itself stays beside it."""
        return self._key.endswith(("+", "-"))

    @property
    def precedes(self) -> bool:
        """Whether it comes before what stays beside it."""
        return self._key.endswith("-")


def is_read(embedding: Embedding, path: str) -> bool:
    """Whether this file is one of its configuration files."""
    folder, _, name = path.rpartition("/")
    return path == embedding.config or (folder == embedding.folder and name.lower().endswith((".yaml", ".yml")))


def in_order(embedding: Embedding, paths: Iterable[str]) -> tuple[str, ...]:
    """Its configuration files in the order in which they are read: by the bytes of their names."""
    read = [path for path in paths if is_read(embedding, path)]
    return tuple(sorted(read, key=lambda path: (path != embedding.config, path.encode())))


def kubelet_args(texts: Mapping[str, str]) -> tuple[KubeletArg, ...]:
    """``kubelet-arg`` of these files, path → text in their order; ``ValueError`` for what is not understood."""
    found: tuple[KubeletArg, ...] | None = None
    for path, text in texts.items():
        for key, entry in _document(path, text).items():
            if key.rstrip("+") != KEY:
                continue
            entries = _entries(path, entry.item.plain())
            found = (*found, *entries) if found is not None and key.endswith("+") else entries
    return found or ()


def arguments_alone(path: str, text: str) -> str:
    """The text with ``kubelet-arg`` and the names of its other keys; a file that is ours is as it was. ``ValueError`` as above."""
    if path.endswith(f"/{OWN_NAME}") and is_ours(text):
        return text
    return "".join(_shown(path, key, entry.item.plain()) for key, entry in _document(path, text).items())


def _shown(path: str, key: str, value: Value) -> str:
    if key.rstrip("+") != KEY:
        return f"{_quoted(key)}: {_quoted(REDACTED)}\n"
    entries = (f"- {_quoted(each.text)}\n" for each in _entries(path, value))
    return f"{key}:\n{''.join(entries)}" if value != [] else f"{key}: []\n"


def _document(path: str, text: str) -> Mapping[str, Entry]:
    """The keys of a file. What is wrong with it is told by place and reference alone: messages repeat words of the text."""
    read = read_yaml(text, path)
    entries = read.root.entries() if read.root is not None else {}
    problem = next((each for each in read.problems if not _is_elsewhere(each, entries)), None)
    if problem is not None:
        place = f":{problem.place.line}" if problem.place else ""
        raise ValueError(f"{path}{place}: this is not YAML as rollout reads it ({problem.reference})")
    if read.root is not None and read.root.value is not None and not isinstance(read.root.value, dict):
        raise ValueError(f"{path} is not a map")
    return entries


def _is_elsewhere(problem: Problem, entries: Mapping[str, Entry]) -> bool:
    """Whether it is only about the value of another key, as in ``write-kubeconfig-mode: 0644``."""
    if problem.reference not in _OF_A_VALUE or problem.place is None:
        return False
    line = problem.place.line
    before = [key for key, entry in entries.items() if (entry.line, entry.column) <= (line, problem.place.column)]
    return bool(before) and before[-1].rstrip("+") != KEY


_OF_A_VALUE = frozenset({"yaml-ambiguous", "yaml-tag"})


def _entries(path: str, value: Value) -> tuple[KubeletArg, ...]:
    entries = value if isinstance(value, list) else [value]
    for entry in entries:
        if not isinstance(entry, str) or not entry.removeprefix("--").partition("=")[0].rstrip("+-"):
            raise ValueError(f"{path}: {KEY} has an entry that is not NAME=VALUE")
    return tuple(KubeletArg(str(entry), path) for entry in entries)


def expected(
    running: Sequence[str],
    args: Sequence[KubeletArg],
    embedding: Embedding,
    before: Sequence[KubeletArg] | None = None,
) -> tuple[tuple[str, str], ...]:
    """The arguments of a kubelet that is started with ``args``, each with the file that has it or ``""``.

    ``running``: those of the kubelet that runs, started with ``before`` (the same, if not given). What that does not name is
    the embedding's own. Arguments are ``--name=value``: ``GetArgs`` writes no others.
    """
    not_given = _OF_THE_LOG if embedding.child else frozenset[str]()
    if _is_managed(running):
        not_given |= _COPIED
    mine = [each for each in args if each.name.removeprefix("--") not in not_given]
    names = dict.fromkeys((*(word.partition("=")[0] for word in running), *sorted(each.name for each in mine)))
    return tuple(
        word
        for name in names
        for word in _of_one_flag(
            [word for word in running if word.partition("=")[0] == name],
            [each for each in (args if before is None else before) if each.name == name],
            [each for each in mine if each.name == name],
        )
    )


def copied(running: Sequence[str], args: Sequence[KubeletArg]) -> Mapping[str, str]:
    """What they copy to their folder at each start: ``config`` and ``config-dir`` → path. ``{}``: the kubelet has it as its argument."""
    if not _is_managed(running):
        return {}
    named = (each.word.removeprefix("--").partition("=") for each in args)
    return {name: path for name, _, path in named if name in _COPIED and not path.endswith(_MANAGED_FOLDER)}


def copies(folder: str, sources: Mapping[str, str], paths: Iterable[str]) -> Mapping[str, str]:
    """Each copy in ``folder`` → its source, of the files ``paths`` (k3s pkg/daemons/agent/agent.go, ``extractConfigArgs``)."""
    found = {f"{folder}/10-cli-config.conf": sources["config"]} if "config" in sources else {}
    below = f"{sources['config-dir'].rstrip('/')}/" if "config-dir" in sources else ""
    if below:
        found |= {f"{folder}/20-cli-config-dir/{path[len(below) :]}": path for path in paths if path.startswith(below)}
    return found


def _is_managed(running: Sequence[str]) -> bool:
    return any(word.startswith("--config-dir=") and word.endswith(_MANAGED_FOLDER) for word in running)


def _of_one_flag(
    had: Sequence[str], before: Sequence[KubeletArg], wanted: Sequence[KubeletArg]
) -> list[tuple[str, str]]:
    """The words of one flag as ``GetArgs`` makes them: its own value is kept by the first entry, or by none.

    ``ValueError``: it is kept from now on, and ``before`` replaced it.
    """
    if before and not before[0].keeps and wanted and wanted[0].keeps and is_own(wanted[0].word):
        raise ValueError(
            f"{wanted[0].file}: {wanted[0].name} is added to a value that the running kubelet does not show"
        )
    if not wanted:
        return [(word, "") for word in had]
    own = list(had) if wanted[0].keeps else []
    for each in before:
        if each.word in own:
            own.remove(each.word)
    words = [(word, "") for word in own]
    for each in wanted:
        words = [(each.word, each.file), *words] if each.precedes else [*words, (each.word, each.file)]
    return words


def with_flags(text: str | None, ours: Sequence[str]) -> str:
    """The text of our file with these ``--flag=value``; those of other flags in it stay. ``ValueError``: not our file."""
    held = () if text is None else kubelet_args({"": text})
    if text is not None and not is_ours(text):
        raise ValueError(f"{OWN_NAME} was changed by hand: it does not hold {KEY}+ alone")
    new = {word.partition("=")[0] for word in ours}
    kept = [each.word for each in held if each.name not in new]
    lines = "".join(f"- {_quoted(word.removeprefix('--'))}\n" for word in (*kept, *ours))
    return f"{HEADER}{KEY}+:\n{lines}"


def is_ours(text: str) -> bool:
    """Whether a file has arguments of the kubelet and nothing else."""
    read = read_yaml(text, "")
    return not read.problems and read.root is not None and list(read.root.entries()) == [f"{KEY}+"]


def _quoted(word: str) -> str:
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def own_options(words: Sequence[str], variables: Mapping[str, str], embedding: Embedding) -> str:
    """What on its command line or in its environment decides more than the files: why, or ``""``."""
    variable = f"{embedding.name.upper()}_CONFIG_FILE"
    if variables.get(variable):
        return f"{variable} names another configuration file"
    for word in words:
        option = word.partition("=")[0]
        if option == f"--{KEY}":
            return (
                f"--{KEY} is on its command line, where k3s's documentation and its source differ in which one counts"
            )
        if option in DECIDING:
            return f"{option} on its command line names another configuration file"
    return ""
