"""Values of each kind: numbers, durations, booleans, strings, lists, maps, objects, nothing."""

from __future__ import annotations

from tests.kubelet.real_kubelet.cases import Case
from tests.kubelet.real_kubelet.corners.case import each, named

# "-9223372036854775808ns" is left out: Go accepts it since 1.18, and kubelets are built with the Go of their time.
DURATIONS = (
    "5m", "90s", "1h15m30.5s", "0s", '"0"', "0", "-5s", "+5s", "120", '"120"', '""', "null", "5", '"5 m"', '"2 m"', "1d", "1w", "5M",
    "5min", "5S", "1m5", "m", "s", '"-"', '"."', "1.5h", "1.s", ".5s", '".s"', "1h-5m", "1e3s", "0x10s", "1_000s", "1,5s", "100ms", "100us",
    "100µs", "100μs", "1ns", "1.5ns", "2562047h", "2562048h", "9223372036854775807ns", "9223372036854775808ns",
    "99999999999999999999s", "1.0000000000000000001s", "true", "[5m]", "{a: 5m}", "5.5", '" 5m"', '"5m "', "5m0s",
    "1h1h", "00005s", "0.5m", "-0s", "1000000000ns", "3661s", "0.000000001s", "٣s",
)  # fmt: skip

INTEGERS = (
    "5", '"5"', "5.0", "5.5", "5e1", "5e-1", "1e2", "0x1F", "017", "0o17", "0b101", "+5", "-5", "-0", "1_000", "1,000", "five", "true", "null",
    '""', "[5]", "{a: 5}", "2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
    "1e99", ".5", "5.", ".inf", ".nan", "12:30", "190:20:30", "2001-01-01", "0", "00", "08", "~", "'5'", "!!str 5", "0x", "5_", "- 5",
)  # fmt: skip

BOOLEANS = (
    "true", "false", "True", "TRUE", "tRUE", "yes", "no", "Yes", "NO", "on", "off", "On", "OFF", "y", "n", "Y", "N", "t", "f", "1", "0", '"true"',
    "'false'", "null", "~", "", '""', "[true]", "{}", "truee", "1.0", "!!bool yes", "!!str true",
)  # fmt: skip

STRINGS = (
    "abc", "5", "5.5", "true", "yes", "null", "~", "", '""', "''", "[abc]", "{a: b}", '"null"', "2001-01-01", "2001-01-01T00:00:00Z", "0x1F", "017",
    "1e3", "12:30", ".inf", ".nan", "-", "a b  c", '"a\\nb"', "=", "<<", "!!str", "1_000", "0b11",
)  # fmt: skip

LISTS = (
    "[]", "[10.0.0.10]", "10.0.0.10", "null", "", "[null]", "[5]", "[1.5]", "[true]", "[[10.0.0.10]]", "{a: b}", '[""]', "[10.0.0.10, 10.0.0.10]",
    "[10.0.0.10, 10.0.0.11, 10.0.0.12, 10.0.0.13]", '["10.0.0.10"]', "[fd00::10]", "[yes]", "['a,b']",
)  # fmt: skip

MAPS = (
    "{}", "null", "", "{cpu: 100m}", "{cpu: 1}", "{cpu: 0.5}", "{cpu: 100m, memory: 100Mi}", "{cpu: null}", "{cpu: true}", "{cpu: [1]}", "[cpu]",
    "cpu=100m", "5", '{cpu: ""}', "{cpu: abc}", "{cpu: -1}", "{cpu: 1e-3}", '{cpu: "1"}', '{memory: "1"}', '{memory: "128974848"}',
    '{memory: "129e6"}', "{memory: 129M}", "{memory: 100MiB}", "{memory: 100 Mi}", "{memory: 10%}", "{ephemeral-storage: 100Mi}",
    '{pid: "100"}', '{pids: "100"}', "{hugepages-2Mi: 0}", "{nvidia.com/gpu: 0}", "{CPU: 100m}", "{storage: 1Gi}", '{pods: "5"}',
    '{cpu: "0.1"}', '{cpu: "0"}', "{memory: 0.5Gi}", "{memory: -100Mi}",
)  # fmt: skip

OBJECTS = named(
    "object",
    {
        "null": "authentication: null",
        "nothing": "authentication:",
        "empty": "authentication: {}",
        "string": "authentication: anonymous",
        "list": "authentication: [anonymous]",
        "bool": "authentication: true",
        "number": "authentication: 5",
        "nested null": "authentication:\n  anonymous: null\n  webhook:\n    enabled: null\n    cacheTTL: null",
        "nested empty": "authentication:\n  anonymous: {}\n  webhook: {}\n  x509: {}",
        "nested wrong type": "authentication:\n  anonymous:\n    enabled: 'yes'",
        "nested string for an object": "authentication:\n  anonymous: true",
        "nested duration": "authentication:\n  webhook:\n    cacheTTL: 30s",
        "nested wrong duration": "authentication:\n  webhook:\n    cacheTTL: 30",
        "nested duration of zero": "authentication:\n  webhook:\n    cacheTTL: 0s",
        "authorization": "authorization:\n  mode: Webhook\n  webhook:\n    cacheAuthorizedTTL: 1m\n    cacheUnauthorizedTTL: 10s",
        "authorization mode unknown, a flag beats it": "authorization:\n  mode: Nonsense",
        "authorization zero durations": "authorization:\n  webhook:\n    cacheAuthorizedTTL: 0s\n    cacheUnauthorizedTTL: 0s",
        "logging text": "logging:\n  format: text",
        "logging json": "logging:\n  format: json",
        "logging JSON in capitals": "logging:\n  format: JSON",
        "logging unknown format": "logging:\n  format: xml",
        "logging empty format": 'logging:\n  format: ""',
        "logging empty": "logging: {}",
        "logging null": "logging: null",
        "logging sanitization": "logging:\n  sanitization: true",
        "logging sanitization as string": 'logging:\n  sanitization: "true"',
        "staticPodURLHeader": "staticPodURLHeader:\n  X-A: [b, c]",
        "staticPodURLHeader with a string": "staticPodURLHeader:\n  X-A: b",
        "staticPodURLHeader empty": "staticPodURLHeader: {}",
        "staticPodURLHeader null values": "staticPodURLHeader:\n  X-A: null",
        "object with an unknown field null": "authentication:\n  nope: null",
    },
)

VALUES: tuple[Case, ...] = (
    *each("duration", "streamingConnectionIdleTimeout", DURATIONS),
    *each("timeout of the runtime", "runtimeRequestTimeout", ("5m", "0s", "-5s", "120", '"2 m"', "1d", "null", "2562047h")),
    *each("integer", "maxPods", INTEGERS),
    *each("long", "podPidsLimit", ("5", '"5"', "5.0", "9223372036854775807", "9223372036854775808", "-1", "-9223372036854775808", "1e3", "null", "0")),
    *each("boolean", "serializeImagePulls", BOOLEANS),
    *each("string", "clusterDomain", STRINGS),
    *each("list", "clusterDNS", LISTS),
    *each("list", "allowedUnsafeSysctls", ("[]", "null", "[kernel.msg*]", "['net.*', kernel.shm_rmid_forced]", "[5]", "[a, 5]", "kernel.msg*", "['*']", "['a b']", "['kernel.*.x']", "['']", "[net.ipv4.tcp_syncookies, vm.swappiness]")),
    *each("map", "kubeReserved", MAPS),
    *OBJECTS,
)  # fmt: skip
