# ---------------------------------------------------------------------------------------------------------- the freeze

# While a node is frozen, no controller's apply changes it. Nothing else is refused: a confirm, a revert, a guard and a cleanup end what
# began before. The file is kept after an unfreeze, so that a delayed older freeze is fenced. Its token is apart from that of runs:
# a freeze does not fence the run in progress.

freeze_read() { # the newest freeze or unfreeze that this node accepted. What cannot be read counts as a freeze
  z_counter=0 z_name=- z_state=open z_who=- z_why=-
  [ -e "$S/freeze" ] || [ -L "$S/freeze" ] || return 0
  read -r z_counter z_name z_state z_who z_why 2>/dev/null <"$S/freeze"
  case $z_state in open | frozen) is_number "$z_counter" && return ;; esac
  z_counter=0 z_name=- z_state=frozen z_who=- z_why=-
}

freeze_show() { # of freeze_read, if it is one; true if it is
  [ "$z_state" = frozen ] && say "fact frozen $z_counter $z_name $z_who $z_why"
}

freeze_refuse() { # [TEXT]
  freeze_read
  ! freeze_show || refuse frozen "since token $z_counter of $z_name${1-}"
}

freeze_note_who() { case $1 in *[!A-Za-z0-9+/=-]*) refuse bad-argument who ;; *) z_who=$1 ;; esac; } # BASE64, into `z_who`
freeze_note_why() { case $1 in *[!A-Za-z0-9+/=-]*) refuse bad-argument why ;; *) z_why=$1 ;; esac; } # the same, into `z_why`

freeze_locked() { # STATE: in force by one rename
  lock_read_token
  freeze_read
  if [ "$z_counter $z_name $z_state" != "$counter $run $1" ]; then # else a repetition, and it may be that the disk has not the first one
    [ "$counter" -ge "$k_counter" ] || refuse fenced "this node has accepted token $k_counter of run $k_run"
    [ "$counter" -gt "$z_counter" ] || refuse fenced "this node has accepted token $z_counter of $z_name"
  fi
  z_who=- z_why=-
  each who freeze_note_who
  each why freeze_note_why
  if ! { printf '%s %s %s %s %s\n' "$counter" "$run" "$1" "$z_who" "$z_why" 2>/dev/null >"$S/freeze.new" && durable_flush "$S/freeze.new" &&
    mv -f "$S/freeze.new" "$S/freeze"; }; then
    [ -z "$undurable" ] || refuse not-durable "it is not known that the disk has the new state of the freeze, so it is not in force: $undurable"
    refuse state-not-writable "the new state of the freeze could not be stored"
  fi
  durable_flush "$S" "${S%/*}" && return
  freeze_read
  freeze_show || :
  refuse not-durable "the node is $z_state from now on, and it is not known that the disk has that: $undurable"
}

freeze() { # STATE
  allow 60
  lock
  freeze_locked "$1" 9>&-
  freeze_read
  freeze_show || :
}

verb_freeze() { freeze frozen; }

verb_unfreeze() { freeze open; }
