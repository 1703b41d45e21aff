sweep() { # remove transactions that died before their receipt; refuses if one is still under way
  transactions
  top=0
  for name in $all_tx; do
    load_known "$name"
    read_place
    [ "$r_seq" -le "$top" ] || top=$r_seq
    [ "$place" -le "$top" ] || top=$place
    case $r_state in armed | reverting) refuse armed-by-another "$name is $r_state" ;; esac
    has_ended || refuse not-durable "the disk has not taken the receipt of $name: $undurable"
  done
  remove_strays
}

remove_strays() {
  set +f
  for entry in "$S"/tx/*; do
    set -f
    here "${entry##*/}"
    [ ! -L "$T" ] || rm -f "$T"
    [ -e "$T/receipt" ] || [ ! -d "$T" ] || abandon
  done
  set -f
}

withdraw_receipt() { # else a power cut restores it without the files that it names
  [ ! -e "$T/receipt" ] || { rm -f "$T/receipt" && flush "$T"; }
}

abandon() { # nothing was renamed; remove all traces of this transaction, with time for it: the time to arm may be over. A timer that may
  # not have stopped keeps its program, which does this again: without it the timer's service would fail for ever. Names that could not be
  # removed keep their record
  clock
  kept_until=$until stopped=1 unstaged=1
  [ "$until" -ge $((now + 20000)) ] || until=$((now + 20000))
  withdraw_receipt
  if [ -e "$T/guarded" ] || [ -d "$RUNTIME/rollout-guard-$tx.timer.d" ]; then disarm; elif [ ! -e "$SYSTEM/$BOOT_UNIT" ]; then remove_boot_unit; fi
  unstage || unstaged=0
  remove_all_made
  flush_near
  times=$(cat "$T/times" 2>/dev/null)
  [ "$stopped$unstaged" != 11 ] || rm -rf "$T"
  keep_times "$times"
  until=$kept_until
}

note_times() { # when the targets last changed, before our hard link changes their ctime
  for path in $paths; do
    ! facts_of "$path" || printf '%s %s\n' "$times" "$path"
  done >"$T/times" 2>/dev/null
  :
}

keep_times() { # LINES of `times`: of files that only our links have touched since. Best effort: a forgotten file counts as changed
  [ -n "$1" ] || return 0
  lines='' entries=$NL$(cat "$S/touched" 2>/dev/null)$NL
  IFS=$NL
  for line in $1; do
    unset IFS
    path=${line#* * * }
    line=${line%" $path"}
    left=${line%% *} moment=${line##* }
    case $entries in *"$NL$left $moment "*) moment=${entries#*"$NL$left $moment "} && moment=${moment%% *} ;; esac
    current=$(stat -c '%i %.9Y %.9Z' -- "$path" 2>/dev/null) || continue
    [ "${current% *}" = "${line% *}" ] || continue
    lines="$lines$left ${current##* } $moment $path$NL"
  done
  unset IFS
  remember_times "$lines"
}

remember_times() { # LINES, INODE CTIME TIME PATH: a file with this inode and ctime counts as changed at TIME
  lines=$1$NL entries=$(cat "$S/touched" 2>/dev/null)
  IFS=$NL
  for line in $entries; do
    case $NL$lines in *" ${line#* * * }$NL"*) ;; *) lines="$lines$line$NL" ;; esac
  done
  unset IFS
  printf %s "$lines" >"$S/touched.new" 2>/dev/null && mv -f "$S/touched.new" "$S/touched" 2>/dev/null
  :
}

remember_loaded() { # the targets, if a SIGHUP made a unit read them, without a new process
  # shellcheck disable=SC2086 # a list of paths
  [ -z "$r_hangups" ] || remember_times "$(stat -c '%i %.9Z 0 %n' -- $paths 2>/dev/null)"
}

place() { # N PATH BEFORE: `old` and `new`, from which a rename reaches the target; noted in file.N before they exist
  folder=${2%/*} made=''
  until [ -d "$R$folder/" ]; do
    made="$folder $made"
    folder=${folder%/*}
  done
  f_path=$2 f_made=$made
  near "$1"
  drop "$R$near.new" "$R$near.old" "$R$near.try" "$R$near.tried" || return 1 # whatever is there: nothing is written through a link
  inside "$@" || return 1
  if [ "$3" != absent ]; then
    linked "$R$2" "$R$old" || { beside "$@" && cp -a "$R$2" "$T/old.$1" && cp -a "$R$2" "$R$old"; } || return 1
    # others may write into the same file through its other names
    if [ ! -e "$T/beside.$1" ] && facts_of "$R$2" && [ "$names" -gt 1 ]; then cp -a "$R$2" "$T/twin.$1"; fi
  fi
}

reach() { # N PATH BEFORE AFTER …: where no file is yet: its folder, and whether a rename from the transaction's folder reaches it, as a link does.
  # Only after the notes are on the disk: this makes names outside the transaction's folder
  [ "$3" = absent ] || return 0
  load_file "$1"
  near "$1"
  made=$f_made
  make_folders || return 1
  if linked "$T/new.$1" "$R$near.new"; then
    rm -f "$R$near.new"
  else
    beside "$@" && cp -a "$T/new.$1" "$R$new" && rm -f "$T/new.$1" || return 1
    staged="$staged $R$new"
    # shellcheck disable=SC2086 # a list of paths
    flush "$R$new" $parents "$T"
  fi
}

linked() { # FROM TO: by a hard link; false across two file systems. A file that may not be linked may not be renamed
  said=$(ln "$1" "$2" 2>&1) && return
  case $said in *'not permitted'*) ;; *) return 1 ;; esac
  kept=$f_path
  said=$(attributes)
  abandon
  refuse not-renameable "$kept $said"
}

flush_note() { flush "$T/file.$1" "$T" "$S/tx"; } # N: before anything exists outside the transaction's folder

make_folders() { # the folders that the file needs, already noted: the disk may be full later. Into `parents`: where its copies and they are
  parents=$R${near%/*}
  for made_one in $made; do
    [ -d "$R$made_one/" ] || mkdir -m 755 "$R$made_one" || return 1
    case " $parents " in *" $R${made_one%/*} "*) ;; *) parents="$parents $R${made_one%/*}" ;; esac
  done
}

note_file() { # N PATH BEFORE AFTER …: a note that may be on the disk is replaced by a rename
  note=$T/file.$1 notes=''
  [ ! -e "$note" ] || note=$T/note
  printf '%s %s %s %s %s %s\n' "$2" "$3" "$4" "$old" "$new" "$made" >"$note" || return 1
  [ "$note" != "$T/note" ] || mv -f "$note" "$T/file.$1"
}

inside() { # N PATH BEFORE: both copies in the transaction's folder
  old=/var/lib/rollout/tx/$tx/old.$1 new=/var/lib/rollout/tx/$tx/new.$1
  note_file "$@"
}

beside() { # N PATH BEFORE: both copies near the target, on another file system; a copy here serves a later rollback
  old=$near.old new=$near.new
  note_file "$@" && true >"$T/beside.$1" && flush_note "$1"
}

make_empty() { # PATH MODE
  case $2 in
    [0246][0246][0246])
      rest=${2#?}
      umask "$((7 - ${2%??}))$((7 - ${rest%?}))$((7 - ${2#??}))"
      true >"$1"
      written=$?
      umask 077
      return "$written"
      ;;
    *) true >"$1" && chmod "$2" "$1" ;;
  esac
}

stage_file() { # N PATH BEFORE AFTER MODE BASE64
  place "$@" || return 1
  if [ "$3" != absent ]; then
    cp -a "$R$2" "$R$new" || return 1 # mode, owner, label and attributes of the target; then the bytes
  else
    make_empty "$R$new" "$5" || return 1
    [ ! -e "$R/sys/fs/selinux/enforce" ] || chcon --reference="$R$folder" "$R$new" || return 1
  fi
  if [ "$6" = - ]; then
    true >"$R$new"
  elif [ "${#6}" -le 80 ]; then # so few cost the shell less than a program does; their digest is read back
    escape "$6"
    # shellcheck disable=SC2059 # made of octal numbers
    printf "$escaped" >"$R$new"
  else
    printf %s "$6" | base64 -d >"$R$new"
  fi || return 1
  news="$news $R$new" staged="$staged $R$new"
  [ ! -e "$T/beside.$1" ] || news="$news $R${near%/*}"
  if [ -e "$T/old.$1" ] && [ -e "$T/beside.$1" ]; then news="$news $R$old $T/old.$1"; fi
  [ ! -e "$T/twin.$1" ] || news="$news $T/twin.$1"
}

note_modes() { # for verify
  # shellcheck disable=SC2086 # a list of paths
  modes=$(stat -c '%a %u:%g' -- $staged) n=1
  IFS=$NL
  for line in $modes; do
    printf '%s\n' "$line" >"$T/mode.$n" || return 1
    n=$((n + 1))
  done
  unset IFS
  [ "$n" -gt "$files" ]
}

staged_is() { # N PATH BEFORE AFTER MODE BASE64
  load_file "$1" && is_as "$4" "$f_new" && return
  printf '%s\n' "what was written for $f_path is not what was ordered" 2>/dev/null >>"$T/next/why"
  return 1
}

find_kubelet() { # PID: the program that its unit starts, into `program`: the running one, or, if that may be an interpreter, the one on PATH
  program=$(command -v kubelet) || program=none
  # shellcheck disable=SC3013 # dash, bash and busybox have -ef
  [ ! "$program" -ef "$R/proc/$1/exe" ] || return 0
  program=$(readlink "$R/proc/$1/exe" 2>/dev/null) || program=''
  program=${program% (deleted)} # replaced since its start: the next start uses the file that is there now
  case $program in
    *[!A-Za-z0-9_./:@%+=,-]*) program=kubelet ;;
    */kubelet) ;;
    *) ! command -v kubelet >/dev/null || program=kubelet ;;
  esac
  program=$(command -v "${program:-kubelet}") || program=''
}

mark_kubelet() { # PROGRAM: which kubelet this is, without running it
  kubelet=$(stat -L -c %s-%Y "$1" 2>/dev/null) && return
  status=$? kubelet=unknown
  [ "$status" -eq 1 ] || failed_as "$status" stat
}

stage() { # everything that is needed later, and the boot unit; durable when this returns true. `failed_step` has the reason of a failure
  runtime_folders
  # shellcheck disable=SC2086 # a list of paths
  why=$({ mkdir -p "$T/next" "$SYSTEM/$BOOT_UNIT.d" $runtime_folders && true >"$T/next/why"; } 2>&1) && stage_all 2>"$T/next/why"
}

failed_step() { # into `reference` and `why`: what the step that failed reported, by the name that Linux gives to its error
  reference=staging-failed why=${why##*"$NL"}
  while IFS= read -r line; do why=$line; done 2>/dev/null <"$T/next/why"
  case $why in
    '' | *'I/O error') # a full disk takes no error either, and most shells do not name the error of a write: a program does
      ! why=$(printf . | cat 2>&1 >"$T/next/why") || ! why=$(printf . | cat 2>&1 >"$RUNTIME/rollout-guard-$tx.timer.d/why") || why=''
      ;;
  esac
  case $why in
    *'o space left'* | *uota*xceeded* | *'ile too large'*) reference=no-room ;;
    *'ead-only file system'*) reference=read-only ;;
    '') why='a step failed and reported no error' ;;
  esac
}

stage_all() {
  news='' staged=''
  note_times
  # shellcheck disable=SC2154 # this text, from the shell that read it
  printf '%s' "$all" >"$T/agent" || return 1
  each file stage_file && note_modes || return 1
  kubelet=unknown
  ! facts_of "$program" || kubelet=$version
  boot_id
  clock
  r_boot=$boot r_deadline=$((now + guard * 1000)) r_limit=$((now + 270000))
  common="run=$run${NL}counter=$counter${NL}seq=$((top + 1))${NL}boot=$boot${NL}deadline=$r_deadline${NL}guard=$guard${NL}limit=$r_limit${NL}files=$files
units=$r_units${NL}hangups=$r_hangups${NL}unit=$unit${NL}port=$healthz${NL}reload=$r_reload${NL}kubelet=$kubelet${NL}program=$program${NL}proof=tried"
  lay_receipts || return 1
  folders
  true >"$T/guarded" && write_boot_unit "$concerned" "$(logical "$dirs")" && shield_strings "$guard" || return 1
  set +f # of `next`, the receipts to come: `next/why` is for this apply only
  # shellcheck disable=SC2086 # a list of paths
  flush "$T"/agent "$T"/file.* "$T"/mode.* "$T"/next/[!w]* $news "$T/next" "$T" "$S/tx" "$SYSTEM/$BOOT_UNIT" "$SYSTEM/$BOOT_UNIT.d/$SHIELD" "$SYSTEM/$BOOT_UNIT.d" "${WANTED%/*}" "$SYSTEM"
  flushed=$?
  set -f
  [ "$flushed" -eq 0 ] && each file reach
}
