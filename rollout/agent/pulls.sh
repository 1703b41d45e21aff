read_journal() { # of the running processes, by the journal's own fields: how often the kubelet warned that it ignores a part of its
  # configuration, into `lenient` (empty if not a line of it can be read); the pulls under way, as NAME#REQUEST, into `pulling`. A pull
  # ends with the kubelet that requested it: lines since its start count, by a clock that never steps
  lenient='' pulling='' readable=0 sources='' since=999999999999 main_line='^$' ignored=0 loaded=0 doubted=0
  [ "$main_pid" = 0 ] || ! is_number "$main_started" || since=$((main_started / 1000000))
  if [ "$main_pid" != 0 ]; then
    sources="_PID=$main_pid"
    is_thrown_away "$main_pid" || main_line="^[^]]*] [^ ]* [^ ]*\\[$main_pid]: "
  fi
  for served in $services; do [ "${served#*:}" = 0 ] || sources="$sources _PID=${served#*:}"; done
  [ -n "$sources" ] || return 0
  # `!read` marks the first line of the kubelet itself, whatever it contains
  lines=$(ask_journal |
    sed -n -e '/^!unreadable$/{p;q;}' -e "/$main_line/{x;/^$/{s/^/!/;x;s/^/!read/p;s/^!read//;x;};x;}" -e '/lenient decoding/b cut' \
      -e '/Kubelet version/b cut' -e '/] Version: v/b cut' -e '/PullImage/b say' -e '/ulling image/b say' -e '/Pulled image: /b say' \
      -e '/&Container{/b say' -e '/probe for /b say' -e '/Event(v1.ObjectReference{/b say' -e '/blob data]/b say' -e d \
      -e ': cut' -e 's/^\(.\{400\}\).*/\1/' -e ': say' -e p) || return 0
  case $lines in *!unreadable) return ;; esac
  case $services in *' crio.service:'[1-9]*) lines=$(printf '%s\n' "$lines" | sort -s -t '[' -k 2n) || return 0 ;; esac
  readable=1
  IFS=$NL
  for line in $lines; do
    unset IFS
    request=''
    logged_at "${line#'!read'}" || continue
    [ "$moment" -ge "$since" ] || continue
    teller=${line%%']: '*}
    text=${line#"$teller]: "}
    take_apart "$text"
    case $teller in
      '!read'*)
        lenient=0
        [ "$moment" -le $((since + 1)) ] || doubted=$((moment + 5)) # what came before it is gone
        ;;
      *"[$main_pid")
        # its first lines; of a long log they may be gone
        [ -z "$lenient" ] || [ "$moment" -gt $((since + 60)) ] || count_notice "$text"
        follow_kubelet
        ;;
      *) follow ;;
    esac
  done
  unset IFS
  [ -z "$lenient" ] || lenient=$ignored
}

ask_journal() { # for each of `sources` apart: the lines of the kubelet, some with texts of pods, must not displace those of a runtime
  for matches in $sources; do
    bounded 8 journalctl -q -b --no-pager -o short-monotonic -n 8000 _UID=0 "$matches" 2>/dev/null || { echo '!unreadable' && return; }
  done
}

follow() { # `message`: a pull that begins or ends, of containerd 1.5 to 2.3, CRI-O or cri-dockerd
  [ -z "$source" ] || return 0
  case $message in
    'PullImage \"'*)
      image=${message#'PullImage \"'}
      rest=${image#*'\"'} image=${image%%'\"'*}
      case $rest in '"'*) began ;; ' returns image reference '* | ' failed'*) ended "$image#" ;; esac
      ;;
    'Pulling image: '*' id='*) # CRI-O; its requests have numbers
      image=${message#'Pulling image: '} request=${message##*' id='}
      image=${image%%'"'*} request=${request%% *}
      began
      ;;
    'Pulled image: '*' id='*)
      request=${message##*' id='}
      ended "*#${request%% *}"
      ;;
    'Pulling image '* | 'Stop pulling image '* | 'Cancel pulling image '*) follow_docker ;;
  esac
}

follow_kubelet() { # `text` of a kubelet, taken apart: a call that failed, which CRI-O does not log; dockershim's progress, every 10 s if it runs with
  # -v=2. Some messages print texts of pods with their line ends (a container up to 1.30, a probe up to 1.20), and no field of the journal
  # tells such a line from one of the kubelet: for 5 s behind the beginning of a message like these, no line ends a pull
  case $text in *'&Container{'* | *'probe for '* | *'Event(v1.ObjectReference{'* | *'blob data]'*) doubted=$((moment + 5)) ;; esac
  [ -z "$writer" ] || [ "$writer" = "$main_pid" ] || return 0
  case $services in
    *' crio.service:'[1-9]*)
      [ "$moment" -gt "$doubted" ] || return 0
      case $source/$message in
        remote_image.go:*/'PullImage "'*'" from image service failed: '*) image=${message#'PullImage "'} ;;
        remote_image.go:*/'PullImage from image service failed"'*' image="'* | log.go:*/'PullImage from image service failed"'*' image="'*)
          image=${message##*' image="'}
          ;;
        *) return 0 ;;
      esac
      ended "${image%%'"'*}#*"
      ;;
    *' cri-docker.service:'[1-9]*) ;;
    *' docker.service:'[1-9]*)
      case $source/$message in
        kube_docker_client.go:*/'Pulling image'*) follow_docker ;;
        kube_docker_client.go:*/'Stop pulling image'* | kube_docker_client.go:*/'Cancel pulling image'*)
          [ "$moment" -le "$doubted" ] || follow_docker
          ;;
      esac
      ;;
  esac
}

follow_docker() { # `message` of dockershim, old or new, or of cri-dockerd
  image=${message#*'ulling image'}
  case $image in
    ' "'*) image=${image#' "'} && image=${image%%'"'*} ;;
    *' image="'*) image=${image#*' image="'} && image=${image%%'"'*} ;;
    *) image=${image#' '} && image=${image%%': '*} && image=${image%%' because '*} ;;
  esac
  ended "$image#"
  case $message in 'Pulling image '* | 'Pulling image" '*) began ;; esac
}

began() { # `image`, `request`
  case $image#$request in '#'* | *[!A-Za-z0-9_./:@%+=,#-]*) image='(unnamed)' ;; esac
  pulling="$pulling $image#$request"
}

ended() { # PATTERN: remove the first match from `pulling`
  others='' gone=0
  for entry in $pulling; do
    # shellcheck disable=SC2254 # a pattern
    case $gone$entry in 0$1) gone=1 ;; *) others="$others $entry" ;; esac
  done
  pulling=$others
}

show_pulls() { # the pulls under way, or `-`; no line where that cannot be known. `pulled`: 0 if there are certainly none
  known=0 pulled=1
  for served in $services; do
    process=${served#*:}
    [ "$process" != 0 ] || continue
    find_layers "${served%:*}" || return 0
    known=1
  done
  [ "$known" = 1 ] || return 0
  names='' count=0
  for entry in $pulling; do
    count=$((count + 1))
    [ "$count" -gt 20 ] || names="$names ${entry%%#*}"
  done
  pulled=$count
  say "pulls${names:- -}"
}

unnamed() { # something is pulled; without a name from elsewhere it is unnamed
  [ -n "$pulling" ] || pulling=' (unnamed)#'
}

mentions() { # PID PATTERN: its command line contains it; needs no process (a shell's read drops the NULs)
  line=''
  read -r line 2>/dev/null <"$R/proc/$1/cmdline"
  # shellcheck disable=SC2254 # a pattern
  case $line in *$2*) ;; *) return 1 ;; esac
}
