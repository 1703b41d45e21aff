"""How images are pulled, and for which pulled images credentials are verified."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.kubelet.configuration.go_values import quoted
from rollout.kubelet.configuration.validation.checked import Checked, Complaint, wrong

_POLICY = "imagePullCredentialsVerificationPolicy"
_ALLOWLIST = "preloadedImagesVerificationAllowlist"
_POLICIES = ("NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify")


def parallel_pulls(checked: Checked) -> Iterator[Complaint]:
    """1.27 and later; the second error needs a written ``serializeImagePulls: true``, or its flag."""
    most = checked.values.get("maxParallelImagePulls")
    if not isinstance(most, int) or checked.minor < 27:
        return
    if most < 1:
        yield wrong("maxParallelImagePulls", f"maxParallelImagePulls {most} must be a positive number")
    if most > 1 and checked.flag("serializeImagePulls"):
        yield wrong(
            "maxParallelImagePulls",
            "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false",
        )


def credentials_verification(checked: Checked) -> Iterator[Complaint]:
    """1.33 and later: none of its fields may be written while its gate is off."""
    if checked.minor < 33:
        return
    if checked.gate_off("KubeletEnsureSecretPulledImages"):
        for name in (_POLICY, _ALLOWLIST):
            if checked.values.get(name):
                yield wrong(
                    name, f"`{name}` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"
                )
        return
    policy = checked.text(_POLICY)
    if policy not in _POLICIES:
        names = [quoted(name) for name in _POLICIES]
        valid = f"{', '.join(names[:-1])} or {names[-1]}"
        yield wrong(_POLICY, f"option {quoted(policy)} specified for {_POLICY}. Valid options are {valid}")
    if checked.entries(_ALLOWLIST) and policy != "NeverVerifyAllowlistedImages":
        said = f'can\'t set `{_ALLOWLIST}` if `imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"'
        yield wrong(_ALLOWLIST, said)
    yield from _patterns(checked)


def _patterns(checked: Checked) -> Iterator[Complaint]:
    """The first invalid pattern (``pullmanager/image_pull_policies.go``)."""
    said = next((said for pattern in checked.entries(_ALLOWLIST) if (said := _no_pattern(str(pattern)))), "")
    if said:
        yield wrong(_ALLOWLIST, f"invalid image pattern in `{_ALLOWLIST}`: {said}")


def _no_pattern(pattern: str) -> str:
    if pattern != pattern.strip():
        return f"leading/trailing spaces are not allowed: {pattern}"
    plain = pattern[:-1] if pattern.endswith("/*") else pattern
    if not plain:
        return f"the supplied pattern is too short: {pattern}"
    if "*" in plain:
        return f"not a valid wildcard pattern, only patterns ending with '/*' are allowed: {pattern}"
    if plain == "/":
        return "at least registry hostname is required"
    if plain == pattern and ("@" in plain or ":" in plain.rpartition("/")[2]):
        return f"neither tag nor digest is accepted in an image reference: {pattern}"
    return ""
