# ------------------------------------------------------------------------------------------ the log before the revert

last_log_tell() { # SINCE, in milliseconds since boot. After a revert that restarted the units: how the process with the new files ended,
  # and its last lines in the journal. The node has its old files by now, and no check waits for this
  local logged name said count line ended begun
  clock
  [ -n "${h_given_at-}" ] && [ $((now + 6000)) -lt "$until" ] || return 0
  logged=$unit
  for name in $h_concerned; do
    case " ${v_because-} " in *" $name: "* | *" restart $name "*) logged=$name ;; esac
  done
  said='' count=0 ended='' begun=0
  IFS=$NL
  for line in $(lastly 3 journalctl -q -b --no-pager -o short-monotonic -n 400 -u "$logged" 2>/dev/null); do
    ! last_log_is_between "$1" "$h_given_at" "$line" || last_log_keep_line "${line#*] }"
  done
  unset IFS
  [ -z "$ended" ] || say "exited $ended"
  [ -z "$said" ] || say "log $(printf %s "$said" | tr -c '\n -~' ' ' | base64 | tr -d '\n')"
}

last_log_tell_guards() { # of the loaded transaction, if its guard reverted it. No answer could have the log when that happened
  local h_given_at h_concerned
  case $r_state,$r_cause,$r_boot," $r_units " in reverted,guard,"$boot",*" $unit "*) ;; *) return ;; esac
  processes_look "$unit" && is_number "$u_started" || return 0
  h_given_at=$((u_started / 1000)) h_concerned=''
  [ "$h_given_at" -le "$r_limit" ] || return 0 # restarted later, by others: when the guard did is not recorded
  last_log_tell $((r_deadline - r_guard * 1000)) # since the change
}

last_log_is_between() { # SINCE END LINE: the line begins with its time since boot, `[ SECONDS.MICROSECONDS] `
  local fraction
  l_moment=${3#[}
  l_moment=${l_moment%%]*}
  l_moment=${l_moment##* }
  fraction=${l_moment#*.} l_moment=${l_moment%%.*}
  fraction=${fraction%"${fraction#???}"}
  is_number "$l_moment" && is_number "$fraction" || return 1
  l_moment=$((l_moment * 1000 + 1$fraction - 1000))
  [ "$l_moment" -ge "$1" ] && [ "$l_moment" -le "$2" ]
}

last_log_keep_line() { # HOST PROGRAM[PID]: TEXT: at most the last 20 lines and 4,000 bytes; and the last exit that systemd reports
  local text
  text=${1#* }
  [ "${#text}" -le 1000 ] || text=$(printf %.1000s "$text")
  case $text in
    'systemd['*': Main process exited, code='*) ended=${text##*' exited, '} ;;
    'systemd['*']: Started '*) [ "$begun" = 1 ] || { ended='' && begun=1; } ;; # until here it is the process that this change has stopped
  esac
  said=$said$text$NL count=$((count + 1))
  while [ "$count" -gt 20 ] || [ "${#said}" -gt 4000 ]; do
    said=${said#*"$NL"} count=$((count - 1))
  done
}
