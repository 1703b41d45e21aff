# --------------------------------------------------------------------------------------------------- the conversation

# The controller starts one shell on a node as root, and sends it this program once. Then it sends each verb as a frame:
# a line `NONCE SIZE VERB [KEY=VALUE …]` and SIZE bytes of payload. Each verb runs in a process of its own: nothing of one
# verb reaches the next, and a guard that kills a verb does not end the conversation.

serve() { # frames of standard input, until it ends or is no frame. The status is that of the last verb
  result=0
  while IFS=' ' read -r nonce size framed && is_name "$nonce" && is_number "$size"; do
    take "$size" || { say "refused torn-program the request arrived incomplete" && return 1; }
    printf 'begin %s\n' "$nonce"
    # shellcheck disable=SC2086 # split into words
    [ -z "$framed" ] || (main $framed) </dev/null
    result=$?
    printf 'over %s %s\n' "$nonce" "$result"
    [ "$result" -eq 0 ] || log "${framed%% *}: ended with status $result"
  done
  return "$result"
}

take() { # SIZE: so many bytes of standard input into PAYLOAD; false if there are fewer
  PAYLOAD=''
  [ "$1" -gt 0 ] || return 0
  PAYLOAD=$(dd bs="$1" count=1 iflag=fullblock 2>/dev/null && echo .) # the shell itself would read ahead
  PAYLOAD=${PAYLOAD%.}
  [ "${#PAYLOAD}" -eq "$1" ]
}

log() { # TEXT: to the node's journal, where sudo's log shows only the start of the conversation. No verb waits for a journal
  # that hangs; by descriptor 3, a caller that reads all output waits for the line too
  ! command -v logger >/dev/null || logger -t rollout -- "$1" 3>&1 >/dev/null 2>&1 9>&- &
}
