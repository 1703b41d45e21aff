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
  [ "$1" = 0 ] || n_words=$(tr '\0' '\n' 2>/dev/null <"$R/proc/$1/cmdline")
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
  homes_note_read "$unit" $m_kubelet_files "$n_config" /etc/default/kubelet /etc/sysconfig/kubelet /var/lib/kubelet/kubeadm-flags.env \
    "/etc/systemd/system/$unit.d/90-rollout.conf"
  measure_note_path /var/lib/kubelet/config.yaml "$n_root/cpu_manager_state" "$n_root/memory_manager_state"
  homes_option ' --config-dir '
  [ -n "$n_value" ] || return 0
  homes_note_folder "$n_value"
  case $NL$(tr '\0' '\n' 2>/dev/null <"$R/proc/$m_pid/environ")$NL in # 1.28 and 1.29 need it
    *"${NL}KUBELET_CONFIG_DROPIN_DIR_ALPHA="*) say "fact config-dir-alpha set" ;;
  esac
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
        case $path in *.conf) count=$((count + 1)) && homes_note_read "$unit" "${path#"$R"}" ;; esac
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
