# ------------------------------------------------------------------------------------- what settings may need on this node

# For a snapshot. The shell reads all of it but sockets and kernel settings, the free space and logind's delay: a program each. A name outside the alphabet of
# paths is left out, and a list ends at 256 names. What cannot be read has no line: it is unknown.

surroundings_show() { # behind the units and the homes
  say "kubelet-root $n_root"
  surroundings_show_cgroups
  surroundings_show_sockets
  surroundings_show_manifests
  surroundings_show_devices
  surroundings_show_swaps
  surroundings_show_inhibit_delay
  surroundings_show_processes
}

surroundings_begin() { # a list into `y_names`, `y_count` and `y_extent`
  y_names='' y_count=0 y_extent=whole
}

surroundings_add() { # NAME
  case $1 in '' | *[!A-Za-z0-9_./:@%+=,-]*) return 0 ;; esac
  y_count=$((y_count + 1))
  if [ "$y_count" -le 256 ]; then y_names="$y_names $1"; else y_extent='cut'; fi
}

surroundings_tell() { # WORDS: the line of the list
  say "$1 $y_extent${y_names:- -}"
}

surroundings_show_cgroups() { # at the top, and slices in a slice. Of v1 those that a kubelet finds in each of its hierarchies
  local base path other
  base=$R/sys/fs/cgroup
  [ -e "$base/cgroup.controllers" ] || base=$base/systemd
  [ -d "$base" ] || return 0
  surroundings_begin
  set +f
  set -- "$base"/* "$base"/*.slice/*.slice
  set -f
  for path in "$@"; do
    if [ ! -d "$path" ] || [ -L "$path" ]; then continue; fi
    path=${path#"$base"}
    case $path in /kubepods*/*) continue ;; esac # of pods
    case $base in
      */systemd) for other in cpu cpuacct cpuset memory pids; do
        [ ! -d "$R/sys/fs/cgroup/$other" ] || [ -d "$R/sys/fs/cgroup/$other$path" ] || continue 2
      done ;;
    esac
    surroundings_add "$path"
  done
  surroundings_tell cgroups
}

surroundings_show_sockets() { # that a process listens at; kernel settings that a kubelet may require; and from the kubelet's file the folder of its
  # static pods, into `y_static`: one program for all. A shell cannot read a kernel setting: behind its first byte the kernel shows none
  local lines line word path
  surroundings_begin
  y_static=''
  set --
  for path in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    set -- "$@" "$R/proc/sys/$path"
  done
  lines=$(grep -H -s -e '^[ "]*staticPodPath"* *:' -e ' 00010000 0001 01 *[0-9]* /[^ ]*\.sock$' -e '^-*[0-9][0-9]*$' "$R$n_config" "$R/proc/net/unix" "$@")
  IFS=$NL
  for line in $lines; do
    unset IFS
    case $line in
      "$R/proc/sys/"*:*)
        path=${line#"$R/proc/sys/"}
        word=${path#*:} path=${path%%:*}
        ! is_number "${word#-}" || say "sysctl $path $word"
        ;;
      "$R/proc/net/unix:"*/*)
        word=${line##* } # a short line
        [ ! -S "$R$word" ] || surroundings_add "$word" # else it is one of another mount namespace
        ;;
      "$R$n_config:"*staticPodPath*:*)
        word=${line#*staticPodPath*:}
        word=${word%%#*}
        # shellcheck disable=SC2086 # split into words
        set -- $word
        word=${1-} word=${word%,} word=${word#[\"\']} word=${word%[\"\']}
        y_static=$word
        ;;
    esac
  done
  unset IFS
  [ ! -r "$R/proc/net/unix" ] || surroundings_tell sockets
}

surroundings_show_manifests() { # the files of static pods, wherever this kubelet or a usual one has them
  local folder seen path
  seen=' '
  for folder in "${n_manifests%/}" "${y_static%/}" /etc/kubernetes/manifests /var/lib/rancher/rke2/agent/pod-manifests /var/lib/rancher/k3s/agent/pod-manifests; do
    case $folder in [!/]* | '' | *[!A-Za-z0-9_./:@%+=,-]*) continue ;; esac
    case $seen in *" $folder "*) continue ;; esac
    seen="$seen$folder "
    if [ ! -d "$R$folder" ]; then
      case $folder in /var/lib/rancher/*) continue ;; *) [ ! -e "$R$folder" ] || continue ;; esac
    fi
    surroundings_begin
    set +f
    set -- "$R$folder"/*
    set -f
    for path in "$@"; do
      [ ! -f "$path" ] || surroundings_add "${path##*/}"
    done
    surroundings_tell "manifests $folder"
  done
}

surroundings_show_devices() { # of NVIDIA's driver, also of one in a container
  local path
  [ -d "$R/dev" ] || return 0
  surroundings_begin
  set +f
  set -- "$R"/dev/nvidia* "$R"/run/nvidia/driver/dev/nvidia* "$R"/proc/driver/nvidia/gpus/*
  set -f
  for path in "$@"; do
    [ ! -e "$path" ] || surroundings_add "${path#"$R"}"
  done
  surroundings_tell devices
}

surroundings_show_swaps() { # in use
  local device kind size used
  [ -r "$R/proc/swaps" ] || return 0
  surroundings_begin
  while read -r device kind size used _; do
    if ! is_number "$size" || ! is_number "$used"; then continue; fi # the head of the table
    case $device in *[!A-Za-z0-9_./:@%+=,-]*) device=other ;; esac
    case $kind in *[!a-z]*) kind=other ;; esac
    surroundings_add "$device:$kind:$size:$used"
  done <"$R/proc/swaps"
  surroundings_tell swaps
}

surroundings_show_inhibit_delay() { # of logind, as it is in force. It is not started for this
  local answer
  [ -L "$R/run/systemd/units/invocation:systemd-logind.service" ] && command -v busctl >/dev/null || return 0
  answer=$(lastly 5 busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager InhibitDelayMaxUSec 2>/dev/null)
  case $answer in 't '*) ! is_number "${answer#t }" || say "inhibit-delay ${answer#t }" ;; esac
}

surroundings_show_processes() { # in the control groups of the runtimes' units: how many of each name
  local served group line base file pid name counts count others
  for served in $m_services; do
    [ "${served#*:}" != 0 ] || continue
    processes_find_block "${served%:*}"
    group=''
    IFS=$NL
    for line in $u_block; do case $line in ControlGroup=/*) group=${line#*=} ;; esac done
    unset IFS
    base=$R/sys/fs/cgroup
    [ -r "$base$group/cgroup.procs" ] || base=$base/systemd
    if [ -z "$group" ] || [ ! -r "$base$group/cgroup.procs" ]; then continue; fi
    surroundings_begin
    set +f
    set -- "$base$group"/cgroup.procs "$base$group"/*/cgroup.procs
    set -f
    counts=' ' count=0
    for file in "$@"; do
      [ -r "$file" ] || continue
      while read -r pid; do
        count=$((count + 1))
        [ "$count" -le 2000 ] || { y_extent='cut' && break 2; }
        read -r name 2>/dev/null <"$R/proc/$pid/comm" || continue # it has ended
        case $name in '' | *[!A-Za-z0-9_./@%+=,-]*) name=other ;; esac
        case $counts in
          *" $name:"*)
            others=${counts#*" $name:"}
            counts="${counts%%" $name:"*} $name:$((${others%% *} + 1)) ${others#* }"
            ;;
          *) counts="$counts$name:1 " ;;
        esac
      done <"$file"
    done
    for name in $counts; do surroundings_add "$name"; done
    surroundings_tell "processes ${served%:*}"
  done
}

surroundings_show_room() { # of the state's file system, of the kubelet's root and of what the runtimes keep images in: one program
  local folder served process data path of line seen kind
  folder=$S
  until [ -d "$folder/" ]; do folder=${folder%/*}; done
  of="state:$folder" seen=' '
  set -- "$folder/"
  for served in "kubelet:$n_root" $m_services; do
    process=${served#*:} data=''
    case $served in
      kubelet:*) data=$process ;;
      *:0) ;;
      *) runtimes_find_root "${served%:*}" ;;
    esac
    case $data in [!/]* | '' | *[!A-Za-z0-9_./:@%+=,-]*) continue ;; esac
    case $seen in *" $data "*) continue ;; esac
    [ -d "$R$data/" ] || continue
    seen="$seen$data "
    of="$of ${served%%:*}:$R$data"
    set -- "$@" "$R$data/"
  done
  # kind, size of a block, blocks, those free for all users, inodes, free ones
  IFS=$NL
  for line in $(unset IFS && stat -f -c '%T %S %b %a %c %d %n' -- "$@" 2>/dev/null); do
    unset IFS
    path=${line#* /} kind=${line%% *}
    path=/${path%/}
    # shellcheck disable=SC2086 # split into words
    set -- ${line%% /*}
    while [ "$#" -gt 5 ]; do shift; done # a kind without a name has two words
    for served in "$@"; do is_number "$served" || continue 2; done
    for served in $of; do
      [ "${served#*:}" = "$path" ] || continue
      case $served in
        state:*)
          say "fact state-dir-fs $kind"
          say "fact room-kib $(($3 * ($1 / 512) / 2))"
          ;;
        *) say "room ${served%%:*} ${path#"$R"} $kind $(($2 * ($1 / 512) / 2)) $(($3 * ($1 / 512) / 2)) $4 $5" ;;
      esac
    done
  done
  unset IFS
}
