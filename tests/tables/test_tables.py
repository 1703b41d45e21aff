"""The tables of a minor from a source tree: a small one, made here, with one of everything that can change."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.tables import __main__ as command
from tests.tables import spans, tables

NEXT = 38

VERSIONED = """\
package v1beta1

type Mode string
type Level uint32

// A comment with { a brace.
type KubeletConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	/* Old string `json:"old"` */
	EnableServer *bool `json:"enableServer,omitempty"`
	Limit *int32 `json:"limit,omitempty"`
	MaxPods int32 `json:"maxPods,omitempty"`
	Mode Mode `json:"mode,omitempty"`
	Every metav1.Duration `json:"every,omitempty"`
	Verbosity Level `json:"verbosity"`
	EvictionHard map[string]string `json:"evictionHard,omitempty"`
	RegisterWithTaints []v1.Taint `json:"registerWithTaints,omitempty"`
	Inner Inner `json:"inner,omitempty"`
	CrashLoopBackOff CrashLoopBackOffConfig `json:"crashLoopBackOff,omitempty"`
	hidden string
}

type Inner struct {
	Shared `json:",inline"`
	Name string `json:"name"`
}

type Shared struct {
	Count int64 `json:"count,omitempty"`
}

type CrashLoopBackOffConfig struct {
	MaxContainerRestartPeriod *metav1.Duration `json:"maxContainerRestartPeriod,omitempty"`
}
"""

INTERNAL = """\
package config

type KubeletConfiguration struct {
	metav1.TypeMeta
	EnableServer bool
	Limit *int32
	MaxPods int32
}

type CrashLoopBackOffConfig struct {
	MaxContainerRestartPeriod *metav1.Duration
}
"""

FEATURES = """\
package features

const (
	// owner: @a
	Grown featuregate.Feature = "Grown"
	Fixed featuregate.Feature = "Fixed"
	Later featuregate.Feature = "Later"
)

var defaultVersionedKubernetesFeatureGates = map[featuregate.Feature]featuregate.VersionedSpecs{
	Grown: {
		{Version: version.MustParse("1.36"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.38"), Default: true, PreRelease: featuregate.Beta},
	},
	Fixed: {
		{Version: version.MustParse("1.30"), Default: false, PreRelease: featuregate.Deprecated, LockToDefault: true}, // gone in 1.40
	},
	Later: {
		{Version: version.MustParse("1.39"), Default: false, PreRelease: featuregate.Alpha},
	},
	genericfeatures.APIListChunking: {
		{Version: version.MustParse("1.29"), Default: true, LockToDefault: true, PreRelease: featuregate.GA},
	},
}

var defaultKubernetesFeatureGateDependencies = map[featuregate.Feature][]featuregate.Feature{
	Fixed: {},
	Grown: {Fixed, featuregate.Feature(clientfeatures.APIListChunking)},
	Later: {Fixed},
}
"""

OPTIONS = """\
package options

func add(fs *pflag.FlagSet) {
	fs.StringVar(&f.KubeletConfigFile, "config", f.KubeletConfigFile, "The file.")
	fs.Int32Var(&c.MaxPods, "max-pods", c.MaxPods, "Pods.")
	fs.Int32Var(&c.Limit, "a-limit", c.Limit, "New.")
	register(global, local, "housekeeping_interval")
}
"""

DEFAULTED = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 120
enableServer: true
crashLoopBackOff: {maxContainerRestartPeriod: 5m0s}
inner: {}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "staging/src/k8s.io/kubelet/config/v1beta1/types.go": VERSIONED,
        "pkg/kubelet/apis/config/types.go": INTERNAL,
        "pkg/features/kube_features.go": FEATURES,
        "cmd/kubelet/app/options/options.go": OPTIONS,
        "cmd/kubelet/app/options/osflags_windows.go": 'fs.BoolVar(&f.Service, "windows-service", false, "")',
        "pkg/kubelet/apis/config/scheme/testdata/KubeletConfiguration/after/v1beta1.yaml": DEFAULTED,
    }
    for name, text in files.items():
        path = tmp_path / "kubernetes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "kubernetes"


def made(tree: Path) -> tuple[dict[str, tables.Table], dict[str, tables.Table]]:
    """The shipped tables, and the same with this tree."""
    held = tables.load(command.FOLDER)
    return held, tables.with_source(held, tables.read(tree, NEXT))


def test_the_tables_are_stored_as_they_would_be_written() -> None:
    for name, table in tables.load(command.FOLDER).items():
        assert (command.FOLDER / f"{name}.json").read_text(encoding="utf-8") == tables.text(table)


def test_types_with_their_kinds_pointers_and_what_is_shown(tree: Path) -> None:
    _, after = made(tree)
    types = after[tables.TYPES]["types"]
    root = {name: spans.at(each, NEXT) for name, each in types["KubeletConfiguration"].items()}
    assert {name: found for name, found in root.items() if found is not None} == {
        "apiVersion": {"kind": "string", "shown": "always"},
        "kind": {"kind": "string", "shown": "always"},
        "enableServer": {"kind": "bool", "pointer": True, "shown": "always"},
        "limit": {"kind": "int32", "pointer": True, "shown": "set"},
        "maxPods": {"kind": "int32", "shown": "nonempty"},
        "mode": {"kind": "string", "shown": "nonempty"},
        "every": {"kind": "duration", "shown": "always"},
        "verbosity": {"kind": "uint32", "shown": "always"},
        "evictionHard": {"kind": "map<string,string>", "shown": "nonempty"},
        "registerWithTaints": {"kind": "list<Taint>", "shown": "nonempty"},
        "inner": {"kind": "Inner", "shown": "always"},
        "crashLoopBackOff": {"kind": "CrashLoopBackOffConfig", "shown": "always"},
    }
    inner = {name: spans.at(each, NEXT) for name, each in types["Inner"].items()}
    assert inner == {"count": {"kind": "int64", "shown": "nonempty"}, "name": {"kind": "string", "shown": "always"}}
    assert spans.at(types["Taint"]["key"], NEXT) == {"kind": "string", "shown": "always"}  # as it was
    assert types["KubeletConfiguration"]["maxPods"] == [
        {"kind": "int32", "since": 20, "last": NEXT, "shown": "nonempty"}
    ]


def test_added_kept_and_removed_fields_and_flags(tree: Path) -> None:
    _, after = made(tree)
    fields, flags = after[tables.FIELDS]["fields"], after[tables.FIELDS]["flags"]
    assert (fields["maxPods"]["last"], fields["address"]["last"]) == (NEXT, NEXT - 1)
    assert fields["limit"] == {"kind": "int32", "since": NEXT, "last": NEXT, "flags": ["--a-limit"]}
    assert (fields["inner"]["kind"], fields["registerWithTaints"]["kind"]) == ("object", "list<object>")
    assert flags["--a-limit"] == {"kind": "int32", "since": NEXT, "removed": None, "field": "limit"}
    assert [flags[name]["removed"] for name in ("--config", "--housekeeping-interval")] == [None, None]
    assert (flags["--node-ip"]["removed"], flags["--node-ip"]["removedText"]) == (NEXT, "1.38")
    assert "--windows-service" not in flags


def test_gates_are_those_of_the_minor_with_what_they_need(tree: Path) -> None:
    _, after = made(tree)
    table = after[tables.GATES]
    now = {name: found for name, each in table["gates"].items() if (found := spans.at(each, NEXT))}
    assert now == {
        "AllAlpha": {"stage": "ALPHA", "default": False},
        "AllBeta": {"stage": "BETA", "default": False},
        "Grown": {"stage": "BETA", "default": True},
        "Fixed": {"stage": "DEPRECATED", "default": False, "locked": True},
        "APIListChunking": {"stage": "GA", "default": True, "locked": True},
    }
    needs = {name: found for name, each in table["requires"].items() if (found := spans.at(each, NEXT))}
    assert needs == {"Grown": {"gates": ["APIListChunking", "Fixed"]}}


def test_defaults_without_those_that_depend_on_gates(tree: Path) -> None:
    held, after = made(tree)
    table = after[tables.DEFAULTS]
    now = {name: found["value"] for name, each in table["defaults"].items() if (found := spans.at(each, NEXT))}
    assert now.pop("evictionHard") == spans.at(held[tables.DEFAULTS]["defaults"]["evictionHard"], NEXT - 1)["value"]  # type: ignore[index]
    kind = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    assert now == {**kind, "maxPods": 120, "enableServer": True, "crashLoopBackOff": {}, "inner": {}}
    assert table["defaults"]["maxPods"][-2:] == [
        {"since": 20, "last": NEXT - 1, "value": 110},
        {"since": NEXT, "last": NEXT, "value": 120},
    ]
    assert spans.at(table["gated"]["crashLoopBackOff.maxContainerRestartPeriod"], NEXT) is not None


def test_an_existing_minor_is_written_again(tree: Path) -> None:
    held = tables.load(command.FOLDER)
    once = tables.with_source(held, tables.read(tree, NEXT))
    assert tables.with_source(once, tables.read(tree, NEXT)) == once
    assert list(tables.differences(once, tables.read(tree, NEXT))) == []


def test_the_command_prints_the_differences_and_writes(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tables"
    shutil.copytree(
        command.FOLDER, folder, ignore=lambda _, names: [name for name in names if not name.endswith(".json")]
    )
    assert command.main(["1.38", str(tree), "--compare"], folder) == 1
    assert (
        '1.38 kubelet_types KubeletConfiguration.limit: the table has null, the tree {"kind"' in capsys.readouterr().out
    )
    assert command.main(["38", str(tree)], folder) == 0
    assert tables.load(folder)[tables.FIELDS]["minors"] == [20, NEXT]
    capsys.readouterr()
    assert command.main(["38", str(tree), "--compare"], folder) == 0
    assert capsys.readouterr().out == "1.38: the tables and the tree agree\n"
    assert command.main(["40", str(tree)], folder) == 2
    assert command.main(["38"], folder) == 2


def test_a_type_that_the_generator_does_not_know_is_reported(tree: Path) -> None:
    path = tree / "staging/src/k8s.io/kubelet/config/v1beta1/types.go"
    path.write_text(VERSIONED.replace("Limit *int32", "Limit *intstr.IntOrString"))
    with pytest.raises(ValueError, match="IntOrString is not known to this generator"):
        tables.read(tree, NEXT)


RULE = re.compile(r"minor (?:>=|<=|<|>|==) |_SINCE\b|_UNTIL\b|_FROM = \d")
NO_RULES = {"explanation.py", "feature_gates.py", "fields.py", "fitness.py", "schema.py", "versions.py"}
"""Modules that use only the tables."""


def test_the_page_on_a_new_minor_names_every_module_with_rules_of_its_own() -> None:
    page = (ROOT / "docs" / "new-minor.md").read_text()
    modules = [path for path in command.FOLDER.rglob("*.py") if RULE.search(path.read_text())]
    assert [path.name for path in modules if path.name not in NO_RULES and path.stem not in page] == []
    assert len(modules) > 25
