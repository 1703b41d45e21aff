"""``ValidateKubeletConfiguration``, minor by minor, in the kubelet's own words: every mistake is told, not the first alone.

Sources: ``pkg/kubelet/apis/config/validation/validation.go`` of 1.20.2 (pristine) and of each later minor's tree as named in
the derivation notes of the package data. No tree of 1.21 was at hand: it is taken to check what 1.22 checks, where it has
the field.
"""
