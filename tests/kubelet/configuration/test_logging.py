"""The logging of a kubelet: what component-base refuses, minor by minor."""

from __future__ import annotations

import pytest

from rollout.kubelet.configuration.outcome import MessageLevel

from .starts import in_force, said, started

INITIALIZE = "initialize logging: logging."


@pytest.mark.parametrize(
    ("written", "version", "text"),
    [
        ("logging: {format: x}", "1.20.2", "unsupported log format: x"),
        ("logging: {format: x}", "1.22.1", 'logging.format: Invalid value: "x": Unsupported log format'),
        ("logging: {format: x}", "1.25.1", INITIALIZE + 'format: Invalid value: "x": Unsupported log format'),
        ("logging: {verbosity: 2147483648}", "1.33.1",
         INITIALIZE + "verbosity: Invalid value: 0x80000000: Must be <= 2147483647"),
        ("logging: {verbosity: 2147483648}", "1.34.1",
         INITIALIZE + "verbosity: Invalid value: 2147483648: Must be <= 2147483647"),
        ("logging: {vmodule: [{filePattern: '', verbosity: 1}]}", "1.28.1",
         INITIALIZE + "vmodule[0]: Required value: File pattern must not be empty"),
        ("logging: {vmodule: [{filePattern: 'a=b', verbosity: 1}]}", "1.28.1",
         INITIALIZE + 'vmodule[0]: Invalid value: "a=b": File pattern must not contain equal sign or comma'),
        ("logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}", "1.28.1",
         INITIALIZE + "vmodule: Forbidden: Only supported for text log format"),
        ("logging: {format: json}\nfeatureGates: {LoggingBetaOptions: false}", "1.28.1",
         INITIALIZE + "format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature"),
        ("logging: {options: {json: {infoBufferSize: 1Ki}}}", "1.28.1",
         INITIALIZE + "options.json.infoBufferSize: Forbidden: Feature LoggingAlphaOptions is disabled"),
        ("logging: {flushFrequency: -1s}", "1.35.1",
         INITIALIZE + 'flushFrequency: Invalid value: "-1s": Must be greater than zero'),
    ],
)  # fmt: skip
def test_what_is_refused(written: str, version: str, text: str) -> None:
    assert said(started(version, written)) == [text]


@pytest.mark.parametrize(
    ("written", "version"),
    [
        ("logging: {verbosity: 2147483647}", "1.36.1"),
        ("logging: {options: {json: {infoBufferSize: 0Ki}}}", "1.28.1"),
        ("logging: {options: {json: {splitStream: true}}}\nfeatureGates: {LoggingAlphaOptions: true}", "1.28.1"),
        ("logging: {flushFrequency: -1s}", "1.34.1"),
        ("logging: {flushFrequency: 0s}", "1.35.1"),  # replaced by the default
        ("logging: {format: json}", "1.36.1"),
    ],
)
def test_what_is_accepted(written: str, version: str) -> None:
    assert said(started(version, written)) == []


@pytest.mark.parametrize(
    ("flag", "version", "text"),
    [
        ("--log-dir=/x", "1.20.2", "non-default logging format doesn't honor flag: log_dir"),
        ("--log-flush-frequency=1s", "1.20.2", "non-default logging format doesn't honor flag: log-flush-frequency"),
        ("--stderrthreshold=INFO", "1.22.1",
         'logging.format: Invalid value: "json": Non-default format doesn\'t honor flag: stderrthreshold'),
        ("--skip-headers=true", "1.25.1",
         INITIALIZE + 'format: Invalid value: "json": Non-default format doesn\'t honor flag: skip-headers'),
        ("--log-flush-frequency=0", "1.35.1", INITIALIZE + 'flushFrequency: Invalid value: "0s": Must be greater than zero'),
    ],
)  # fmt: skip
def test_flags_that_another_format_does_not_honour(flag: str, version: str, text: str) -> None:
    assert said(started(version, "", "--logging-format=json", flag)) == [text]


@pytest.mark.parametrize("style", ["json", "text"])
def test_the_flag_of_split_streams_overwrites_the_file_also_when_it_is_not_given(style: str) -> None:
    """Its default is false, whatever the file has (``addFlags`` in component-base ``logs/api/v1/options.go``)."""
    written = f"logging: {{options: {{{style}: {{splitStream: true}}}}}}\n"
    found = started("1.36.1", written)
    assert found.starts
    assert in_force(found, "logging", "options", style, "splitStream") is None
    assert f"no file can set `logging.options.{style}.splitStream`" in said(found, MessageLevel.POLICY)[0]
    flag = f"--log-{style}-split-stream"
    message = f"options.{style}.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled"
    assert said(started("1.36.1", written, flag)) == [INITIALIZE + message]
    enabled = started("1.36.1", written + "featureGates: {LoggingAlphaOptions: true}\n", flag)
    assert in_force(enabled, "logging", "options", style, "splitStream") is True


@pytest.mark.parametrize(("version", "shown"), [("1.23.1", 5 * 10**9), ("1.24.1", 5 * 10**9), ("1.25.1", 7 * 10**9)])
def test_up_to_1_24_so_does_the_flag_of_the_flush_frequency(version: str, shown: int) -> None:
    """``BindLoggingFlags`` in component-base ``logs/config.go``."""
    found = started(version, "logging: {flushFrequency: 7000000000}\n")
    assert in_force(found, "logging", "flushFrequency") == shown


@pytest.mark.parametrize("flag", ["--stderrthreshold=ERROR", "--logtostderr=true", "--v=4"])
def test_flags_with_their_default_are_honoured(flag: str) -> None:
    assert started("1.22.1", "", "--logging-format=json", flag).starts


@pytest.mark.parametrize(
    ("flag", "minors", "text"),
    [
        ("--v=+4", (20, 22), ""),
        ("--v=-1", (20, 22), ""),
        ("--v=0x4", (20, 22), 'strconv.ParseInt: parsing "0x4": invalid syntax'),
        ("--v=04", (20, 22, 23, 36), ""),
        ("--v=+4", (23, 36), 'strconv.ParseUint: parsing "+4": invalid syntax'),
        ("--v=-1", (23, 36), 'strconv.ParseUint: parsing "-1": invalid syntax'),
        ("--v=2147483648", (23, 36), 'strconv.ParseUint: parsing "2147483648": value out of range'),
        ("--v=2147483648", (20,), 'strconv.ParseInt: parsing "2147483648": value out of range'),
        ("--vmodule=a=-1", (20, 22), "negative value for vmodule level"),
        ("--vmodule=a", (20, 22), "syntax error: expect comma-separated list of filename=N"),
        ("--vmodule=a", (23, 36), '"a" does not have the pattern=N format'),
        ("--vmodule=a=x", (23, 36), 'parsing verbosity in "a=x": strconv.ParseUint: parsing "x": invalid syntax'),
        ("--vmodule=a=1,", (20, 23, 36), ""),
    ],
)
def test_numbers_of_verbosity(flag: str, minors: tuple[int, ...], text: str) -> None:
    for minor in minors:
        messages = said(started(f"1.{minor}.0", "", flag))
        assert [message.endswith(f"flag: {text}") for message in messages] == ([True] if text else []), messages


def test_modules_of_flags_are_added_to_those_of_the_file() -> None:
    """component-base appends; a kubelet reads its flags over its file."""
    written = "logging: {vmodule: [{filePattern: a, verbosity: 1}]}"
    found = started("1.30.1", written, "--vmodule=b=2", "--vmodule=c=3").effective["logging"]
    assert [module["filePattern"] for module in found["vmodule"]] == ["a", "b", "c"]  # type: ignore[index,call-overload,union-attr]
