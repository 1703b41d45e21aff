# ---------------------------------------------------------------------------------------------- words, time, children

say() { # kept for `tell`: each write is a packet of its own, for the node and for the controller
  spoken="$spoken$*$NL"
  case $1 in "refused "* | "failed "*) w_outcome=$1 ;; esac
}

tell() { # print what was said
  printf %s "$spoken" 2>/dev/null || :
  spoken=''
}

finish() {
  say "end $verb"
  tell
  conversation_log "$t_order: ${w_outcome-${w_state-done}}"
  exit 0
}

refuse() { # REFERENCE TEXT: its last line, because a tool may report several, and each other one would be a line of the answer
  say "refused $1 ${2##*"$NL"}"
  finish
}

clock() { # now: milliseconds since boot
  local uptime
  IFS=' ' read -r uptime _ <"$R/proc/uptime"
  case $uptime in *.??) ;; *) uptime=${uptime%%.*}.00 ;; esac
  now=$((${uptime%.*} * 1000 + 1${uptime#*.}0 - 1000))
}

boot_id() { [ -n "$boot" ] || read -r boot <"$R/proc/sys/kernel/random/boot_id"; } # into `boot`

allow() { # SECONDS: this verb must have ended by then
  clock
  until=$((now + $1 * 1000))
}

share() { # SECONDS: into `w_seconds`: at most this long and at most the time left, but at least one second
  clock
  w_seconds=$(((until - now) / 1000))
  [ "$w_seconds" -lt "$1" ] || w_seconds=$1
  [ "$w_seconds" -ge 1 ] || w_seconds=1
}

bounded() { # SECONDS COMMAND…: its status; 124 if its time was over (`timeout` of uutils 0.2.2 and older returns 125); 125 to 127 if it was not started
  local begun status
  share "$1"
  shift
  begun=$now status=126
  command eval 'timeout -k 1 "$w_seconds" "$@"; status=$?' # without `command`, a fork that fails would end dash
  case $status in 125 | 137) clock && { [ "$now" -lt $((begun + w_seconds * 1000)) ] || status=124; } ;; esac
  return "$status"
}

tell_end() { # STATUS: of `bounded`, into `w_ended`, for people
  case $1 in
    124) w_ended='has not ended in time' ;;
    125 | 126 | 127) w_ended='could not be started' ;;
    12? | 1[3-9]? | 2??) w_ended='was killed' ;;
    *) w_ended="failed with status $1" ;;
  esac
}

lastly() { # SECONDS COMMAND…: like bounded, but the subshell that calls it becomes the command: no process more
  share "$1"
  shift
  exec timeout -k 1 "$w_seconds" "$@"
}

let_go() { # SECONDS COMMAND…: like bounded, but returns even if the kernel does not end the command: its late effects do no harm
  share "$1"
  shift
  timeout -k 1 $((w_seconds + 2)) timeout -k 1 "$w_seconds" "$@"
}

nap() { doze 190; }

doze() { # MILLISECONDS: so long and a tick of the clock, but less than a second
  local part rested spun
  part=$((1000 + ($1 < 980 ? $1 + 10 : 990))) rested=''
  command eval 'sleep "0.${part#1}" 2>/dev/null || sleep 1; rested=1' 2>/dev/null # without `command`, a fork that fails would end dash
  [ -n "$rested" ] || { spun=0 && while [ "$spun" -lt 1000 ]; do clock && spun=$((spun + 1)); done; } # some hundredths of a second
}

drop() { # PATH…: remove what is there
  local doomed each_one
  doomed=''
  for each_one in "$@"; do
    if [ -e "$each_one" ] || [ -L "$each_one" ]; then doomed="$doomed $each_one"; fi
  done
  # shellcheck disable=SC2086 # a list of paths
  [ -z "$doomed" ] || rm -f $doomed
}

milliseconds() { # SPAN…, as systemd prints it ("1min 30s", "100ms"): into `w_span`, rounded up
  local part figure
  w_span=0
  for part in "$@"; do
    figure=${part%%[!0-9]*}
    case $part in
      *us) w_span=$((w_span + figure / 1000 + 1)) ;;
      *ms) w_span=$((w_span + figure + 1)) ;;
      *.*s) w_span=$((w_span + figure * 1000 + 1000)) ;;
      *min) w_span=$((w_span + figure * 60000)) ;;
      *[0-9]s) w_span=$((w_span + figure * 1000)) ;;
      *[0-9]) w_span=$((w_span + figure / 1000)) ;;
      *) w_span=$((w_span + 86400000)) ;; # hours, "infinity": longer than any guard
    esac
  done
}

is_number() { case $1 in '' | *[!0-9]* | ????????????????*) return 1 ;; esac; }
is_name() { case $1 in '' | [.-]* | *[!A-Za-z0-9_.@-]*) return 1 ;; esac; }

need() { # NAME…: these arguments must be present and well formed
  local name
  for name in "$@"; do
    case $name in
      tx) case $tx in *@*) refuse bad-argument tx ;; *) is_name "$tx" || refuse bad-argument tx ;; esac ;;
      run) is_name "$run" || refuse bad-argument run ;;
      counter) is_number "$counter" || refuse bad-argument counter ;;
    esac
  done
}

each() { # KIND FUNCTION: call FUNCTION with the words of each payload line of that kind, until it fails
  local wanted callback line
  wanted=$1 callback=$2
  IFS=$NL
  # shellcheck disable=SC2086 # split into lines
  set -- $PAYLOAD
  unset IFS
  for line in "$@"; do
    case $line in "$wanted "*) ;; *) continue ;; esac
    # shellcheck disable=SC2086 # split into words
    $callback ${line#* } || return 1
  done
}

contents() { # FILE: its lines into `w_contents`; none if it is not there. For short files: a shell reads a byte at a time
  local line
  w_contents=''
  [ ! -f "$1" ] || while IFS= read -r line; do w_contents=$w_contents$line$NL; done 2>/dev/null <"$1"
}

find_program() { # NAME: its path into `w_program`; false if there is none. `command -v` in a substitution costs a process
  local folder
  case $1 in */*) w_program=$1 && [ -f "$1" ] && [ -x "$1" ] && return ;; esac
  IFS=:
  for folder in $PATH; do
    unset IFS
    w_program=$folder/$1
    if [ -f "$w_program" ] && [ -x "$w_program" ]; then return 0; fi
  done
  unset IFS
  w_program=''
  return 1
}

hexadecimal() { # NUMBER below 65536: four digits, into `w_digits`
  local rest
  rest=$1 w_digits=''
  while [ "${#w_digits}" -lt 4 ]; do
    set -- 0 1 2 3 4 5 6 7 8 9 A B C D E F
    shift $((rest % 16))
    w_digits=$1$w_digits rest=$((rest / 16))
  done
}

born() { # PID: its start time, which with the number identifies a process; also its parent, its state and its name
  local stat
  p_born='' p_parent='' p_state='' p_name=''
  read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
  p_name=${stat%)*} # its name may hold anything
  # shellcheck disable=SC2086 # split into fields
  set -- ${stat#"$p_name) "}
  p_name=${p_name#*(}
  p_state=$1 p_parent=$2 p_born=${20}
}

escape() { # BASE64: its bytes into `w_escaped`, for printf: without a program
  local rest bits held sixth before byte
  rest=${1%%=*} w_escaped='' bits=0 held=0
  while [ -n "$rest" ]; do
    sixth=${rest%"${rest#?}"} rest=${rest#?}
    before=${BASE64%%"$sixth"*}
    held=$((held << 6 | ${#before})) bits=$((bits + 6))
    [ "$bits" -ge 8 ] || continue
    bits=$((bits - 8))
    byte=$((held >> bits & 255)) held=$((held & ((1 << bits) - 1)))
    w_escaped="$w_escaped\\$((byte >> 6))$((byte >> 3 & 7))$((byte & 7))"
  done
}
