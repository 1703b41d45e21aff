homes_version() { # NAME COMMAND…: the version that it prints
  local name line
  name=$1
  shift
  command -v "$1" >/dev/null || return 0
  line=$(lastly 10 "$@" 2>/dev/null)
  [ -z "$line" ] || say "fact $name ${line%%"$NL"*}"
}

homes_command_line() { # PID: its words into `n_words`, one a line
  n_words=''
  case $unit,$1 in
    *,0) ;;
    k3s*,"${p_kubelet-}") homes_logged_line "$1" ;;
    *) n_words=$(tr '\0' '\n' 2>/dev/null <"$R/proc/$1/cmdline") ;;
  esac
}

homes_logged_line() { # PID of k3s: the command line of the kubelet in it, into `n_words`; none if its journal has it no more. k3s logs it at its start
  local line l_source l_message l_writer word
  if [ "${n_logged_pid-}" != "$1" ] || [ -z "$n_logged" ]; then
    n_logged_pid=$1 n_logged=''
    line=$(lastly 8 journalctl -q -b --no-pager -o cat "_PID=$1" _UID=0 "_SYSTEMD_UNIT=$unit" 2>/dev/null | grep '^time="[^"]*" level=info msg="Running kubelet --' | tail -n 1)
    processes_take_apart "$line"
    case $l_source,$l_message in
      ,'Running kubelet --'*'"')
        set -f
        l_message=${l_message%\"}
        # shellcheck disable=SC2086 # split into words
        set -- ${l_message#Running }
        for word in "$@"; do n_logged=$n_logged${n_logged:+$NL}$word; done
        ;;
    esac
  fi
  n_words=$n_logged
}

homes_kubelet_version() { # the version of the kubelet that the next start of `unit` starts. That of k3s and RKE2 is theirs
  local line
  case $unit in k3s* | rke2-*) ;; *) homes_version kubelet-version "$s_program" --version && return ;; esac
  line=$(lastly 10 "$s_program" --version 2>/dev/null)
  line=${line%%"$NL"*}
  case $line in
    'k3s version v'* | 'rke2 version v'*)
      line=${line#* version }
      say "fact kubelet-version Kubernetes ${line%% *}"
      ;;
    *) homes_version kubelet-version "$s_program" --version ;;
  esac
}

homes_option() { # ' NAME NAME… ': the value of the last of these options in `n_words`, into `n_value`
  local previous word
  n_value='' previous=''
  IFS=$NL
  for word in $n_words; do
    case $1 in *" $previous "*) n_value=$word ;; esac
    case $word in -*=*) case $1 in *" ${word%%=*} "*) n_value=${word#*=} ;; esac ;; esac
    previous=$word
  done
  unset IFS
}

homes_note_matching() { # WHAT PATTERN…: the paths that match, at most 64; also into `n_matched`
  local what count pattern path
  what=$1 count=0 n_matched=''
  shift
  set +f
  for pattern in "$@"; do
    case $pattern in '' | [!/]* | *[!A-Za-z0-9_./:@%+=,*?-]*) continue ;; esac
    for path in $R$pattern; do
      [ -e "$path" ] || [ -L "$path" ] || continue
      count=$((count + 1))
      [ "$count" -le 64 ] || { say "fact $what-truncated only 64 are told" && break 2; }
      measure_note_path "${path#"$R"}"
      n_matched="$n_matched ${path#"$R"}"
    done
  done
  set -f
}

homes_note_read() { # UNIT PATH…: into `m_list`, and as what this unit's process reads at its start into `n_reads`
  local noted reader
  reader=$1
  shift
  measure_note_path "$@"
  for noted in "$@"; do
    case $noted in '' | *[!A-Za-z0-9_./:@%+=,-]*) ;; *) n_reads="$n_reads$reader $noted$NL" ;; esac
  done
}

homes_note() { # what the kubelet, its unit and the runtimes read
  n_hosts='' n_reads=$NL
  # shellcheck disable=SC2086 # a list of paths
  measure_note_path $m_unit_files
  homes_note_kubelet
  homes_note_runtimes
}

homes_note_usual() { # what is a kubelet's wherever it runs, whatever its command line contains
  homes_note_read "$unit" /etc/default/kubelet /etc/sysconfig/kubelet /var/lib/kubelet/kubeadm-flags.env "/etc/systemd/system/$unit.d/90-rollout.conf"
  measure_note_path /var/lib/kubelet/config.yaml
}

homes_note_kubelet() { # what the running kubelet reads, and what it keeps; its root, file and folder of static pods into `n_root`, `n_config` and `n_manifests`
  homes_command_line "$m_pid"
  homes_option ' --root-dir '
  n_root=${n_value:-/var/lib/kubelet} n_root=${n_root%/}
  case $n_root in /*[!A-Za-z0-9_./:@%+=,-]* | [!/]* | '') n_root=/var/lib/kubelet ;; esac
  homes_option ' --pod-manifest-path '
  n_manifests=$n_value
  homes_option ' --config '
  n_config=${n_value:-/var/lib/kubelet/config.yaml}
  # shellcheck disable=SC2086 # a list of paths
  homes_note_read "$unit" $m_kubelet_files "$n_config"
  homes_note_usual
  measure_note_path "$n_root/cpu_manager_state" "$n_root/memory_manager_state"
  case $unit in
    k3s*) homes_note_embedding k3s ;;
    rke2-*) homes_note_embedding rke2 ;;
  esac
  homes_option ' --config-dir '
  [ -n "$n_value" ] || return 0
  homes_note_folder "$n_value"
  case $NL$(tr '\0' '\n' 2>/dev/null <"$R/proc/$m_pid/environ")$NL in # 1.28 and 1.29 need it
    *"${NL}KUBELET_CONFIG_DROPIN_DIR_ALPHA="*) say "fact config-dir-alpha set" ;;
  esac
}

homes_note_embedding() { # NAME of k3s or RKE2: the files that it makes the kubelet's arguments of
  homes_note_read "$unit" "/etc/rancher/$1/config.yaml" "/etc/rancher/$1/config.yaml.d/99-rollout.yaml"
  homes_note_matching rancher-config "/etc/rancher/$1/config.yaml.d/*" "/etc/rancher/$1/config.yaml.d/.*.y*"
  # shellcheck disable=SC2086 # a list of paths
  homes_note_read "$unit" $n_matched
  homes_note_copied "$R/etc/rancher/$1/config.yaml"
}

homes_note_copied() { # FILE: what `kubelet-arg` of it and of the files of `n_matched` names as `config` or `config-dir`: the kubelet of k3s or RKE2 reads it, from 1.32 on by a copy of their start
  local path lines line
  for path in $n_matched; do set -- "$@" "$R$path"; done
  # held is the newest line with a key; what is below another one, or a comment, is not printed
  lines=$(sed -n -e 's/^#.*//' -e 's/[[:space:]]#.*//' -e '/^[^][:space:]-]/h' \
    -e x -e "/^[\"']\{0,1\}kubelet-arg+\{0,1\}[\"']\{0,1\} *:/{" -e x -e p -e b -e '}' -e x -- "$@" 2>/dev/null |
    grep -o -e "[][\"' ,]\(--\)\{0,1\}config\(-dir\)\{0,1\}=/[^]\"' ,]*")
  IFS=$NL
  for line in $lines; do
    unset IFS
    path=${line#*=}
    case $path in *[!A-Za-z0-9_./:@%+=,-]*) continue ;; esac
    case $line in
      *config-dir=*) homes_note_folder "${path%/}" ;;
      *) homes_note_read "$unit" "$path" ;;
    esac
  done
  unset IFS
}

homes_note_folder() { # PATH: a kubelet's drop-ins, those in sub-directories too; at most 64 in 64 folders
  local waiting walked count path folder
  measure_note_path "$1"
  waiting=${1%/} walked=0 count=0
  set +f
  while [ -n "$waiting" ]; do
    folder=${waiting%%"$NL"*} walked=$((walked + 1))
    case $waiting in *"$NL"*) waiting=${waiting#*"$NL"} ;; *) waiting='' ;; esac
    for path in "$R$folder"/* "$R$folder"/.[!.]*; do
      [ -e "$path" ] || [ -L "$path" ] || continue
      if [ "$count" -ge 64 ] || [ "$walked" -gt 64 ]; then
        say "fact config-dir-truncated only $count files in $walked folders are told"
        break 2
      fi
      if [ -d "$path" ] && [ ! -L "$path" ]; then
        waiting=$waiting${waiting:+$NL}${path#"$R"}
      else
        case $unit,$path in
          rke2-*,*/00-rke2-defaults.conf | k3s*,*/00-k3s-defaults.conf | rke2-*,*/10-cli-config.conf | k3s*,*/10-cli-config.conf | \
            rke2-*,*/20-cli-config-dir/*.conf | k3s*,*/20-cli-config-dir/*.conf) count=$((count + 1)) && measure_note_path "${path#"$R"}" ;; # written anew at each start, by what reads it
          *.conf) count=$((count + 1)) && homes_note_read "$unit" "${path#"$R"}" ;;
        esac
      fi
    done
  done
  set -f
}

homes_note_runtimes() { # the configuration of the container runtimes that are there
  local served n_words
  for served in $m_services; do
    n_words=''
    if processes_mentions "${served#*:}" -config || processes_mentions "${served#*:}" '-[cd][/=]'; then homes_command_line "${served#*:}"; fi
    homes_note_read "${served%:*}" "/etc/systemd/system/${served%:*}.d/90-rollout.conf"
    runtimes_note "${served%:*}"
  done
}

homes_quoted() { # LINE: its quoted strings, into `n_quotes`
  IFS="\"'"
  # shellcheck disable=SC2086 # split at quotes
  set -- $1
  unset IFS
  n_quotes=''
  while [ "$#" -gt 1 ]; do
    n_quotes="$n_quotes $2"
    shift 2
  done
}
