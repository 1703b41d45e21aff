#!/bin/sh
# Part of first-hour.sh and bastion.sh: root file systems of Debian, the packages that an index would serve, and commands typed in them.
# shellcheck disable=SC2154 # out and tools are set there

fresh_root() { # NAME PACKAGES: $out/NAME is a new root file system, from $out/NAME.tar
	if [ ! -e "$out/$1.tar" ]; then
		mmdebstrap --quiet --variant=minbase --include="$2" --aptopt='Apt::Install-Recommends "false"' \
			--dpkgopt=force-unsafe-io bookworm "$out/fresh.tar"
		mv "$out/fresh.tar" "$out/$1.tar"
	fi
	rm -rf --one-file-system "${out:?}/$1"
	mkdir "$out/$1"
	tar -x --numeric-owner -f "$out/$1.tar" -C "$out/$1" --exclude='./dev/*'
	mount --rbind --make-rslave /dev "$out/$1/dev"
	mount -t proc proc "$out/$1/proc"
}

remove_mounts() { # NAME...
	for name in "$@"; do
		for point in dev proc wheelhouse lab; do mountpoint -q "$out/$name/$point" && umount -R -l "$out/$name/$point"; done
	done
	return 0
}

checkout_and_index() { # NAME PACKAGES...: in root NAME, ~/rollout is a checkout, and /wheelhouse is what an index would serve: these packages, and those that we need to build and to run
	name=$1
	shift
	rm -rf "$out/dist" "$out/wheels"
	"$tools/python" -m build --wheel --outdir "$out/dist" . >"$out/build.log" 2>&1 || { cat "$out/build.log" >&2; exit 1; }
	"$tools/pip" download --quiet --disable-pip-version-check --dest "$out/wheels" "$out"/dist/*.whl pip setuptools wheel -r requirements/build.in "$@"
	mkdir -p "$out/$name/wheelhouse" "$out/$name/root/rollout"
	git archive HEAD | tar -x -C "$out/$name/root/rollout"
	mount --bind -o ro "$out/wheels" "$out/$name/wheelhouse"
}

typed() { # PAGE MARK: the commands between two marks of a page
	sed -n "/^<!-- $2 begins -->/,/^<!-- $2 ends -->/s/^\\(\\$ \\|    \\)//p" "$1"
}
