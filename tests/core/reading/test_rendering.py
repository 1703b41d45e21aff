"""Templates: the output of the shipped ones, what a template may not do, and the places of mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rollout.core.reading import rendering_limits
from rollout.core.reading.rendering import DROP_IN, FLAGS_ENV, KUBELET_CONFIG, line_behind, render, undefined_variables
from rollout.errors import InputError
from tests.places import ROOT

TEMPLATES = {path.name: path.read_text() for path in (ROOT / "templates").glob("*.j2")}
NODE = {"name": "n1", "rack": "r1", "zone": "z1", "labels": {"gpu": "true"}}


def shipped(name: str, variables: Mapping[str, Any]) -> str:
    return render(TEMPLATES[name], name, {**variables, "node": NODE})


def complaint(template: str, **variables: object) -> str:
    with pytest.raises(InputError) as caught:
        render(template, "t.j2", {"node": NODE, **variables})
    return str(caught.value)


def test_the_overlay_contains_every_field_as_yaml() -> None:
    fields = {
        "serializeImagePulls": False,
        "evictionHard": {"memory.available": "5%"},
        "clusterDNS": ["10.0.0.10"],
        "a": "é: #",
    }
    assert shipped("kubelet-config.yaml.j2", {"fields": fields}) == (
        'serializeImagePulls: false\nevictionHard: {"memory.available": "5%"}\nclusterDNS: ["10.0.0.10"]\na: "é: #"\n'
    )


def test_the_environment_file_gets_one_line() -> None:
    variables = {"variable": "KUBELET_EXTRA_ARGS", "arguments": ["--node-ip=10.0.0.1", "--v=2"]}
    assert shipped("kubelet-flags.env.j2", variables) == "KUBELET_EXTRA_ARGS=--node-ip=10.0.0.1 --v=2\n"


def test_the_drop_in_resets_the_old_command_line() -> None:
    variables = {"exec_start": "/usr/bin/kubelet --v=2", "unit": "kubelet.service"}
    assert shipped("kubelet-drop-in.conf.j2", variables) == (
        "# Written by rollout for kubelet.service. Edit templates/kubelet-drop-in.conf.j2 instead.\n"
        "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --v=2\n"
    )


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("kubelet-config.yaml.j2", KUBELET_CONFIG),
        ("kubelet-flags.env.j2", FLAGS_ENV),
        ("kubelet-drop-in.conf.j2", DROP_IN),
    ],
)
def test_the_shipped_templates_use_only_known_variables(name: str, known: Mapping[str, tuple[str, ...] | None]) -> None:
    assert undefined_variables(TEMPLATES[name], name, known) == ()


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ nodes }}", "t.j2:1:1: 'nodes' is undefined [template-failed]"),
        ("\n\n{{ node.labels.zone }}", "t.j2:3:1: 'dict object' has no attribute 'zone' [template-failed]"),
        ("\n{{ 1 / 0 }}", "t.j2:2:1: division by zero [template-failed]"),
        ("\n{% if %}", "t.j2:2:1: Expected an expression, got 'end of statement block' [template-syntax]"),
        ("{{ 'a' * 1000000000 }}", "t.j2:1:1: `*` takes only numbers here [template-failed]"),
        ("{{ 9 ** 9 ** 9 ** 9 }}", "t.j2:1:1: `**` takes only numbers here [template-failed]"),
        ("{{ '%999999999d' % 1 }}", "t.j2:1:1: `%` takes only numbers here [template-failed]"),
        (
            "{{ '{:>999999999}'.format(1) }}",
            "t.j2:1:1: access to attribute 'format' of 'str' object is unsafe. [template-failed]",
        ),
        (
            "{{ ''.__class__.__mro__ }}",
            "t.j2:1:1: access to attribute '__class__' of 'str' object is unsafe. [template-failed]",
        ),
        ("{{ node.clear() }}", "t.j2:1:1: access to attribute 'clear' of 'dict' object is unsafe. [template-failed]"),
        (
            "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
            "t.j2:1:1: `recursive` is not allowed in these templates; write the text out [template-syntax]",
        ),
        ("{{ range(1001) }}", "t.j2:1:1: a range of more than 1000 numbers [template-failed]"),
        ("{{ 'a' + 'b' }}", "t.j2:1:1: `+` takes only numbers here [template-failed]"),
        (
            "\n{% include '/etc/passwd' %}",
            "t.j2:2:1: `include` is not allowed in these templates; write the text out [template-syntax]",
        ),
        (
            "{% import 'x' as x %}",
            "t.j2:1:1: `import` is not allowed in these templates; write the text out [template-syntax]",
        ),
        (
            "{% extends 'x' %}",
            "t.j2:1:1: `extends` is not allowed in these templates; write the text out [template-syntax]",
        ),
        (
            "{% macro a() %}{{ a() }}{% endmacro %}",
            "t.j2:1:1: `macro` is not allowed in these templates; write the text out [template-syntax]",
        ),
        (
            "{% set x %}aa{% endset %}",
            "t.j2:1:1: `set … endset` is not allowed in these templates; write the text out [template-syntax]",
        ),
        (
            "{% set x = 'a' ~ 'a' %}",
            "t.j2:1:1: `~` is not allowed in these templates; write the text out [template-syntax]",
        ),
        ("{{ [1, 2] | random }}", "t.j2:1:1: No filter named 'random'. [template-syntax]"),
        (
            "{% for a in range(1000) %}{% for b in range(1000) %}{{ node.name }}"
            + "x" * 100
            + "{% endfor %}{% endfor %}",
            "t.j2:1:1: the rendered text is larger than 1 MiB [template-failed]",
        ),
    ],
)
def test_forbidden_operations_in_a_template(template: str, message: str) -> None:
    assert complaint(template) == message


TWICE = "{% set a = [a, a] %}" * 40
"""A list of forty small lists, with 2^40 texts in print."""

EXHAUSTING = {
    "join of joins": "{{ range(1000) | join(range(1000) | join('" + "a" * 100_000 + "')) }}",
    "lists of one list": "{% set a = ['x'] %}" + TWICE + "{{ a }}",
    "yaml of them": "{% set a = ['x'] %}" + TWICE + "{{ a | yaml }}",
    "a comparison of them": "{% set a = ['x'] %}" + TWICE + "{% set b = a %}" + "{% set b = [b, b] %}" + "{{ a == b }}",
    "maps of one map": "{% set a = {} %}" + "{% set a = {'k': a, 'l': a} %}" * 40 + "{{ a }}",
    "a filter that makes them": "{% set a = ['x'] %}"
    + "{% set a = [0, 0] | map('default', a, true) | list %}" * 40
    + "{{ a }}",
    "yaml of yaml": "{{ '\"'" + " | yaml" * 60 + " }}",
    "squares": "{% set n = 10 %}" + "{% set n = n * n %}" * 40 + "{{ n }}",
    "sums": "{% set n = 10 %}" + "{% set n = n + n %}" * 400 + "{{ n }}",
    "loops": "{% for a in range(1000) %}" * 3 + "{% endfor %}" * 3,
    "a loop with a long body": "{% for a in range(1000) %}" * 2 + "{% set x = 1 %}" * 300 + "{% endfor %}" * 2,
    "tests in a filter": "{% set b = range(1000) | list %}{{ range(1000) | map('default', b, true) | select('eq', b) | list | length }}",
    "searches": "{% set b = range(1000) | list %}"
    + "{% for a in range(1000) %}" * 2
    + "{% if 1001 in b %}x{% endif %}"
    + "{% endfor %}" * 2,
    "slices": "{% set b = range(1000) | list %}"
    + "{% for a in range(1000) %}" * 2
    + "{% set x = b[:] %}"
    + "{% endfor %}" * 2,
    "methods of numbers": "{{ (1).to_bytes(1000000000, 'big') }}",
    "many loops in one another": "{% for a in [1] %}" * 25 + "x" + "{% endfor %}" * 25,
    "many lists in one another": "{{ " + "[" * 3000 + "]" * 3000 + " }}",
    "many ifs in one another": "{% if a %}" * 500 + "{% endif %}" * 500,
    "a long list": "{{ [" + "1," * 12_000 + "] | length }}",
    "a block in itself": "{% block a %}{{ self.a() }}{% endblock %}",
}


@pytest.mark.parametrize("name", EXHAUSTING)
def test_what_would_exhaust_the_machine_is_refused_with_its_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of steps is smaller here, and what is refused the same."""
    monkeypatch.setattr(rendering_limits, "MAX_STEPS", 100_000)
    said = complaint(EXHAUSTING[name])
    assert said.startswith("t.j2:1:1: ")
    assert said.endswith(("[template-failed]", "[template-syntax]"))
    undefined_variables(EXHAUSTING[name], "t.j2", KUBELET_CONFIG)


def test_the_line_of_what_takes_too_much_is_named() -> None:
    assert complaint("a\n\n{{ 'a' | yaml | join(range(1000) | join('" + "b" * 2000 + "')) }}") == (
        "t.j2:3:1: a value is larger than 1 MiB [template-failed]"
    )


def test_a_join_makes_no_text_that_is_too_large() -> None:
    with pytest.raises(ValueError, match="larger than 1 MiB"):
        rendering_limits.join(["a" * 1000] * 2000)


def test_a_loop_takes_the_steps_of_its_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering_limits, "MAX_STEPS", 6000)  # the items alone take 4,002
    assert "more than 6,000 steps" in complaint("{% for a in range(1000) %}{% if a %}{{ a }}{% endif %}{% endfor %}")


def test_the_parts_of_a_value_are_counted_as_often_as_they_print() -> None:
    value: list[object] = ["x"]
    for _ in range(30):
        value = [value, value]
    with rendering_limits.one_rendering(), pytest.raises(ValueError, match=r"steps|1 MiB"):
        rendering_limits.charge(value)


def test_steps_are_the_same_at_every_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template that just fits fits again, whatever was rendered before."""
    template = "{% for a in range(100) %}{{ a }}{% endfor %}"
    needed = next(most for most in range(100, 2000) if _fits(template, most, monkeypatch))
    assert 300 <= needed <= 1000
    assert _fits(template, needed, monkeypatch)
    assert not _fits(template, needed - 1, monkeypatch)


def _fits(template: str, most: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(rendering_limits, "MAX_STEPS", most)
    try:
        return bool(render(template, "t.j2", {}))
    except InputError:
        return False


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ [3, 1, 2] | sort | join(', ') }}", "1, 2, 3"),
        ("{{ fields | join('-') }}", "a-b"),
        ("{{ [] | join('-') }}{{ 'ab' | join('-') }}", "a-b"),
        ("{% for key, value in fields.items() %}{{ loop.index }}{{ key }}={{ value }};{% endfor %}", "1a=1;2b=[2, 3];"),
        ("{% for key in fields if key != 'a' %}{{ key }}{% else %}none{% endfor %}", "b"),
        ("{{ fields.values() | map('yaml') | join(' ') }}", "1 [2, 3]"),
        ("{{ [node] | map(attribute='name') | first | upper }}{{ node.name in ['n1'] }}", "N1True"),
        ("{{ [1, none, 2] | select('number') | list | length }}{{ fields.b[1:] }}", "2[3]"),
        ("{{ [1, 1, 2] | unique | list }}{{ ' x ' | trim }}{{ nothing | default('y') }}", "[1, 2]xy"),
        ("{% for a in [1, 2] | reject('even') %}{{ loop.length }}{% endfor %}", "1"),
    ],
)
def test_filters_and_loops_give_what_they_gave(template: str, text: str) -> None:
    assert render(template, "t.j2", {"node": NODE, "fields": {"a": 1, "b": [2, 3]}}) == text


def test_escapes_in_a_message_do_not_reach_the_screen() -> None:
    assert "\x1b" not in complaint("{{ node[key] }}", key="\x1b[2J")


def test_arithmetic_on_numbers_and_short_ranges_work() -> None:
    assert render("{% for a in range(3) %}{{ a * 2 % 3 }}{% endfor %}", "t.j2", {}) == "021"


@pytest.mark.parametrize(
    ("template", "complaints"),
    [
        ("{{ fields }} {{ node.rack }} {{ node['zone'] }} {{ node[fields] }} {{ range(2) }}", []),
        ("{% set x = 1 %}{{ x }}{% for y in fields %}{{ y }}{{ loop.index }}{% endfor %}", []),
        ("{{ feilds }}", ["t.j2:1:4: undefined variable `feilds` (did you mean `fields`?) [undefined-variable]"]),
        (
            "\n {{ x }}{{ y }}",
            [
                "t.j2:2:12: undefined variable `y` [undefined-variable]",
                "t.j2:2:5: undefined variable `x` [undefined-variable]",
            ],
        ),
        ("{{ node.rak }}", ["t.j2:1:9: undefined variable `node.rak` (did you mean `rack`?) [undefined-variable]"]),
        ("{{ node['adress'] }}", ["t.j2:1:10: undefined variable `node.adress` [undefined-variable]"]),
        ("{{\nnode\n.x }}", ["t.j2:3:2: undefined variable `node.x` [undefined-variable]"]),
        (
            "{% include 'x' %}",
            ["t.j2:1:1: `include` is not allowed in these templates; write the text out [template-syntax]"],
        ),
        ("a\n{{ x | nosuch }}", ["t.j2:2:1: No filter named 'nosuch'. [template-syntax]"]),
        ("{% endif %}", ["t.j2:1:1: Encountered unknown tag 'endif'. [template-syntax]"]),
        ("{{ " + "(" * 5_000, ["t.j2:1:1: the template is nested too deep [template-syntax]"]),
        ("{% " + "9" * 5_000, ["t.j2:1:1: a number is too long [template-syntax]"]),
        ("x" * 300_000, ["t.j2:1:1: the template is larger than 256 KiB [template-syntax]"]),
    ],
)
def test_undefined_variables(template: str, complaints: list[str]) -> None:
    assert sorted(str(problem) for problem in undefined_variables(template, "t.j2", KUBELET_CONFIG)) == sorted(
        complaints
    )


def test_the_line_of_a_template_that_wrote_a_line() -> None:
    template = """{# two
lines #}
# first
{% for name in fields %}
{{ name }}: {{ fields[name] | yaml }}
{% endfor %}
a: 1
a: 1
{% if fields %}
c: {{ fields.p }}
{% endif %}
end
"""
    variables = {"fields": {"p": 1, "q": 2}}
    assert render(template, "t", variables).split("\n") == [
        *("# first", "p: 1", "q: 2", "a: 1", "a: 1", "c: 1", "end", "")
    ]
    lines = [line_behind(template, "t", variables, line) for line in range(1, 8)]
    assert lines == [3, 5, 5, 7, 7, 10, 12]
