"""What a kubelet of a given version makes of its configuration: files, drop-ins and flags in; whether it starts, what it
ignores and what is then in force out. A copy of the kubelet's own decoding, merging, defaulting and validation, per minor.
"""
