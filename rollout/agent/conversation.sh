# --------------------------------------------------------------------------------------------------- the conversation

# The controller starts one shell on a node as root, and sends it this program once. Then it sends each verb as a frame:
# a line `NONCE SIZE VERB [KEY=VALUE …]` and SIZE bytes of payload. Each verb runs in a process of its own: nothing of one
# verb reaches the next, and a guard that kills a verb does not end the conversation.

# The node's journal has a line for each verb: sudo's log shows only the start of the conversation. One process writes them
# all, from descriptor 3 of this shell. A verb does not wait for a journal that hangs, but the end of a conversation does.

conversation_serve() { # [FRAME]: this frame, then those of standard input, until it ends or is no frame. The status is that of the last verb
  if command -v logger >/dev/null; then
    exec 4>&1
    t_status=$({ { conversation_frames "${1-}" 3>&1 >&4 4>&- 5>&- && echo "$t_status" >&5; } | logger -t rollout >/dev/null 2>&1 4>&- 5>&-; } 5>&1)
  else
    conversation_frames "${1-}" 3>/dev/null
  fi
  return "${t_status:-1}"
}

conversation_frames() { # FRAME or nothing; into `t_status`: the status of the last verb
  local t_shell t_nonce t_size t_order t_first="$1"
  t_status=0
  read -r t_shell _ </proc/self/stat
  born "$t_shell" && t_born=$p_born
  while conversation_next && is_name "$t_nonce" && is_number "$t_size"; do
    conversation_take "$t_size" || { say "refused torn-program the request arrived incomplete" && tell && t_status=1 && return; }
    spoken="begin $t_nonce$NL"
    conversation_own </dev/null 3>&-
    # shellcheck disable=SC2086 # split into words
    [ -z "$t_order" ] || (main $t_order) </dev/null 3>&- # no child of a verb may hold the end of the conversation up
    t_status=$? spoken=''
    printf 'over %s %s\n' "$t_nonce" "$t_status"
    [ "$t_status" -eq 0 ] || conversation_log "${t_order%% *}: ended with status $t_status"
  done
}

conversation_next() { # into `t_nonce`, `t_size` and `t_order`: the frame of the command line, which has no payload, then those of standard input
  if [ -z "$t_first" ]; then
    IFS=' ' read -r t_nonce t_size t_order
    return
  fi
  t_nonce=${t_first%% *} t_size=0 t_order=${t_first#* 0 } t_first=''
}

conversation_own() { # before the first verb that writes: only root could change what is checked here, so one look serves the conversation
  [ "$t_owned" = 0 ] || return 0
  case $t_order in
    *' claim=1'*) ;;
    '' | snapshot* | verify* | status*) return 0 ;;
  esac
  ! lock_is_ours || t_owned=1
}

conversation_take() { # SIZE: so many bytes of standard input into PAYLOAD; false if there are fewer
  PAYLOAD=''
  [ "$1" -gt 0 ] || return 0
  PAYLOAD=$(dd bs="$1" count=1 iflag=fullblock 2>/dev/null && echo .) # the shell itself would read ahead
  PAYLOAD=${PAYLOAD%.}
  [ "${#PAYLOAD}" -eq "$1" ]
}

conversation_log() { # TEXT: to the node's journal. A verb may outlive its conversation, and the number may be another process's by then
  ! born "${t_shell-0}" || [ "$p_born" != "${t_born-}" ] || { printf '%s\n' "$1" >>"/proc/$t_shell/fd/3"; } 2>/dev/null || :
}
