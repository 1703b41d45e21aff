staging_sweep() { # remove transactions that died before their receipt; refuses if one is still under way
  local name
  receipt_list
  receipt_need_all
  s_top=0
  for name in $r_all; do
    receipt_load_known "$name"
    receipt_read_place
    [ "$r_seq" -le "$s_top" ] || s_top=$r_seq
    [ "$r_place" -le "$s_top" ] || s_top=$r_place
    case $r_state in armed | reverting) refuse armed-by-another "$name is $r_state" ;; esac
    durable_has_ended || refuse not-durable "it is not known that the disk has the receipt of $name: $undurable"
  done
  staging_remove_strays
}

staging_remove_strays() {
  local entry
  set +f
  for entry in "$S"/tx/*; do
    set -f
    receipt_here "${entry##*/}"
    [ ! -L "$T" ] || rm -f "$T"
    [ -e "$T/receipt" ] || [ ! -d "$T" ] || staging_abandon
  done
  set -f
}

staging_withdraw_receipt() { # else a power cut restores it without the files that it names
  [ ! -e "$T/receipt" ] || { rm -f "$T/receipt" && durable_flush "$T"; }
}

staging_abandon() { # nothing was renamed; remove all traces of this transaction, with time for it: the time to arm may be over. A timer that may
  # not have stopped keeps its program, which does this again: without it the timer's service would fail for ever. Names that could not be
  # removed keep their record
  local g_stopped kept_until unstaged times
  clock
  kept_until=$until g_stopped=1 unstaged=1
  [ "$until" -ge $((now + 20000)) ] || until=$((now + 20000))
  staging_withdraw_receipt
  if [ -e "$T/guarded" ] || [ -d "$RUNTIME/rollout-guard-$tx.timer.d" ]; then guard_disarm; elif [ ! -e "$SYSTEM/$BOOT_UNIT" ]; then guard_remove_boot_unit; fi
  revert_unstage || unstaged=0
  revert_remove_all_made
  revert_flush_near
  contents "$T/times"
  times=$w_contents
  [ "$g_stopped$unstaged" != 11 ] || rm -rf "$T"
  staging_keep_times "$times"
  until=$kept_until
}

staging_note_times() { # when the targets last changed, before our hard link changes their ctime
  local path
  for path in $f_paths; do
    ! checks_facts_of "$path" || printf '%s %s\n' "$c_times" "$path"
  done >"$T/times" 2>/dev/null
  :
}

staging_keep_times() { # LINES of `times`: of files that only our links have touched since. Best effort: a forgotten file counts as changed
  local entries line path left current lines l_moment
  [ -n "$1" ] || return 0
  contents "$S/touched"
  lines='' entries=$NL$w_contents
  IFS=$NL
  for line in $1; do
    unset IFS
    path=${line#* * * }
    line=${line%" $path"}
    left=${line%% *} l_moment=${line##* }
    case $entries in *"$NL$left $l_moment "*) l_moment=${entries#*"$NL$left $l_moment "} && l_moment=${l_moment%% *} ;; esac
    current=$(stat -c '%i %.9Y %.9Z' -- "$path" 2>/dev/null) || continue
    [ "${current% *}" = "${line% *}" ] || continue
    lines="$lines$left ${current##* } $l_moment $path$NL"
  done
  unset IFS
  staging_remember_times "$lines"
}

staging_remember_times() { # LINES, INODE CTIME TIME PATH: a file with this inode and ctime counts as changed at TIME
  local entries line lines
  contents "$S/touched"
  lines=$1$NL entries=$w_contents
  IFS=$NL
  for line in $entries; do
    case $NL$lines in *" ${line#* * * }$NL"*) ;; *) lines="$lines$line$NL" ;; esac
  done
  unset IFS
  printf %s "$lines" >"$S/touched.new" 2>/dev/null && mv -f "$S/touched.new" "$S/touched" 2>/dev/null
  :
}

staging_remember_loaded() { # the targets, if a SIGHUP made a unit read them, without a new process
  # shellcheck disable=SC2086 # a list of paths
  [ -z "$r_hangups" ] || staging_remember_times "$(stat -c '%i %.9Z 0 %n' -- $f_paths 2>/dev/null)"
}

staging_place() { # N PATH BEFORE: `s_old` and `s_new`, from which a rename reaches the target, noted in file.N before they exist; the `s_nearest` folder that exists
  local made
  s_nearest=${2%/*} made=''
  until [ -d "$R$s_nearest/" ]; do
    made="$s_nearest $made"
    s_nearest=${s_nearest%/*}
  done
  f_path=$2 f_made=$made
  files_near "$1"
  drop "$R$f_near.new" "$R$f_near.old" "$R$f_near.try" "$R$f_near.tried" || return 1 # whatever is there: nothing is written through a link
  s_old=/var/lib/rollout/tx/$tx/old.$1 s_new=/var/lib/rollout/tx/$tx/new.$1 # both copies in the transaction's folder
  staging_note_file "$@" || return 1
  if [ "$3" != absent ]; then
    staging_linked "$R$2" "$R$s_old" || { staging_beside "$@" && cp -a "$R$2" "$T/old.$1" && cp -a "$R$2" "$R$s_old"; } || return 1
    # others may write into the same file through its other names
    if [ ! -e "$T/beside.$1" ] && checks_facts_of "$R$2" && [ "$c_names" -gt 1 ]; then cp -a "$R$2" "$T/twin.$1"; fi
  fi
}

staging_reach() { # N PATH BEFORE AFTER …: where no file is yet: its folder, and whether a rename from the transaction's folder reaches it, as a link does.
  # Only after the notes are on the disk: this makes names outside the transaction's folder
  local made
  [ "$3" = absent ] || return 0
  files_load "$1"
  files_near "$1"
  made=$f_made
  staging_make_folders || return 1
  if staging_linked "$T/new.$1" "$R$f_near.new"; then
    rm -f "$R$f_near.new"
  else
    staging_beside "$@" && cp -a "$T/new.$1" "$R$s_new" && rm -f "$T/new.$1" || return 1
    s_staged="$s_staged $R$s_new"
    # shellcheck disable=SC2086 # a list of paths
    durable_flush "$R$s_new" $s_parents "$T"
  fi
}

staging_linked() { # FROM TO: by a hard link; false across two file systems. A file that may not be linked may not be renamed
  local said kept
  said=$(ln "$1" "$2" 2>&1) && return
  case $said in *'not permitted'*) ;; *) return 1 ;; esac
  kept=$f_path
  said=$(revert_attributes "$kept" "may not be linked, so it may not be renamed either: ${said##*"$NL"}")
  staging_abandon
  refuse not-renameable "$kept $said"
}

staging_make_folders() { # the folders that the file needs, already noted: the disk may be full later. Into `s_parents`: where its copies and they are
  local made_one
  s_parents=$R${f_near%/*}
  for made_one in $made; do
    [ -d "$R$made_one/" ] || mkdir -m 755 "$R$made_one" || return 1
    case " $s_parents " in *" $R${made_one%/*} "*) ;; *) s_parents="$s_parents $R${made_one%/*}" ;; esac
  done
}

staging_note_file() { # N PATH BEFORE AFTER …: a note that may be on the disk is replaced by a rename
  local note
  note=$T/file.$1 f_notes=''
  [ ! -e "$note" ] || note=$T/note
  printf '%s %s %s %s %s %s\n' "$2" "$3" "$4" "$s_old" "$s_new" "$made" >"$note" || return 1
  [ "$note" != "$T/note" ] || mv -f "$note" "$T/file.$1"
}

staging_beside() { # N PATH BEFORE: both copies near the target, on another file system; a copy here serves a later rollback
  s_old=$f_near.old s_new=$f_near.new
  staging_note_file "$@" && true >"$T/beside.$1" && durable_flush "$T/file.$1" "$T" "$S/tx" # before anything exists outside the transaction's folder
}

staging_make_empty() { # PATH MODE
  local rest written
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

staging_make_file() { # N PATH BEFORE AFTER MODE BASE64
  staging_place "$@" || return 1
  if [ "$3" != absent ]; then
    cp -a "$R$2" "$R$s_new" || return 1 # mode, owner, label and attributes of the target; then the bytes
  else
    staging_make_empty "$R$s_new" "$5" || return 1
    [ ! -e "$R/sys/fs/selinux/enforce" ] || chcon --reference="$R$s_nearest" "$R$s_new" || return 1
  fi
  if [ "$6" = - ]; then
    true >"$R$s_new"
  elif [ "${#6}" -le 80 ]; then # so few cost the shell less than a program does; their digest is read back
    escape "$6"
    # shellcheck disable=SC2059 # made of octal numbers
    printf "$w_escaped" >"$R$s_new"
  else
    printf %s "$6" | base64 -d >"$R$s_new"
  fi || return 1
  s_news="$s_news $R$s_new" s_staged="$s_staged $R$s_new"
  [ ! -e "$T/beside.$1" ] || s_news="$s_news $R${f_near%/*}"
  if [ -e "$T/old.$1" ] && [ -e "$T/beside.$1" ]; then s_news="$s_news $R$s_old $T/old.$1"; fi
  [ ! -e "$T/twin.$1" ] || s_news="$s_news $T/twin.$1"
}

staging_note_modes() { # for verify
  local modes n line
  # shellcheck disable=SC2086 # a list of paths
  modes=$(stat -c '%a %u:%g' -- $s_staged) n=1
  IFS=$NL
  for line in $modes; do
    printf '%s\n' "$line" >"$T/mode.$n" || return 1
    n=$((n + 1))
  done
  unset IFS
  [ "$n" -gt "$c_files" ]
}

staging_is_as_ordered() { # N PATH BEFORE AFTER MODE BASE64
  files_load "$1" && files_is_as "$4" "$f_new" && return
  printf '%s\n' "what was written for $f_path is not what was ordered" 2>/dev/null >>"$T/next/why"
  return 1
}

staging_find_kubelet() { # PID: the program that its unit starts, into `s_program`: the running one, or, if that may be an interpreter, the one on PATH
  case $unit in k3s* | rke2-*) ! find_program "${unit%%[-.]*}" || { s_program=$w_program && return; } ;; esac # it contains the kubelet, or has one beside it
  find_program kubelet || w_program=none
  s_program=$w_program
  # shellcheck disable=SC3013 # dash, bash and busybox have -ef
  [ ! "$s_program" -ef "$R/proc/$1/exe" ] || return 0
  s_program=$(readlink "$R/proc/$1/exe" 2>/dev/null) || s_program=''
  s_program=${s_program% (deleted)} # replaced since its start: the next start uses the file that is there now
  case $s_program in
    *[!A-Za-z0-9_./:@%+=,-]*) s_program=kubelet ;;
    */kubelet) ;;
    *) if command -v kubelet >/dev/null; then s_program=kubelet; else staging_find_script "$1"; fi ;;
  esac
  find_program "${s_program:-kubelet}" || w_program=''
  s_program=$w_program
}

staging_find_script() { # PID of an interpreter: what it runs, if that is a kubelet, into `s_program`
  local n_words word
  homes_command_line "$1"
  # shellcheck disable=SC2086 # split into words
  set -- $n_words
  for word in "${1-}" "${2-}"; do
    case $word in *[!A-Za-z0-9_./:@%+=,-]*) ;; /*/kubelet) s_program=$word ;; esac
  done
}

staging_mark_kubelet() { # PROGRAM: which kubelet this is, without running it
  local status
  s_kubelet=$(stat -L -c %s-%Y "$1" 2>/dev/null) && return
  status=$? s_kubelet=unknown
  [ "$status" -eq 1 ] || files_failed_as "$status" stat
}

staging_make() { # everything that is needed later, and the boot unit; durable when this returns true. `staging_failed_step` has the reason of a failure
  guard_runtime_folders
  [ "$r_reload" = 0 ] || g_folders="$g_folders ${HIDDEN%/*}" # for the reload to come
  # shellcheck disable=SC2086 # a list of paths
  why=$(mkdir -p "$T/next" "$SYSTEM/$BOOT_UNIT.d" $g_folders 2>&1) && { true >"$T/next/why"; } 2>/dev/null && staging_make_all 2>"$T/next/why"
}

staging_failed_step() { # into `s_reference` and `why`: what the step that failed reported, by the name that Linux gives to its error
  local line
  s_reference=staging-failed why=${why##*"$NL"}
  while IFS= read -r line; do why=$line; done 2>/dev/null <"$T/next/why"
  case $why in
    '' | *'I/O error') # a full disk takes no error either, and most shells do not name the error of a write: a program does
      ! why=$(printf . | cat 2>&1 >"$T/next/why") || ! why=$(printf . | cat 2>&1 >"$RUNTIME/rollout-guard-$tx.timer.d/why") || why=''
      ;;
  esac
  case $why in
    *'o space left'* | *uota*xceeded* | *'ile too large'*) s_reference=no-room ;;
    *'ead-only file system'*) s_reference=read-only ;;
    '') why='a step failed and reported no error' ;;
  esac
}

staging_make_all() {
  local s_news s_kubelet common flushed
  s_news='' s_staged=''
  staging_note_times
  # shellcheck disable=SC2154 # this text, from the shell that read it
  printf '%s' "$all" >"$T/agent" || return 1
  each file staging_make_file && staging_note_modes || return 1
  s_kubelet=unknown
  ! checks_facts_of "$s_program" || s_kubelet=$c_version
  boot_id
  clock
  r_boot=$boot r_deadline=$((now + guard * 1000)) r_limit=$((now + 270000))
  common="run=$run${NL}counter=$counter${NL}seq=$((s_top + 1))${NL}boot=$boot${NL}deadline=$r_deadline${NL}guard=$guard${NL}limit=$r_limit${NL}files=$c_files
units=$r_units${NL}hangups=$r_hangups${NL}unit=$unit${NL}port=$healthz${NL}reload=$r_reload${NL}kubelet=$s_kubelet${NL}program=$s_program${NL}agent=$t_program${NL}proof=tried"
  receipt_lay_all || return 1
  files_folders
  true >"$T/guarded" && guard_write_boot_unit && guard_shield_units "$guard" || return 1
  set +f # of `next`, the receipts to come: `next/why` is for this apply only
  # shellcheck disable=SC2086 # a list of paths
  durable_flush "$T"/agent "$T"/file.* "$T"/mode.* "$T"/next/[!w]* $s_news "$T/next" "$T" "$S/tx" "$SYSTEM/$BOOT_UNIT" "$SYSTEM/$BOOT_UNIT.d/$SHIELD" "$SYSTEM/$BOOT_UNIT.d" "${WANTED%/*}" "$SYSTEM"
  flushed=$?
  set -f
  [ "$flushed" -eq 0 ] && each file staging_reach
}
