#!/bin/sh
# check.sh TOOLS OUT - what a release must be. Builds in copies of the committed and uncommitted sources, never in the tree.
# OUT/dist has the wheel and the sdist at the end.
set -eu
tools=$(realpath "$1") out=$2
rm -rf "$out" && mkdir -p "$out/dist"
out=$(realpath "$out")
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' rollout/__init__.py)

# The same backend in each build: an isolated build would take a newer one on another day.
"$tools/pip" freeze --disable-pip-version-check | grep '^hatchling==' >"$out/backend.txt"
export PIP_CONSTRAINT="$out/backend.txt"

copy() { # FOLDER: the files that git knows or would add
	mkdir -p "$out/$1"
	git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --ignore-failed-read -c 2>/dev/null | tar -x -C "$out/$1"
}

build() { # FOLDER OUT UMASK OPTION...: its wheel and its sdist
	source=$1 into=$2 mask=$3
	shift 3
	(umask "$mask" && "$tools/python" -m build "$@" --outdir "$out/$into" "$out/$source") >"$out/log" 2>&1 || {
		cat "$out/log" >&2
		exit 1
	}
}

digests() { (cd "$1" && sha256sum -- *); }

copy first
copy second/elsewhere
find "$out/second" -type f -exec touch {} +
build first dist 022
build second/elsewhere again 077
build first here 022 --no-isolation
unset PIP_CONSTRAINT
digests "$out/dist" >"$out/SHA256SUMS"
for other in again here; do
	digests "$out/$other" | cmp -s "$out/SHA256SUMS" - || { echo "two builds differ: $out/dist and $out/$other" >&2; exit 1; }
done
echo "reproducible: 2 isolated builds and 1 without isolation have the same digests"

"$tools/twine" check --strict "$out"/dist/*
python3 -m tests.release "$out/dist"

python3 -m venv "$out/venv"
"$out/venv/bin/pip" install --quiet --disable-pip-version-check "$out"/dist/*.whl
"$out/venv/bin/pip" check --disable-pip-version-check
mkdir "$out/project" && cd "$out/project"
said=$("$out/venv/bin/rollout" --version)
[ "$said" = "rollout, version $version" ] || { echo "it reports: $said" >&2; exit 1; }
"$out/venv/bin/rollout" init --nodes 'node-[01-09]' --cluster edge >/dev/null
"$out/venv/bin/rollout" check
if "$out/venv/bin/rollout" status --journal postgresql://rollout@127.0.0.1/rollout 2>"$out/postgresql.txt"; then exit 1; fi
grep -q '\[no-postgresql\]' "$out/postgresql.txt"
cat "$out/SHA256SUMS"
echo "release check passed: kubelet-rollout $version"
