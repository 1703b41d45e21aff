containerd_note() { # its file, its imports and their imports, and the registries' hosts.toml
  local n_value base imports path round to_read folder seen
  homes_option ' --config -c -config '
  n_value=${n_value:-/etc/containerd/config.toml}
  measure_note_path "$n_value"
  base=${n_value%/*} n_hosts='/etc/containerd/certs.d /etc/docker/certs.d' seen=' ' imports=$n_value round=0
  homes_note_matching containerd-conf '/etc/containerd/conf.d/*.toml'
  imports="$imports$n_matched"
  while [ -n "$imports" ] && [ "$round" -lt 4 ]; do
    round=$((round + 1)) to_read=''
    for path in $imports; do
      case $seen in *" $path "*) continue ;; esac
      seen="$seen$path "
      [ ! -f "$R$path" ] || to_read="$to_read $R$path"
    done
    imports=''
    [ -z "$to_read" ] || containerd_read
  done
  # shellcheck disable=SC2086 # a list of paths
  homes_note_read containerd.service $seen
  for folder in $n_hosts; do
    measure_note_path "$folder"
    homes_note_matching hosts "$folder/*/hosts.toml"
    homes_note_matching host-folders "$folder/*"
  done
}

containerd_read() { # `to_read`: what these files import, into `m_list` and `imports`; the folders of their config_path into `n_hosts`
  local lines line
  # shellcheck disable=SC2086 # a list of paths
  lines=$(sed -n -e '/^[[:blank:]]*imports[[:blank:]]*=.*]/{p;d;}' -e '/^[[:blank:]]*imports[[:blank:]]*=/,/]/p' \
    -e '/^[[:blank:]]*config_path[[:blank:]]*=/p' -- $to_read 2>/dev/null)
  IFS=$NL
  for line in $lines; do
    homes_quoted "$line"
    case $line in
      *config_path*) containerd_note_hosts "$n_quotes" ;;
      *) containerd_note_imports "$n_quotes" ;;
    esac
    IFS=$NL
  done
  unset IFS
}

containerd_note_hosts() { # PATHS, as in $PATH, into `n_hosts`
  local path
  IFS=': '
  # shellcheck disable=SC2086 # split into paths
  set -- $1
  unset IFS
  for path in "$@"; do
    case $path in [!/]* | *[!A-Za-z0-9_./@%+=,-]*) continue ;; esac
    case " $n_hosts " in *" $path "*) ;; *) n_hosts="$n_hosts $path" ;; esac
  done
}

containerd_note_imports() { # PATTERNS, relative to the main file unless absolute
  local pattern
  # shellcheck disable=SC2086 # split into patterns
  set -- $1
  for pattern in "$@"; do
    shift
    case $pattern in /*) set -- "$@" "$pattern" ;; *) set -- "$@" "$base/$pattern" ;; esac
  done
  homes_note_matching containerd-imports "$@"
  imports="$imports$n_matched"
}

containerd_root() { # of the process `process`, into `data`
  local n_value
  data=''
  if processes_mentions "$process" --root; then
    homes_command_line "$process"
    homes_option ' --root '
    data=$n_value
  elif [ ! -d "$R/var/lib/containerd/io.containerd.content.v1.content" ]; then
    containerd_read_root "$R/etc/containerd/config.toml"
  fi
  data=${data:-/var/lib/containerd}
}

containerd_layers() { # a layer under way is written to now and then; an interrupted one stays for a day
  local data
  [ "$q_readable" = 1 ] || return 1
  containerd_root
  containerd_find_layers
}

containerd_find_layers() { # in the folder `data`
  local latest written
  set +f
  set -- "$R$data"/io.containerd.content.v1.content/ingest/*/data
  set -f
  [ -e "$1" ] || return 0
  # shellcheck disable=SC2046 # a list of numbers
  set -- $(stat -c %Y -- "$@" 2>/dev/null) $(date +%s)
  for latest; do :; done
  for written in "$@"; do
    shift
    [ "$#" -eq 0 ] || [ $((latest - written)) -gt 60 ] || pulls_unnamed
  done
}

containerd_embedded() { # that of k3s or RKE2, in the folder `p_home`, has its log in a file. Its pulls since its last start, and its layers under way
  local lines line l_source l_message l_writer begun others data
  # shellcheck disable=SC2034 # read by `containerd_find_layers`
  data=$p_home/containerd begun=0 others=$q_names
  # its first lines and the last one of information show, if nothing else, which time it tells of
  lines=$(lastly 8 tail -c 16777216 -- "$R$data/containerd.log" 2>/dev/null |
    sed -n -e '1,2b cut' -e '/starting containerd/b cut' -e '/PullImage/b cut' -e '/^time="[^"]*" level=info /h' -e '$!d' -e x \
      -e ': cut' -e 's/^\(.\{400\}\).*/\1/' -e p)
  IFS=$NL
  for line in $lines; do
    unset IFS
    q_request=''
    processes_take_apart "$line"
    case $l_source,$l_message in
      ,'starting containerd"'*) begun=1 q_names='' ;;
      *) [ "$begun" = 0 ] || pulls_follow ;;
    esac
  done
  unset IFS
  [ "$begun" = 1 ] || { q_names='' && containerd_follow_since && begun=1; } || q_names=''
  containerd_find_layers
  q_names=$q_names$others
  [ "$begun" = 1 ]
}

containerd_follow_since() { # `lines`, none of which tells of a start: the pulls since the start of the unit's process. That is all of them only if the log reaches
  # back before it, and has lines of information since: those of pulls are such
  local since zone moment reaches informed line
  is_number "${m_started:-}" || return 1
  shown_files_date_boot
  since=$(lastly 3 date -d "@$(((x_booted + m_started / 1000) / 1000))" '+%Y%m%d%H%M%S %z' 2>/dev/null)
  zone=${since#* } since=${since% *} reaches=0 informed=0
  is_number "$since" || return 1
  IFS=$NL
  for line in $lines; do
    unset IFS
    if ! containerd_date "$line"; then
      case $reaches,$line in 1,'time="'*) return 1 ;; esac # what it tells of may be before or after any other line
      continue
    fi
    [ "$moment" -ge "$since" ] || { reaches=1 && continue; }
    [ "$reaches" = 1 ] || return 1
    case $line in 'time="'*'" level=info '*) informed=1 ;; esac
    q_request=''
    processes_take_apart "$line"
    pulls_follow
  done
  unset IFS
  [ "$informed" = 1 ]
}

containerd_date() { # LINE: when it was logged, into `moment`, as a number of 14 digits in the time `zone`; false if it has no such time. One of another zone is no time
  moment=${1#'time="'}
  [ "$moment" != "$1" ] || return 1
  moment=${moment%%\"*}
  case $moment in
    *Z) moment=${moment%Z}+00:00 ;;
    *[+-][0-9][0-9]:[0-9][0-9]) ;;
    *) return 1 ;;
  esac
  case ${moment#"${moment%??????}"},$zone in "${zone%??}:${zone#???},$zone") ;; *) return 1 ;; esac
  moment=${moment%??????}
  IFS='-T:'
  # shellcheck disable=SC2086 # split into numbers
  set -- ${moment%%.*}
  unset IFS
  moment=$1${2-}${3-}${4-}${5-}${6-}
  [ "${#moment}" -eq 14 ] && is_number "$moment"
}

containerd_read_root() { # FILE of containerd's, into `data`: the root, from before its first table
  local line
  while read -r line || [ -n "$line" ]; do
    case $line in
      '['*) return ;;
      'root '*=* | root=*) homes_quoted "$line" && data=${n_quotes# } ;;
    esac
  done 2>/dev/null <"$1"
}
