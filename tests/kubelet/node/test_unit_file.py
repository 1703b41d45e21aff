"""Units as systemd reads them: the ExecStart in force, its environment, and the words it runs."""

from __future__ import annotations

import pytest

from rollout.kubelet.node import unit_file
from rollout.kubelet.node.unit_file import EnvironmentFile, expand, merge, quote, start

FRAGMENT = """\
[Unit]
ExecStart=/not/this
[Service]
; a comment
Environment=A=1 "B=two words"
EnvironmentFile=-/etc/default/kubelet
ExecStart=/usr/bin/kubelet \\
  # inside
  --a=1 \\
  --b
[Install]
"""


def test_one_unit() -> None:
    found = start({"/u": FRAGMENT})
    assert found.command == "/usr/bin/kubelet --a=1 --b"
    assert found.file == "/u"
    assert found.environment == {"A": "1", "B": "two words"}
    assert found.files == (EnvironmentFile("/etc/default/kubelet", optional=True),)


def test_drop_ins_reset_and_add() -> None:
    drop_in = "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet $X\nEnvironment=\nEnvironment=C=3\nEnvironmentFile=\nEnvironmentFile=/e\nUnsetEnvironment=\n"
    found = start({"/u": FRAGMENT, "/d": drop_in})
    assert (found.command, found.file) == ("/usr/bin/kubelet $X", "/d")
    assert found.environment == {"C": "3"}
    assert found.files == (EnvironmentFile("/e", optional=False),)


@pytest.mark.parametrize(
    "text",
    [
        "[Service]\n",
        "[Service]\nExecStart=/a\nExecStart=/b\n",
        "[Service]\nExecStart=/a\nUnsetEnvironment=A\n",
        "[Service]\nExecStart=/a\nEnvironmentFile=/etc/*.env\n",
        "[Service]\nExecStart=/a\nEnvironmentFile=relative\n",
        '[Service]\nExecStart=/a\nEnvironmentFile="/etc/default/kubelet"\n',
        "[Service]\nExecStart=/a\nEnvironmentFile=- /etc/default/kubelet\n",
        "[Service]\nExecStart=/a\nEnvironment=A=%i\n",
        '[Service]\nExecStart=/a\nEnvironment="A=one\\x20two"\n',
        "[Service]\nExecStart=/a \\ \n --b\n",
        ".include /lib/systemd/system/kubelet.service\n[Service]\nExecStart=/a\n",
    ],
)
def test_units_that_are_not_understood_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        start({"/u": text})


def test_a_backslash_at_the_end_of_the_last_line_is_accepted() -> None:
    assert start({"/u": "[Service]\nExecStart=/usr/bin/kubelet --a \\"}).command == "/usr/bin/kubelet --a"


def test_an_escaped_backslash_at_a_line_end_does_not_continue_the_line() -> None:
    found = start({"/u": "[Service]\nExecStart=/usr/bin/kubelet --a=b\\\\\nEnvironment=A=1\n"})
    assert found.command == "/usr/bin/kubelet --a=b\\\\"
    assert found.environment == {"A": "1"}


def test_line_ends_of_every_kind() -> None:
    found = start({"/u": "[Service]\r\nEnvironment=A=1\rExecStart=/usr/bin/kubelet \\\r\n  --b\r\n"})
    assert (found.command, found.environment) == ("/usr/bin/kubelet --b", {"A": "1"})


def test_an_environment_of_quoted_pairs_and_of_words_that_are_no_pairs() -> None:
    text = """[Service]\nExecStart=/k\nEnvironment="A=--x='1 2'" 'B=%%' C 4=5 "D=\\"q\\""\n"""
    assert start({"/u": text}).environment == {"A": "--x='1 2'", "B": "%", "D": '"q"'}


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("$A", ["--x=1", "2"]),
        ("${A}", ["--x=1 2"]),
        ('"$A"', ["--x=1", "2"]),
        ("--y=$A", ["--y=$A"]),
        ("--y=${A}", ["--y=--x=1 2"]),
        ("$A-more", []),
        ("$", []),
        ("$$A", ["$A"]),
        ("${A:-none}", ["${A:-none}"]),
        ("${A:+x}${A}", ["${A:+x}--x=1 2"]),
        ("--y=${A:-${A}}", ["--y=${A:---x=1 2}"]),
        ("${A-none}", [""]),
        ("${A$$", ["${A$$"]),
        ("$${A}", ["${A}"]),
        ("$$${A}", ["$--x=1 2"]),
        ("$(A)${A", []),
        ("a$(A)${A", ["a$(A)${A"]),
        ('""', [""]),
    ],
)
def test_a_variable_is_split_only_as_a_word_of_its_own(word: str, words: list[str]) -> None:
    found = [piece.text for piece in expand(f"/k {word}", "/u", {"A": "--x=1 2"}, {})]
    assert found[1:] == words


def test_variables() -> None:
    environment = {"A": "--x=1 '--y=a b'", "EMPTY": "", "B": "c d"}
    command = '/usr/bin/kubelet $A "$EMPTY" $NONE --b=${B} ${B} $$A --z=%% a$B ${open'
    words = [piece.text for piece in expand(command, "/u", environment, {"A": "/e"})]
    assert words == ["/usr/bin/kubelet", "--x=1", "--y=a b", "--b=c d", "c d", "$A", "--z=%", "a$B", "${open"]


def test_the_origin_of_a_word_names_the_files_of_its_variables() -> None:
    environment, sources = {"A": "--x=1", "B": "2"}, {"A": "/e", "B": "/u"}
    pieces = expand('/usr/bin/kubelet "${A}" --y=${B}${A}${A}${NONE}${A:-1}', "/u", environment, sources)
    assert [piece.origin for piece in pieces[1:]] == [
        "ExecStart in /u, ${A} in /e",
        "ExecStart in /u, ${B} in /u, ${A} in /e",
    ]


def test_a_variable_that_systemd_itself_passes_has_an_unknown_value() -> None:
    text = "[Service]\nPassEnvironment=A B\n\nExecStart=/k --a=${A:-x} --b=${B}\n"
    found = start({"/u": text})
    with pytest.raises(ValueError, match=r".") as caught:
        unit_file.check_known(found, {})
    assert str(caught.value) == (
        "/u (line 2): PassEnvironment= takes $B, which ExecStart= contains, from systemd's own environment, and its value"
        " there is unknown; set it in Environment= or in an environment file"
    )
    unit_file.check_known(found, {"B": "1"})
    unit_file.check_known(start({"/u": text, "/d": "[Service]\nPassEnvironment=\nPassEnvironment=C\n"}), {})
    assert unit_file.unset_names(found, {}) == ("B",)


def test_a_mark_of_byte_order_is_no_part_of_a_unit() -> None:
    assert start({"/u": "\ufeff[Service]\nExecStart=/k\n"}).command == "/k"


@pytest.mark.parametrize("path", ["/etc//default/./kubelet", "//etc/default/kubelet", "/etc/default/kubelet/"])
def test_the_path_of_an_environment_file_is_as_systemd_shows_it(path: str) -> None:
    found = start({"/u": f"[Service]\nExecStart=/k\nEnvironmentFile=-{path}\n"})
    assert found.files == (EnvironmentFile("/etc/default/kubelet", optional=True),)


def test_origins_are_for_people() -> None:
    pieces = expand("/usr/bin/kubelet $A --b", "/u", {"A": "--x"}, {"A": "/e"})
    assert [piece.origin for piece in pieces] == ["ExecStart in /u", "A in /e", "ExecStart in /u"]
    assert [(piece.variable, piece.file) for piece in pieces] == [("", "/u"), ("A", "/e"), ("", "/u")]


@pytest.mark.parametrize(
    "command",
    [
        "-/usr/bin/kubelet",
        "@/usr/bin/kubelet k",
        "/k --a=\\x20",
        "/k --host=%H",
        "/k ; /l",
        "/k \\;",
        "/k --a=b\\ c",
        ":/k",
        "+/k",
        "!/k",
        "!!/k",
    ],
)
def test_commands_that_are_not_understood_are_refused(command: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        unit_file.exec_words(command)


def test_merge_quotes_what_systemd_would_expand() -> None:
    command = merge("/usr/bin/kubelet --a=1", ("--a=$HOME", "--b=50%"))
    assert command == "/usr/bin/kubelet --a=$$HOME --b=50%%"
    assert [piece.text for piece in expand(command, "/u", {}, {})] == ["/usr/bin/kubelet", "--a=$HOME", "--b=50%"]
    assert quote("a b$") == '"a b$$"'
    with pytest.raises(ValueError, match="line end"):
        quote("a\n")


def test_only_the_blanks_of_systemd_are_trimmed() -> None:
    assert start({"/u": "[Service]\nExecStart= /usr/bin/kubelet --a=\xa0 \t\n"}).command == "/usr/bin/kubelet --a=\xa0"


@pytest.mark.parametrize("word", ["$A ", "${A}", "${A} "])
def test_a_variable_that_is_named_again_and_again_is_refused(word: str) -> None:
    """Else a unit and an environment file of 64 KiB make a command line of a gigabyte."""
    with pytest.raises(ValueError, match="longer than 2 MiB"):
        expand(f"/usr/bin/kubelet {word * 20_000}", "/u", {"A": "x" * 65_536}, {})


@pytest.mark.parametrize(
    ("unit", "text", "words"),
    [
        ("kubelet.service", "/k --host=%H --short=%l", ("/k", "--host=node4.rno", "--short=node4")),
        ("kubelet.service", "/k %n %N %p %j %%H", ("/k", "kubelet.service", "kubelet", "kubelet", "kubelet", "%H")),
        ("rke2-agent.service", "/k %N %j", ("/k", "rke2-agent", "agent")),
        ("k@a-b.service", "/k %p %i", ("/k", "k", "a-b")),
        (
            "kubelet.service",
            "/k %t/k %S %C %L %E %h %u",
            ("/k", "/run/k", "/var/lib", "/var/cache", "/var/log", "/etc", "/root", "root"),
        ),
    ],
)
def test_specifiers_with_a_known_value(unit: str, text: str, words: tuple[str, ...]) -> None:
    assert unit_file.exec_words(text, unit_file.specifiers(unit, {"H": "node4.rno", "l": "node4"})) == words


@pytest.mark.parametrize("letter", ["v", "H", "T", ""])
def test_another_specifier_is_said_to_be_unknown(letter: str) -> None:
    with pytest.raises(ValueError, match=f"specifier %{letter}, and its value on this node is unknown"):
        unit_file.exec_words(f"/k --a=%{letter}", unit_file.specifiers("kubelet.service", {"H": ""}))


def test_specifiers_in_environment_and_in_names_of_files() -> None:
    text = "[Service]\nExecStart=/k\nEnvironment=A=%H\nEnvironmentFile=%E/default/%N\n"
    found = start({"/u": text}, unit_file.specifiers("kubelet.service", {"H": "node4"}))
    assert (found.environment, found.files) == (
        {"A": "node4"},
        (EnvironmentFile("/etc/default/kubelet", optional=False),),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[Service]\n# one\nExecStart=-/usr/bin/kubelet\n", "/u: ExecStart= begins with '-', and rollout does not follow a command with such a prefix (line 3)"),
        ("[Service]\nExecStart=/k \\\n  --a \\ \n  --b\n", "/u: a line ends with a backslash and blanks, which does not continue it (line 3)"),
        ("[Service]\nExecStart=/k \\\n  --a 'b\n", "/u: the quote ' is never closed (line 2)"),
        ("[Service]\nExecStart=/k\n\nEnvironment=A=\\x41\n", "/u: Environment= contains the escape \\x (line 4)"),
        ("[Service]\nExecStart=/k\nEnvironmentFile=/etc/*.env\n", "/u: EnvironmentFile=/etc/*.env is a pattern, and rollout follows single files: name each file in a line (line 3)"),
        ("[Service]\nExecStart=/k\nEnvironmentFile=etc/k.env\n", "/u: EnvironmentFile=etc/k.env is not one absolute path (line 3)"),
        ("[Service]\nUnsetEnvironment=A\nExecStart=/k\n", "/u: UnsetEnvironment= removes environment variables, which rollout does not follow: remove this line (line 2)"),
        ("[Service]\n.include /lib/k\n", "/u: a unit file includes another, which newer versions of systemd ignore (line 2)"),
        ("[Service]\nExecStart=/k\nExecStart=/k2\n", "the unit has 2 ExecStart= commands: /u (line 2), /u (line 3)"),
        ("[Service]\nRestart=always\n", "the unit has 0 ExecStart= commands: /u"),
    ],
)  # fmt: skip
def test_what_is_not_understood_has_its_file_and_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        start({"/u": text})
    assert str(caught.value) == message


def test_a_variable_that_is_not_understood_has_its_name_and_file() -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        expand("/k $A", "/u", {"A": "--a 'b"}, {"A": "/etc/a.env"})
    assert str(caught.value) == "A in /etc/a.env: the quote ' is never closed"
