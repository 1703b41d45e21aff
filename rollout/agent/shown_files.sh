shown_files_encode() { # FILE: base64 on one line, into `x_code`
  x_code=$(base64 -w0 2>/dev/null <"$1") || x_code=$(base64 <"$1" | tr -d '\n')
}

shown_files_date_boot() { # into `x_booted`: the boot by the clock of file times, in milliseconds since 1970. The shell reads both clocks, since a busy node
  # would let a program wait between them. A write dates a pipe. That time is some ticks old at times, so the latest reading counts
  local clocks
  clocks=$(
    echo
    clock
    stat -L -c "$now %.9Y" /proc/self/fd/1 2>/dev/null || echo "$now 0" # then every file counts as changed
  )
  clocks=${clocks##*"$NL"}
  shown_files_file_time "${clocks#* }"
  l_moment=$((l_moment - ${clocks%% *})) x_booted=${x_booted:-0}
  [ "$l_moment" -le "$x_booted" ] || x_booted=$l_moment
}

shown_files_date_starts() { # into `x_starts`: UNIT:MILLISECONDS, the start of each unit's process by the clock of file times
  local left served dated began
  shown_files_date_boot
  x_starts=' ' left=$m_dates
  for served in $m_begun; do
    began=$((x_booted + ${served#*:} / 1000)) dated=${left%%"$NL"*} left=${left#*"$NL"}
    # if the clock was set since then, the earlier of both misses no edit
    ! is_number "$dated" || [ "$dated" -eq 0 ] || [ $((dated * 1000 + 3000)) -gt "$began" ] || began=$((dated * 1000))
    x_starts="$x_starts${served%:*}:$began "
  done
}

shown_files_file_time() { # SECONDS.FRACTION since 1970 into `l_moment`, in milliseconds; 0 for an invalid time
  local fraction
  fraction=${1#*.}000 l_moment=0
  ! is_number "${1%.*}" || ! is_number "$fraction" || l_moment=$((${1%.*} * 1000 + 1${fraction%"${fraction#???}"} - 1000))
}

shown_files_show_stale() { # the files that changed after the start of the process that reads them at its start
  local memories x_present line x_stats
  [ -n "$m_begun" ] || return 0
  m_dates=$(
    date -f - +%s 2>/dev/null <<DATES
${m_dates%"$NL"}
DATES
  )
  contents "$S/touched"
  memories=$NL$w_contents x_present=''
  IFS=$NL
  for line in $n_reads; do
    line=$R${line#* }
    case $NL$x_times$x_present in *" $line$NL"* | *"$NL$line$NL"*) ;; *) [ ! -f "$line" ] || x_present="$x_present$line$NL" ;; esac
  done
  x_stats=$x_times
  # shellcheck disable=SC2086 # a list of paths
  [ -z "$x_present" ] || x_stats=$x_stats$(stat -L -c '%i %.9Y %.9Z %n' -- $x_present 2>/dev/null)
  unset IFS
  for _ in 1 2 3 4 5; do # a change right after a start may be one right before it: the clocks are read again
    shown_files_find_stale
    [ "$x_soon" = 1 ] || break
    nap
  done
  [ -n "$x_stale" ] || return 0
  IFS=$NL
  for line in $x_stale; do
    unset IFS
    say "stale $line"
  done
  unset IFS
  shown_files_show_loaded
}

shown_files_find_stale() { # by one more reading of the clocks: the lines of `x_stats` into `x_stale`; `x_soon` is 1 if a change came within seconds of a start
  local line path
  shown_files_date_starts
  x_stale='' x_soon=0
  IFS=$NL
  for line in $x_stats; do
    unset IFS
    path=${line#* * * }
    # shellcheck disable=SC2086 # three words
    shown_files_is_stale ${line%" $path"} || continue
    x_stale="$x_stale$x_how $x_since $x_reader ${path#"$R"}$NL"
    [ "$x_since" -gt 5 ] || x_soon=1
  done
  unset IFS
}

shown_files_show_loaded() { # which confirmed transaction started each running process: the process has read what it wrote
  local told name served
  receipt_list
  boot_id
  told=' '
  for name in $r_all; do
    if ! receipt_load_known "$name" || [ "$r_state,$r_boot" != "confirmed,$boot" ]; then continue; fi
    for served in $m_begun; do
      case " $r_units " in *" ${served%:*} "*) ;; *) continue ;; esac
      case $told in *" ${served%:*} "*) continue ;; esac
      [ $((${served#*:} / 1000)) -gt "$r_deadline" ] || { told="$told${served%:*} " && say "fact loaded.${served%:*} $name"; }
    done
  done
}

shown_files_is_stale() { # INODE MTIME CTIME of `path`; then also `x_how`, `x_since` (seconds) and `x_reader`
  local changed began
  x_reader=${n_reads%%" ${path#"$R"}$NL"*}
  x_reader=${x_reader##*"$NL"}
  case $x_starts in *" $x_reader:"*) began=${x_starts#*" $x_reader:"} ;; *) return 1 ;; esac
  began=$((${began%% *} + 50)) # no process reads its files sooner; and clocks tick in steps of some milliseconds
  changed=$3 x_how=replaced
  case $memories in *"$NL$1 $3 "*) changed=${memories#*"$NL$1 $3 "} && changed=${changed%% *} ;; esac
  shown_files_file_time "$changed"
  [ "$l_moment" -ge "$began" ] || return 1
  x_since=$(((l_moment - began + 50) / 1000))
  shown_files_file_time "$2"
  [ "$l_moment" -lt "$began" ] || x_how=edited x_since=$(((l_moment - began + 50) / 1000))
}

shown_files_show() { # with|without: a line for each path in `m_list`. Into `x_times` the inode and the times of each regular file, and into
  # `x_linked` those with more than one name
  local x_spare path x_stats x_batch x_batched
  x_present='' x_spare=3145728 # bytes of content: an answer has a size limit too
  for path in $m_list; do [ ! -f "$R$path" ] || [ -L "$R$path" ] || x_present="$x_present $R$path"; done
  x_stats='' x_times='' x_linked=''
  if [ -n "$x_present" ]; then # one line each in both, in this order, but for files that were removed meanwhile
    # shellcheck disable=SC2086 # a list of paths
    [ "$f_digested" = "$x_present" ] || files_digest $x_present # an apply has just done so
    f_sums=${f_sums#"$NL"}
    # shellcheck disable=SC2086 # a list of paths; a regular file of which a program showed nothing is told without its digest
    x_stats=$(stat -c '%n %a %u:%g %s %h %i %.9Y %.9Z' -- $x_present 2>/dev/null)$NL
  fi
  x_batch='' x_batched=0
  for path in $m_list; do shown_files_show_one "$1" "$path"; done
  shown_files_show_batch
}

shown_files_show_batch() { # the content of the files with lines that end with `+` since the last time, in one
  [ -n "$x_batch" ] || return 0
  # shellcheck disable=SC2086 # a list of paths
  say "content $(cat -- $x_batch | base64 -w0 2>/dev/null || cat -- $x_batch | base64 | tr -d '\n')"
  tell # so that it is not copied with each line that follows
  x_batch='' x_batched=0
}

shown_files_show_one() { # with|without PATH
  local kind sum details line size content path
  kind=other sum='' details=''
  [ ! -d "$R$2" ] || kind=directory
  [ ! -f "$R$2" ] || kind=regular
  [ -e "$R$2" ] || kind=absent
  [ ! -L "$R$2" ] || kind=symlink
  line=${f_sums%%"$NL"*}
  case $line in *"  $R$2") sum=${line%% *} f_sums=${f_sums#*"$NL"} ;; esac
  line=${x_stats%%"$NL"*}
  case $line in "$R$2 "*) details=${line#"$R$2 "} x_stats=${x_stats#*"$NL"} ;; esac
  if [ "$kind" != regular ] || [ -z "$details" ] || [ -z "$sum" ]; then
    say "file $kind - - - - $2 -"
    return
  fi
  # shellcheck disable=SC2086 # split into words
  set -- "$1" "$2" $details
  details="$3 $4 $5" size=$5 content=-
  [ "$6" = 1 ] || x_linked="$x_linked $2"
  x_times="$x_times$7 $8 $9 $R$2$NL"
  if [ "$1" = with ] && [ "$size" -le 131072 ] && [ "$size" -gt 0 ] && [ "$size" -le "$x_spare" ]; then
    [ $((x_batched + size)) -le 131072 ] || shown_files_show_batch
    content=+ x_spare=$((x_spare - size)) x_batched=$((x_batched + size)) x_batch="$x_batch $R$2"
  fi
  say "file regular $details $sum $2 $content"
}
