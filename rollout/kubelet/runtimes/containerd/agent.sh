note_containerd() { # its file, its imports and their imports, and the registries' hosts.toml
  option ' --config -c -config '
  value=${value:-/etc/containerd/config.toml}
  note_path "$value"
  base=${value%/*} hosts='/etc/containerd/certs.d /etc/docker/certs.d' seen=' ' imports=$value round=0
  note_matching containerd-conf '/etc/containerd/conf.d/*.toml'
  imports="$imports$matched"
  while [ -n "$imports" ] && [ "$round" -lt 4 ]; do
    round=$((round + 1)) to_read=''
    for path in $imports; do
      case $seen in *" $path "*) continue ;; esac
      seen="$seen$path "
      [ ! -f "$R$path" ] || to_read="$to_read $R$path"
    done
    imports=''
    [ -z "$to_read" ] || read_containerd
  done
  # shellcheck disable=SC2086 # a list of paths
  note_read containerd.service $seen
  for folder in $hosts; do
    note_path "$folder"
    note_matching hosts "$folder/*/hosts.toml"
    note_matching host-folders "$folder/*"
  done
}

read_containerd() { # `to_read`: what these files import, into `list` and `imports`; the folders of their config_path into `hosts`
  # shellcheck disable=SC2086 # a list of paths
  lines=$(sed -n -e '/^[[:blank:]]*imports[[:blank:]]*=.*]/{p;d;}' -e '/^[[:blank:]]*imports[[:blank:]]*=/,/]/p' \
    -e '/^[[:blank:]]*config_path[[:blank:]]*=/p' -- $to_read 2>/dev/null)
  IFS=$NL
  for line in $lines; do
    quoted "$line"
    case $line in
      *config_path*) note_hosts "$strings" ;;
      *) note_imports "$strings" ;;
    esac
    IFS=$NL
  done
  unset IFS
}

note_hosts() { # PATHS, as in $PATH
  IFS=': '
  # shellcheck disable=SC2086 # split into paths
  set -- $1
  unset IFS
  for path in "$@"; do
    case $path in [!/]* | *[!A-Za-z0-9_./@%+=,-]*) continue ;; esac
    case " $hosts " in *" $path "*) ;; *) hosts="$hosts $path" ;; esac
  done
}

note_imports() { # PATTERNS, relative to the main file unless absolute
  # shellcheck disable=SC2086 # split into patterns
  set -- $1
  for pattern in "$@"; do
    shift
    case $pattern in /*) set -- "$@" "$pattern" ;; *) set -- "$@" "$base/$pattern" ;; esac
  done
  note_matching containerd-imports "$@"
  imports="$imports$matched"
}

layers_containerd() { # a layer under way is written to now and then; an interrupted one stays for a day
  [ "$readable" = 1 ] || return 1
  data=''
  if mentions "$process" --root; then
    command_line "$process"
    option ' --root '
    data=$value
  elif [ ! -d "$R/var/lib/containerd/io.containerd.content.v1.content" ]; then
    read_root "$R/etc/containerd/config.toml"
  fi
  set +f
  set -- "$R${data:-/var/lib/containerd}"/io.containerd.content.v1.content/ingest/*/data
  set -f
  [ -e "$1" ] || return 0
  # shellcheck disable=SC2046 # a list of numbers
  set -- $(stat -c %Y -- "$@" 2>/dev/null) $(date +%s)
  for latest; do :; done
  for moment in "$@"; do
    shift
    [ "$#" -eq 0 ] || [ $((latest - moment)) -gt 60 ] || unnamed
  done
}

read_root() { # FILE of containerd's, into `data`: the root, from before its first table
  while read -r line || [ -n "$line" ]; do
    case $line in
      '['*) return ;;
      'root '*=* | root=*) quoted "$line" && data=${strings# } ;;
    esac
  done 2>/dev/null <"$1"
}
