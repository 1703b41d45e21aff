encode() { # FILE: base64 on one line, into `code`
  code=$(base64 -w0 2>/dev/null <"$1") || code=$(base64 <"$1" | tr -d '\n')
}

date_boot() { # into `booted`: the boot by the clock of file times, in milliseconds since 1970. The shell reads both clocks, since a busy node
  # would let a program wait between them. A write dates a pipe. That time is some ticks old at times, so the latest reading counts
  clocks=$(
    echo
    clock
    stat -L -c "$now %.9Y" /proc/self/fd/1 2>/dev/null || echo "$now 0" # then every file counts as changed
  )
  clocks=${clocks##*"$NL"}
  file_time "${clocks#* }"
  moment=$((moment - ${clocks%% *})) booted=${booted:-0}
  [ "$moment" -le "$booted" ] || booted=$moment
}

date_starts() { # into `starts`: UNIT:MILLISECONDS, the start of each unit's process by the clock of file times
  date_boot
  starts=' ' left=$dates
  for served in $begun; do
    began=$((booted + ${served#*:} / 1000)) dated=${left%%"$NL"*} left=${left#*"$NL"}
    # if the clock was set since then, the earlier of both misses no edit
    ! is_number "$dated" || [ "$dated" -eq 0 ] || [ $((dated * 1000 + 3000)) -gt "$began" ] || began=$((dated * 1000))
    starts="$starts${served%:*}:$began "
  done
}

file_time() { # SECONDS.FRACTION since 1970 into `moment`, in milliseconds; 0 for an invalid time
  fraction=${1#*.}000 moment=0
  ! is_number "${1%.*}" || ! is_number "$fraction" || moment=$((${1%.*} * 1000 + 1${fraction%"${fraction#???}"} - 1000))
}

show_stale() { # the files that changed after the start of the process that reads them at its start
  [ -n "$begun" ] || return 0
  dates=$(printf %s "$dates" | date -f - +%s 2>/dev/null)
  memories=$NL present=''
  [ ! -f "$S/touched" ] || memories=$NL$(cat "$S/touched" 2>/dev/null)$NL
  IFS=$NL
  for line in $reads; do [ ! -f "$R${line#* }" ] || present="$present$R${line#* }$NL"; done
  # shellcheck disable=SC2086 # a list of paths
  stats=$(stat -L -c '%i %.9Y %.9Z %n' -- $present 2>/dev/null)
  unset IFS
  for _ in 1 2 3 4 5; do # a change right after a start may be one right before it: the clocks are read again
    find_stale
    [ "$soon" = 1 ] || break
    nap
  done
  [ -n "$stale" ] || return 0
  IFS=$NL
  for line in $stale; do
    unset IFS
    say "stale $line"
  done
  unset IFS
  show_loaded
}

find_stale() { # by one more reading of the clocks: the lines of `stats` into `stale`; `soon` is 1 if a change came within seconds of a start
  date_starts
  stale='' soon=0
  IFS=$NL
  for line in $stats; do
    unset IFS
    path=${line#* * * }
    # shellcheck disable=SC2086 # three words
    is_stale ${line%" $path"} || continue
    stale="$stale$how $since $reader ${path#"$R"}$NL"
    [ "$since" -gt 5 ] || soon=1
  done
  unset IFS
}

show_loaded() { # which confirmed transaction started each running process: the process has read what it wrote
  transactions
  boot_id
  told=' '
  for name in $all_tx; do
    if ! load_known "$name" || [ "$r_state,$r_boot" != "confirmed,$boot" ]; then continue; fi
    for served in $begun; do
      case " $r_units " in *" ${served%:*} "*) ;; *) continue ;; esac
      case $told in *" ${served%:*} "*) continue ;; esac
      [ $((${served#*:} / 1000)) -gt "$r_deadline" ] || { told="$told${served%:*} " && say "fact loaded.${served%:*} $name"; }
    done
  done
}

is_stale() { # INODE MTIME CTIME of `path`; then also `how`, `since` (seconds) and `reader`
  reader=${reads%%" ${path#"$R"}$NL"*}
  reader=${reader##*"$NL"}
  case $starts in *" $reader:"*) began=${starts#*" $reader:"} ;; *) return 1 ;; esac
  began=$((${began%% *} + 50)) # no process reads its files sooner; and clocks tick in steps of some milliseconds
  changed=$3 how=replaced
  case $memories in *"$NL$1 $3 "*) changed=${memories#*"$NL$1 $3 "} && changed=${changed%% *} ;; esac
  file_time "$changed"
  [ "$moment" -ge "$began" ] || return 1
  since=$(((moment - began + 50) / 1000))
  file_time "$2"
  [ "$moment" -lt "$began" ] || how=edited since=$(((moment - began + 50) / 1000))
}

show_files() { # with|without: a line for each path in `list`
  present='' spare=3145728 # bytes of content: an answer has a size limit too
  for path in $list; do [ ! -f "$R$path" ] || [ -L "$R$path" ] || present="$present $R$path"; done
  stats=''
  if [ -n "$present" ]; then # one line each in both, in this order, but for files that were removed meanwhile
    # shellcheck disable=SC2086 # a list of paths
    [ "$digested" = "$present" ] || digest $present # an apply has just done so
    sums=${sums#"$NL"}
    # shellcheck disable=SC2086 # a list of paths
    stats=$(stat -c '%n %a %u:%g %s' -- $present 2>/dev/null)$NL
  fi
  batch='' batched=0
  for path in $list; do show_file "$1" "$path"; done
  show_batch
}

show_batch() { # the content of the files with lines that end with `+` since the last time, in one
  [ -n "$batch" ] || return 0
  # shellcheck disable=SC2086 # a list of paths
  say "content $(cat -- $batch | base64 -w0 2>/dev/null || cat -- $batch | base64 | tr -d '\n')"
  tell # so that it is not copied with each line that follows
  batch='' batched=0
}

show_file() { # with|without PATH
  kind=other sum='' details=''
  [ ! -d "$R$2" ] || kind=directory
  [ ! -f "$R$2" ] || kind=regular
  [ -e "$R$2" ] || kind=absent
  [ ! -L "$R$2" ] || kind=symlink
  line=${sums%%"$NL"*}
  case $line in *"  $R$2") sum=${line%% *} sums=${sums#*"$NL"} ;; esac
  line=${stats%%"$NL"*}
  case $line in "$R$2 "*) details=${line#"$R$2 "} stats=${stats#*"$NL"} ;; esac
  if [ "$kind" != regular ] || [ -z "$details" ] || [ -z "$sum" ]; then
    [ "$kind" != regular ] || kind=other # removed meanwhile, or unreadable
    say "file $kind - - - - $2 -"
    return
  fi
  size=${details##* } content=-
  if [ "$1" = with ] && [ "$size" -le 131072 ] && [ "$size" -gt 0 ] && [ "$size" -le "$spare" ]; then
    [ $((batched + size)) -le 131072 ] || show_batch
    content=+ spare=$((spare - size)) batched=$((batched + size)) batch="$batch $R$2"
  fi
  say "file regular $details $sum $2 $content"
}
