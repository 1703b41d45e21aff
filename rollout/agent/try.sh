# ---------------------------------------------------------------------------------------------------------------- try

verb_try() { # TX: in the sandbox of a guard, before the first rename: every operation of a revert, with names of our own that match no
  # reader's pattern. The result into `tried`, which the receipt names: `complete`, or what failed first; and the unit's invocation
  local tried
  receipt_load "$tx" && [ "$r_state" = armed ] && [ ! -e "$T/tried" ] || exit 0
  allow 20
  tried=$(try_all 2>&1)
  tried=${tried%%"$NL"*}
  : "${tried:=its-process-ended}"
  if ! { printf '%s %s\n' "$tried" "${INVOCATION_ID-}" >"$T/tried.new" && mv -f "$T/tried.new" "$T/tried"; }; then
    [ "$tried" != complete ] || tried=rename-in-the-state
    printf '%s\n' "$tried" >"$T/tried"
  fi
  durable_flush "$T/tried" "$T" || echo "$undurable" >"$T/tried"
}

try_all() { # print what fails first; `complete` if nothing has failed
  local asked n seen names empty folder from
  asked=$(sha256sum <"$0")
  [ "${asked%% *}" = "$r_agent" ] || { echo reading-the-program && return; }
  asked=$(lastly 12 systemctl show -p ActiveState "rollout-guard-$tx.timer" 2>/dev/null)
  case $asked in *ActiveState=active*) ;; *) echo systemctl && return ;; esac
  n=1 seen='' names='' empty=''
  while [ "$n" -le "$r_files" ]; do
    files_load "$n" || { echo "reading-the-notes" && return; }
    files_near "$n"
    folder=${f_path%/*} from=$f_old
    [ "$f_before" != absent ] || from=$f_new
    case "$seen " in
      *" ${f_near%/*} "*) ;;
      *)
        seen="$seen ${f_near%/*}" names="$names $R$f_near.try $R$f_near.tried"
        if [ -e "$T/beside.$n" ]; then # no link reaches it from here, and none is needed
          true >"$R$f_near.try" || { echo "make-in-${f_near%/*}" && break; }
        else
          ln "$R$from" "$R$f_near.try" 2>/dev/null || { echo "link-in-${f_near%/*}" && break; }
        fi
        mv -f "$R$f_near.try" "$R$f_near.tried" 2>/dev/null || { echo "rename-in-${f_near%/*}" && break; }
        ;;
    esac
    case "$seen " in
      *" $folder "*) ;;
      *) [ ! -d "$R$folder" ] || seen="$seen $folder" empty="$empty $R$folder/.rollout-$tx.$n.try" ;;
    esac
    n=$((n + 1))
  done
  # shellcheck disable=SC2086 # lists of paths
  {
    rm -f $names 2>/dev/null || echo "unlink"
    # where a reader may read any name, it reads no folder
    [ -z "$empty" ] || { mkdir $empty && rmdir $empty; } 2>/dev/null || echo "a-name-in-a-folder-of-drop-ins"
  }
  echo complete
}

case $0,${1-} in # a watch runs this before it sleeps: it need not read the rest of this program, whose bytes it has compared
  rollout,*) ;;
  *,try)
    verb=try tx=${2--}
    trap tell EXIT # to the node's journal
    verb_try
    exit
    ;;
esac
