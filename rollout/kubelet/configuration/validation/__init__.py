"""``ValidateKubeletConfiguration``, minor by minor, with the kubelet's own texts; every mistake is reported.

Sources: ``pkg/kubelet/apis/config/validation/validation.go`` of 1.20.2 (pristine) and of each later minor's tree as
named in the derivation notes of the package data. No tree of 1.21 was available: it is assumed to check what 1.22
checks, where it has the field.
"""
