# -------------------------------------------------------------------------------------------------------- the receipt

receipt_here() { # TX: its folder
  tx=$1 T=$S/tx/$1
}

receipt_load() { # TX: its receipt into r_…; false if it has none, or if that cannot be read: `receipt_is_unread`
  receipt_here "$1"
  w_contents=''
  [ -L "$T" ] || contents "$T/receipt"
  r_text=$w_contents
  receipt_parse
}

receipt_is_unread() { # after a load that was false: a receipt is there, and it may be that of an armed transaction
  [ -z "$r_state" ] && [ ! -L "$T" ] && { [ -e "$T/receipt" ] || [ -L "$T/receipt" ]; }
}

receipt_need() { # TX: as load; refuses if it cannot be read
  receipt_load "$1" && return
  ! receipt_is_unread || receipt_refuse "$1"
  return 1
}

receipt_refuse() { refuse receipt-unreadable "the receipt of $1 is there, and could not be read or has no state"; } # TX

receipt_need_all() { # after `receipt_list`: refuses if one of them cannot be read
  local name
  for name in $r_unread; do receipt_refuse "$name"; done
}

receipt_load_known() { # TX: as load, but as `receipt_list` has just read it
  local nth known
  receipt_here "$1"
  nth=0
  for known in $r_names; do
    nth=$((nth + 1))
    [ "$known" = "$1" ] || continue
    eval "r_text=\$receipt_$nth"
    receipt_parse
    return
  done
  receipt_load "$1"
}

receipt_parse() { # `r_text` into r_…; false if it has no state
  local line value
  r_run=- r_counter=0 r_seq=0 r_state='' r_cause=- r_finished=0 r_boot=- r_deadline=0 r_guard=180 r_limit=0 r_files=0 r_units='' r_hangups='' r_unit='' r_port=0
  r_reload=0 r_kubelet='' r_program='' r_agent=''
  [ -n "$r_text" ] || return 1
  IFS=$NL
  for line in $r_text; do
    value=${line#*=}
    case $line in
      run=*) r_run=$value ;;
      counter=*) r_counter=$value ;;
      seq=*) r_seq=$value ;;
      state=*) r_state=$value ;;
      cause=*) r_cause=$value ;;
      finished=*) r_finished=$value ;;
      boot=*) r_boot=$value ;;
      deadline=*) r_deadline=$value ;;
      guard=*) r_guard=$value ;; # seconds; 180 is the longest, for receipts of an earlier version
      limit=*) r_limit=$value ;;
      files=*) r_files=$value ;;
      units=*) r_units=$value ;;
      hangups=*) r_hangups=$value ;;
      unit=*) r_unit=$value ;;
      port=*) r_port=$value ;;
      reload=*) r_reload=$value ;;
      kubelet=*) r_kubelet=$value ;;
      program=*) r_program=$value ;;
      agent=*) r_agent=$value ;;
    esac
  done
  unset IFS
  [ "$r_limit" -gt 0 ] || r_limit=$((r_deadline + 150000)) # written by an earlier version
  [ -n "$r_program" ] || ! find_program kubelet || r_program=$w_program # an earlier version found it on PATH only
  case $r_files/$r_kubelet in 0/* | */) r_state='' ;; esac # its rest was not read: every version writes the kubelet after all that a revert needs
  [ -n "$r_state" ]
}

receipt_lay() { # NAME STATE CAUSE FINISHED: write a receipt for later
  printf 'tx=%s\nstate=%s\ncause=%s\nfinished=%s\n%s\n' "$tx" "$2" "$3" "$4" "$common" >"$T/next/$1"
}

receipt_lay_all() {
  local end
  receipt_lay armed armed - 0 && receipt_lay finished armed - 1 && receipt_lay confirmed confirmed - 1 || return 1
  for end in guard boot health not-durable asked; do
    receipt_lay "reverting-$end" reverting "$end" 1 && receipt_lay "reverted-$end" reverted "$end" 1 || return 1
  done
}

receipt_become() { # NAME: one rename, durable when this returns true. If it hangs, a guard ends it; only a revert has none
  durable_unsettle
  case $1 in
    reverted-*) bounded 60 mv -f "$T/next/$1" "$T/receipt" ;;
    *) mv -f "$T/next/$1" "$T/receipt" ;;
  esac || return 1
  durable_flush "$T" || { ! durable_is_lost && receipt_load "$tx" && undurable='' && durable_seal; } || return 1
  durable_settled
}

receipt_read_place() { # of the requested revert of the loaded transaction, among all applies and reverts here, into `r_place`; 0: none noted
  set +f
  set -- "$T"/place.*
  set -f
  r_place=${1##*.}
  is_number "$r_place" || r_place=0
}

receipt_note_place() { # right before the requested revert of a confirmed transaction. In a name: a revert needs no room. Best effort
  local top name
  top=0
  for name in $r_all; do
    receipt_load_known "$name"
    receipt_read_place
    [ "$r_seq" -le "$top" ] || top=$r_seq
    [ "$r_place" -le "$top" ] || top=$r_place
  done
  receipt_load_known "$asked"
  receipt_read_place
  case $r_place in
    0) mv -f "$T/next/reverting-guard" "$T/place.$((top + 1))" ;; # no guard reverts it any more
    *) [ "$r_place" = "$top" ] || mv -f "$T/place.$r_place" "$T/place.$((top + 1))" ;;
  esac 2>/dev/null || :
}

receipt_list() { # [last] every transaction's name into `r_all`, newest first; with `last`: that with the last apply or revert first. Into `r_unread`
  # those with a receipt that cannot be read
  local found nth by entry r_place top rest newest
  r_all='' r_unread='' found='' r_names='' nth=0 by=${1:-apply}
  set +f
  set -- "$S"/tx/*/receipt
  set -f
  for entry in "$@"; do
    entry=${entry%/receipt}
    receipt_load "${entry##*/}" || { ! receipt_is_unread || r_unread="$r_unread $tx"; continue; }
    receipt_read_place
    [ "$by,$((r_place > r_seq))" = last,1 ] || r_place=$r_seq
    nth=$((nth + 1)) found="$found $r_place:$tx" r_names="$r_names $tx"
    eval "receipt_$nth=\$r_text"
  done
  while [ -n "$found" ]; do
    top=-1
    for entry in $found; do [ "${entry%%:*}" -le "$top" ] || top=${entry%%:*} newest=$entry; done
    r_all="$r_all ${newest#*:}" rest=''
    for entry in $found; do [ "$entry" = "$newest" ] || rest="$rest $entry"; done
    found=$rest
  done
}

receipt_seconds_left() { # left: seconds until this receipt's guard fires; 0 if it has fired or never will
  clock
  boot_id
  r_left=0
  [ "$r_state" = armed ] && [ "$r_boot" = "$boot" ] && r_left=$(((r_deadline - now) / 1000))
  [ "$r_left" -ge 0 ] || r_left=0
}

receipt_show() { # WORD TX: a line of output
  ! receipt_need "$2" || receipt_tell "$1"
}

receipt_tell() { # WORD: a line of output, of the loaded receipt
  local r_left told
  r_left=0
  [ "$r_state" != armed ] || receipt_seconds_left
  told=$r_state
  ! durable_is_unsettled || case $r_state in confirmed) told=armed ;; reverted) told=reverting ;; esac # the disk may still have that
  [ "$1" != receipt ] || w_state=$told
  say "$1 tx=$tx run=$r_run counter=$r_counter state=$told cause=$r_cause left=$r_left finished=$r_finished"
}
