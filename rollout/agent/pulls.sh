pulls_read_journal() { # of the running processes, by the journal's own fields: how often the kubelet warned that it ignores a part of its
  # configuration, into `l_lenient` (empty if not a line of it can be read); the pulls under way, as NAME#REQUEST, into `q_names`. A pull
  # ends with the kubelet that requested it: lines since its start count, by a clock that never steps
  local line sources main_line l_ignored l_loaded q_doubted q_begun served teller lines text
  l_lenient='' q_names='' q_readable=0 sources='' q_since=999999999999 q_begun=999999999999 main_line='^$' l_ignored=0 l_loaded=0 q_doubted=0
  [ "$m_pid" = 0 ] || ! is_number "$m_started" || { q_since=$((m_since / 1000000)) && q_begun=$((m_started / 1000000)); }
  if [ "$m_pid" != 0 ] && { [ "$verb" != apply ] || pulls_are_kubelets; }; then # an apply counts the warnings of the process to come
    sources="_PID=$m_pid"
    processes_is_thrown_away "$m_pid" || main_line="^[^]]*] [^ ]* [^ ]*\\[$m_pid]: "
  fi
  case $verb in status | verify) ;; *) for served in $m_services; do [ "${served#*:}" = 0 ] || sources="$sources _PID=${served#*:}"; done ;; esac # gates and drift need no pulls
  [ -n "$sources" ] || return 0
  # `!read` marks the first line of the kubelet itself, whatever it contains
  lines=$(pulls_ask_journal |
    sed -n -e '/^!unreadable$/{p;q;}' -e "/$main_line/{x;/^$/{s/^/!/;x;s/^/!read/p;s/^!read//;x;};x;}" -e '/lenient decoding/b cut' \
      -e '/Kubelet version/b cut' -e '/] Version: v/b cut' -e '/PullImage/b say' -e '/ulling image/b say' -e '/Pulled image: /b say' \
      -e '/&Container{/b say' -e '/probe for /b say' -e '/Event(v1.ObjectReference{/b say' -e '/blob data]/b say' -e d \
      -e ': cut' -e 's/^\(.\{400\}\).*/\1/' -e ': say' -e p) || return 0
  case $lines in *!unreadable) return ;; esac
  case $m_services in *' crio.service:'[1-9]*) lines=$(printf '%s\n' "$lines" | sort -s -t '[' -k 2n) || return 0 ;; esac
  q_readable=1
  IFS=$NL
  for line in $lines; do
    unset IFS
    q_request=''
    processes_logged_at "${line#'!read'}" || continue
    [ "$l_moment" -ge "$q_since" ] || continue
    teller=${line%%']: '*}
    text=${line#"$teller]: "}
    processes_take_apart "$text"
    case $teller in
      '!read'*)
        l_lenient=0
        [ "$l_moment" -le $((q_begun + 1)) ] || q_doubted=$((l_moment + 5)) # what came before it is gone
        ;;
      *"[$m_pid")
        # its first lines; of a long log they may be gone
        [ -z "$l_lenient" ] || [ "$l_moment" -gt $((q_begun + 60)) ] || processes_count_notice "$text"
        pulls_follow_kubelet
        ;;
      *) pulls_follow ;;
    esac
  done
  unset IFS
  [ -z "$l_lenient" ] || l_lenient=$l_ignored
}

pulls_are_kubelets() { # a line of the kubelet, too, shows that a pull begins or ends
  case $m_services in
    *' crio.service:'[1-9]*) ;;
    *' cri-docker.service:'[1-9]*) return 1 ;;
    *' docker.service:'[1-9]*) ;;
    *) return 1 ;;
  esac
}

pulls_ask_journal() { # for each of `sources` apart: the lines of the kubelet, some with texts of pods, must not displace those of a runtime
  local matches
  for matches in $sources; do
    bounded 8 journalctl -q -b --no-pager -o short-monotonic -n 8000 _UID=0 "$matches" 2>/dev/null || { echo '!unreadable' && return; }
  done
}

pulls_follow() { # `l_message`: a pull that begins or ends, of containerd 1.5 to 2.3, CRI-O or cri-dockerd
  local rest
  [ -z "$l_source" ] || return 0
  case $l_message in
    'PullImage \"'*)
      q_image=${l_message#'PullImage \"'}
      rest=${q_image#*'\"'} q_image=${q_image%%'\"'*}
      case $rest in '"'*) pulls_began ;; ' returns image reference '* | ' failed'*) pulls_ended "$q_image#" ;; esac
      ;;
    'Pulling image: '*' id='*) # CRI-O; its requests have numbers
      q_image=${l_message#'Pulling image: '} q_request=${l_message##*' id='}
      q_image=${q_image%%'"'*} q_request=${q_request%% *}
      pulls_began
      ;;
    'Pulled image: '*' id='*)
      q_request=${l_message##*' id='}
      pulls_ended "*#${q_request%% *}"
      ;;
    'Pulling image '* | 'Stop pulling image '* | 'Cancel pulling image '*) pulls_follow_docker ;;
  esac
}

pulls_follow_kubelet() { # `text` of a kubelet, taken apart: a call that failed, which CRI-O does not log; dockershim's progress, every 10 s if it runs with
  # -v=2. Some messages print texts of pods with their line ends (a container up to 1.30, a probe up to 1.20), and no field of the journal
  # tells such a line from one of the kubelet: for 5 s behind the beginning of a message like these, no line ends a pull
  case $text in *'&Container{'* | *'probe for '* | *'Event(v1.ObjectReference{'* | *'blob data]'*) q_doubted=$((l_moment + 5)) ;; esac
  [ -z "$l_writer" ] || [ "$l_writer" = "$m_pid" ] || return 0
  case $m_services in
    *' crio.service:'[1-9]*)
      [ "$l_moment" -gt "$q_doubted" ] || return 0
      case $l_source/$l_message in
        remote_image.go:*/'PullImage "'*'" from image service failed: '*) q_image=${l_message#'PullImage "'} ;;
        remote_image.go:*/'PullImage from image service failed"'*' image="'* | log.go:*/'PullImage from image service failed"'*' image="'*)
          q_image=${l_message##*' image="'}
          ;;
        *) return 0 ;;
      esac
      pulls_ended "${q_image%%'"'*}#*"
      ;;
    *' cri-docker.service:'[1-9]*) ;;
    *' docker.service:'[1-9]*)
      case $l_source/$l_message in
        kube_docker_client.go:*/'Pulling image'*) pulls_follow_docker ;;
        kube_docker_client.go:*/'Stop pulling image'* | kube_docker_client.go:*/'Cancel pulling image'*)
          [ "$l_moment" -le "$q_doubted" ] || pulls_follow_docker
          ;;
      esac
      ;;
  esac
}

pulls_follow_docker() { # `l_message` of dockershim, old or new, or of cri-dockerd
  q_image=${l_message#*'ulling image'}
  case $q_image in
    ' "'*) q_image=${q_image#' "'} && q_image=${q_image%%'"'*} ;;
    *' image="'*) q_image=${q_image#*' image="'} && q_image=${q_image%%'"'*} ;;
    *) q_image=${q_image#' '} && q_image=${q_image%%': '*} && q_image=${q_image%%' because '*} ;;
  esac
  pulls_ended "$q_image#"
  case $l_message in 'Pulling image '* | 'Pulling image" '*) pulls_began ;; esac
}

pulls_began() { # `q_image`, `q_request`
  case $q_image#$q_request in '#'* | *[!A-Za-z0-9_./:@%+=,#-]*) q_image='(unnamed)' ;; esac
  q_names="$q_names $q_image#$q_request"
}

pulls_ended() { # PATTERN: remove the first match from `q_names`
  local others gone entry
  others='' gone=0
  for entry in $q_names; do
    # shellcheck disable=SC2254 # a pattern
    case $gone$entry in 0$1) gone=1 ;; *) others="$others $entry" ;; esac
  done
  q_names=$others
}

pulls_show() { # the pulls under way, or `-`; no line where that cannot be known. `q_count`: 0 if there are certainly none
  local known served process count entry names
  known=0 q_count=1
  for served in $m_services; do
    process=${served#*:}
    [ "$process" != 0 ] || continue
    runtimes_find_layers "${served%:*}" || return 0
    known=1
  done
  case $unit in k3s* | rke2-*)
    processes_find_home "$m_pid"
    [ -n "$p_home" ] && runtimes_find_embedded || return 0
    known=1
    ;;
  esac
  [ "$known" = 1 ] || return 0
  names='' count=0
  for entry in $q_names; do
    count=$((count + 1))
    [ "$count" -gt 20 ] || names="$names ${entry%%#*}"
  done
  q_count=$count
  say "pulls${names:- -}"
}

pulls_unnamed() { # something is pulled; without a name from elsewhere it is unnamed
  [ -n "$q_names" ] || q_names=' (unnamed)#'
}
