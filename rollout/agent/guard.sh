# -------------------------------------------------------------------------------------------------------------- guard

# A drop-in for all services may take from ours what a revert needs. So each unit of a guard has a drop-in of its own, which sorts last and
# resets what others can set. It is there before systemd first loads the unit: no reload is needed. A key that a systemd does not know is
# skipped with a warning. Nothing resets a dependency: guard_is_proven looks at those.
# Its last line is the unit's description: a unit that systemd shows with it has read all lines before it. A full /run leaves an empty file.
# A text has the same length each time, so that it is written again in place: that needs no room.
RUNTIME=$R/run/systemd/system
TRANSIENT=$R/run/systemd/transient
SHIELD='~~~~~~~~-rollout.conf'

guard_shield() { # RESTART TYPE SECONDS COMMAND [BEFORE [AFTER]]: the drop-in of a service that runs COMMAND, with so many seconds to start
  local defaults
  defaults=yes # dependencies of its own has only the boot unit
  [ "$2" = simple ] || defaults=no
  set -- '[Unit]' "DefaultDependencies=$defaults" ConditionPathExists= AssertPathExists= \
    StartLimitIntervalSec=0 StartLimitAction=none FailureAction=none \
    SuccessAction=none JobTimeoutSec=infinity JobRunningTimeoutSec=infinity JobTimeoutAction=none StopWhenUnneeded=no \
    RefuseManualStart=no RefuseManualStop=no IgnoreOnIsolate=yes '[Service]' "Type=$2" "Restart=$1" RestartSec=5 \
    RemainAfterExit=no ExitType=main PIDFile= RestartPreventExitStatus= RestartForceExitStatus= SuccessExitStatus= "TimeoutStartSec=$3" \
    TimeoutStartFailureMode=terminate RuntimeMaxSec=infinity RuntimeRandomizedExtraSec=0 WatchdogSec=0 ExecCondition= ExecStartPre= \
    ${5:+"ExecStartPre=-$5"} ExecStart= "ExecStart=$4" ExecStartPost= ExecStop= ExecStopPost= \
    ${6:+"ExecStopPost=-$6"} TimeoutStopSec=30 RootDirectoryStartOnly=no \
    KillMode=control-group KillSignal=SIGTERM SendSIGKILL=yes SendSIGHUP=no OOMPolicy=continue OOMScoreAdjust=0 \
    User= Group= SupplementaryGroups= DynamicUser=no PAMName= WorkingDirectory= RootDirectory= RootImage= RootHash= RootVerity= \
    MountAPIVFS=no BindPaths= BindReadOnlyPaths= MountImages= ExtensionImages= ExtensionDirectories= TemporaryFileSystem= \
    ReadWritePaths= ReadOnlyPaths= InaccessiblePaths= ExecPaths= NoExecPaths= ProtectSystem=no ProtectHome=no PrivateTmp=no \
    PrivateDevices=no PrivateNetwork=no PrivateUsers=no PrivateMounts=no PrivateIPC=no PrivatePIDs=no ProtectHostname=no ProtectClock=no \
    ProtectKernelTunables=no ProtectKernelModules=no ProtectKernelLogs=no ProtectControlGroups=no ProtectProc=default ProcSubset=all \
    NetworkNamespacePath= IPCNamespacePath= MountFlags= 'CapabilityBoundingSet=~' AmbientCapabilities= NoNewPrivileges=no SecureBits= \
    SELinuxContext= AppArmorProfile= SmackProcessLabel= SystemCallFilter= SystemCallErrorNumber= SystemCallArchitectures= SystemCallLog= \
    RestrictAddressFamilies= RestrictNamespaces=no RestrictFileSystems= RestrictSUIDSGID=no RestrictRealtime=no LockPersonality=no \
    MemoryDenyWriteExecute=no RemoveIPC=no Personality= IgnoreSIGPIPE=yes UMask=0022 LimitCPU=infinity LimitFSIZE=infinity \
    LimitDATA=infinity LimitSTACK=8M:infinity LimitRSS=infinity LimitNOFILE=1024:524288 LimitAS=infinity LimitNPROC=infinity \
    LimitLOCKS=infinity LimitRTTIME=infinity Nice=0 CPUSchedulingPolicy=other CPUAffinity= NUMAPolicy=default IOSchedulingClass= \
    StandardInput=null StandardInputText= StandardInputData= StandardOutput=journal StandardError=inherit TTYPath= LogNamespace= \
    Environment= EnvironmentFile= PassEnvironment= UnsetEnvironment= LoadCredential= LoadCredentialEncrypted= \
    SetCredential= SetCredentialEncrypted= RuntimeDirectory= StateDirectory= CacheDirectory= LogsDirectory= \
    ConfigurationDirectory= Slice=system.slice Delegate=no MemoryHigh=infinity MemoryMax=infinity MemorySwapMax=infinity \
    TasksMax=infinity CPUQuota= CPUWeight= AllowedCPUs= AllowedMemoryNodes= \
    IOWeight= IODeviceWeight= IOReadBandwidthMax= IOWriteBandwidthMax= IOReadIOPSMax= IOWriteIOPSMax= DevicePolicy=auto DeviceAllow= \
    IPAddressAllow= IPAddressDeny= IPIngressFilterPath= IPEgressFilterPath= BPFProgram= SocketBindAllow= SocketBindDeny= \
    RestrictNetworkInterfaces= ManagedOOMSwap=auto ManagedOOMMemoryPressure=auto
  guard_write_lines 8192 "$@"
}

guard_write_lines() { # SIZE LINE…: and the description; filled up to so many bytes
  local size lines
  size=$1
  shift
  guard_describe
  IFS=$NL
  lines="$*"
  unset IFS
  printf "%-$((size - 1))s\n" "$lines${NL}[Unit]${NL}Description=$g_described$NL"
}

guard_describe() { g_described="rollout: a guard with all settings of its own"; } # of every transaction: systemd may still have the boot unit of an earlier one

guard_shield_units() { # SECONDS: of the timer, which fires after so many, of its service and of the watch; and room for what systemd writes of them
  local shielded
  umask 022
  guard_runtime_folders
  g_watch="/bin/sh $T/agent watch $tx $(((r_deadline + 10999) / 1000))"
  # shellcheck disable=SC2086 # a list of paths
  { [ -d "$RUNTIME/rollout-guard-$tx.timer.d" ] || mkdir -p $g_folders; } &&
    guard_shield on-failure simple infinity "/bin/sh $T/agent guard $tx" 1<>"$RUNTIME/rollout-guard-$tx.service.d/$SHIELD" &&
    guard_shield on-failure simple 25 "$g_watch" "/bin/sh $T/agent try $tx" 1<>"$RUNTIME/rollout-watch-$tx.service.d/$SHIELD" &&
    guard_write_lines 1024 '[Unit]' ConditionPathExists= AssertPathExists= StartLimitIntervalSec=0 JobTimeoutSec=infinity StopWhenUnneeded=no \
      RefuseManualStart=no RefuseManualStop=no IgnoreOnIsolate=yes '[Timer]' OnActiveSec= "OnActiveSec=$1" AccuracySec=100ms \
      RandomizedDelaySec=0 FixedRandomDelay=no OnClockChange=no OnTimezoneChange=no WakeSystem=no Persistent=no RemainAfterElapse=no \
      1<>"$RUNTIME/rollout-guard-$tx.timer.d/$SHIELD" && guard_keep_room
  shielded=$?
  umask 077
  return "$shielded"
}

guard_keep_room() { printf %32768s . >"$RUNTIME/rollout-guard-$tx.timer.d/room"; } # in /run, which may be full when the guard is started again

guard_runtime_folders() { # of the loaded transaction's drop-ins
  g_folders="$RUNTIME/rollout-guard-$tx.timer.d $RUNTIME/rollout-guard-$tx.service.d $RUNTIME/rollout-watch-$tx.service.d"
}

guard_write_boot_unit() { # before the units of `h_concerned`, with the mounts of `f_dirs`; durable only after the caller's flush
  local path mounts written
  [ ! -L "$SYSTEM/$BOOT_UNIT" ] || return 1 # masked, or a link that leads the write elsewhere
  [ -d "${WANTED%/*}" ] || { true >"$T/made-wants" && mkdir -p "${WANTED%/*}"; } || return 1
  mounts=''
  for path in $f_dirs; do mounts="$mounts${path#"$R"} "; done
  umask 022
  # no default dependencies: they would order it after the target that wants it
  { [ -d "$SYSTEM/$BOOT_UNIT.d" ] || mkdir "$SYSTEM/$BOOT_UNIT.d"; } && guard_shield no oneshot 60 "/bin/sh $T/agent boot" '' "/bin/sh $T/agent after" >"$SYSTEM/$BOOT_UNIT.d/$SHIELD" &&
    printf '%s\n' "[Unit]" "Description=rollout: take transaction $tx back unless it was confirmed" "DefaultDependencies=no" \
      "Requires=sysinit.target" "After=sysinit.target" "Before=basic.target shutdown.target $h_concerned" "Conflicts=shutdown.target" \
      "RequiresMountsFor=/var/lib/rollout $mounts" "[Service]" "Type=oneshot" "ExecStart=/bin/sh $T/agent boot" \
      "TimeoutStartSec=60" "[Install]" "WantedBy=basic.target" >"$SYSTEM/$BOOT_UNIT"
  written=$?
  umask 077
  [ "$written" -eq 0 ] || return 1
  # shellcheck disable=SC3013 # dash, bash and busybox have -ef
  { [ -L "$WANTED" ] && [ "$WANTED" -ef "$SYSTEM/$BOOT_UNIT" ]; } || { drop "$WANTED" && ln -s "../$BOOT_UNIT" "$WANTED"; }
}

guard_remove_boot_unit() { # FOLDER…: these folders of ours; and the boot unit, if it serves no other transaction
  local gone ours entry
  gone='' ours=''
  guard_is_needed_by_others || ours="$WANTED $WANTED_ONCE $SYSTEM/$BOOT_UNIT $SYSTEM/$BOOT_UNIT.d"
  set +f
  for entry in "$SYSTEM/$BOOT_UNIT.d"/* "$SYSTEM/$BOOT_UNIT.d"/.[!.]*; do
    case $entry in "$SYSTEM/$BOOT_UNIT.d/$SHIELD" | *'/*' | *'/.[!.]*') ;; *) ours=${ours:+$ours/$SHIELD} && break ;; esac # others have files there
  done
  set -f
  for entry in "$@" $ours; do
    if [ -e "$entry" ] || [ -L "$entry" ]; then gone="$gone $entry"; fi
  done
  # shellcheck disable=SC2086 # a list of paths
  [ -z "$gone" ] || rm -rf $gone
  [ ! -d "${HIDDEN%/*}" ] || restarts_show_boot_unit
  [ ! -e "$T/made-wants" ] || [ ! -d "${WANTED%/*}" ] || rmdir "${WANTED%/*}" 2>/dev/null || :
}

guard_is_needed_by_others() { # the boot unit, by a transaction other than the loaded one: the disk has it as armed or reverting, or may have
  local mine needed entry key value
  mine=$tx needed=1
  set +f
  set -- "$S"/tx/*/receipt
  set -f
  for entry in "$@"; do
    entry=${entry%/receipt}
    receipt_here "${entry##*/}"
    { [ "$tx" != "$mine" ] && [ -f "$T/receipt" ] && [ ! -L "$T" ]; } || continue
    key='' value=''
    while IFS='=' read -r key value && [ "$key" != state ]; do :; done 2>/dev/null <"$T/receipt"
    case $key,$value in state,confirmed | state,reverted) ! durable_is_unsettled || needed=0 ;; *) needed=0 ;; esac # one that cannot be read, too
  done
  receipt_here "$mine"
  return "$needed"
}

guard_disarm() { # what is already gone is no error; a watch does not stop itself. `g_stopped`: 0 if they may be there still
  local units_of_guard
  units_of_guard="rollout-guard-$tx.timer" g_stopped=1
  [ "$verb" = watch ] || units_of_guard="$units_of_guard rollout-watch-$tx.service"
  # shellcheck disable=SC2086 # a list of units
  bounded 10 systemctl stop $units_of_guard >/dev/null 2>&1 || case $? in
    5) ;; # gone
    124 | 137) g_stopped=0 ;;
    *)
      nap
      bounded 10 systemctl stop $units_of_guard >/dev/null 2>&1 || case $? in 5) ;; *) g_stopped=0 ;; esac
      ;;
  esac
  guard_runtime_folders
  # shellcheck disable=SC2086 # a list of paths
  guard_remove_boot_unit $g_folders
}

guard_start_timer() { # SECONDS OPTION…: it starts a guard of the loaded transaction, again and again until one succeeds
  local delay
  delay=$1
  shift
  # Those of the staging are there, and guard_is_proven looks at what systemd has read
  { guard_shield_units "$delay" || :; } 2>/dev/null
  { true >"$RUNTIME/rollout-guard-$tx.timer.d/room"; } 2>/dev/null || :
  # `systemctl isolate rescue.target` stops timers and services in the same boot
  bounded 10 systemd-run --quiet "$@" --unit="rollout-guard-$tx" --on-active="$delay" \
    --timer-property=AccuracySec=100ms --timer-property=RemainAfterElapse=no --timer-property=IgnoreOnIsolate=yes --collect \
    --property=IgnoreOnIsolate=yes --property=Restart=on-failure --property=RestartSec=5 \
    /bin/sh "$T/agent" guard "$tx" >/dev/null 2>&1
}

guard_start() { # OPTION…: a timer that fires at r_deadline, never before; and a process that sleeps, which needs no timer. Before
  # it sleeps, the watch's unit runs `try`, and without --no-block this waits for that
  local delay
  clock
  delay=$(((r_deadline - now + 999) / 1000))
  [ "$delay" -ge 1 ] || delay=1
  guard_start_timer "$delay" "$@"
  # shellcheck disable=SC2086 # split into words
  bounded 25 systemd-run --quiet "$@" --unit="rollout-watch-$tx" --collect --property=IgnoreOnIsolate=yes \
    --property=Restart=on-failure --property=RestartSec=5 $g_watch >/dev/null 2>&1
  { guard_keep_room || :; } 2>/dev/null
}

guard_keep() { # of the loaded transaction, armed in this boot: start them again if somebody stopped the timer
  local shown
  [ "$r_state" = armed ] && boot_id && [ "$r_boot" = "$boot" ] || return 0
  shown=$(lastly 5 systemctl show -p ActiveState "rollout-guard-$tx.timer" "rollout-guard-$tx.service") || return 0
  case $shown in *ActiveState=active* | *ActiveState=activating*) return ;; esac
  guard_start --no-block
  receipt_load "$tx" || ! receipt_is_unread || return 0
  [ "$r_state" = armed ] || guard_disarm # it ended meanwhile: not every caller has the lock
}

guard_is_proven() { # by what systemd shows, whatever systemd-run returned, and by what the watch's unit has tried; else `why`
  local units_of_guard end next name tried_with
  why="systemctl show reports no timer of rollout-guard-$tx.service that is to fire" g_outcome=''
  units_of_guard="rollout-guard-$tx.timer rollout-watch-$tx.service rollout-guard-$tx.service $BOOT_UNIT"
  u_asked="$units_of_guard default.target multi-user.target"
  # shellcheck disable=SC2086 # a list of units
  u_blocks=$(lastly 10 systemctl show -p Description -p ActiveState -p NextElapseUSecMonotonic -p Unit -p MainPID -p UnitFileState -p DropInPaths -p InvocationID \
    -p Requires -p Requisite -p BindsTo -p PartOf -p StopPropagatedFrom -p Conflicts -p Wants -p RuntimeMaxUSec -p TimeoutStartUSec -p WatchdogUSec \
    -p MemoryMax -p MemoryHigh -p MemoryLimit -p TasksMax -p LimitCPU -p LimitFSIZE -p LimitAS -p LimitDATA -p CPUQuotaPerSecUSec \
    $u_asked 2>/dev/null)
  end=$? u_blocks=$u_blocks$NL
  case $end,$u_blocks in 0,* | *ActiveState=*) ;; *) tell_end "$end" && why="systemctl show $w_ended" && return 1 ;; esac
  processes_name_blocks
  processes_find_block "rollout-guard-$tx.timer"
  case $NL$u_block$NL in *"${NL}ActiveState=active$NL"*) ;; *) return 1 ;; esac
  next=${u_block##*NextElapseUSecMonotonic=}
  case ${next%%"$NL"*} in '' | 0 | infinity | *=*) return 1 ;; esac
  processes_look_up "$BOOT_UNIT"
  why="systemctl reports no $BOOT_UNIT that is enabled"
  [ "$u_file" = enabled ] || [ "$(lastly 10 systemctl is-enabled "$BOOT_UNIT" 2>/dev/null)" = enabled ] || return 1 # it may remember an older file
  why="systemctl does not report that default.target requires or wants basic.target"
  guard_is_reached || return 1
  for name in $units_of_guard; do
    guard_has_its_own "$name" || return 1
    case $name in
      *.timer) ;;
      rollout-watch-*) tried_with=$g_foreign ;;
      # a key that we do not know would be tried by the watch only where it has it too
      *) [ "$g_foreign" = "$tried_with" ] || { why="$name has other drop-ins than the watch, which tries a revert$g_foreign" && return 1; } ;;
    esac
  done
  processes_look_up "rollout-watch-$tx.service"
  case $u_active/$u_pid in active/[1-9]*) guard_is_tried ;; *) why="systemctl show reports no process of rollout-watch-$tx.service" && return 1 ;; esac
}

guard_has_its_own() { # UNIT: by the last answer our drop-in is its last one, nothing limits the unit, and it depends on nothing of others; else
  # `why`, which names the drop-ins of others, as `g_foreign` does
  local last whole line value path needed
  processes_find_block "$1"
  guard_describe
  g_foreign='' last='' m_odd='' whole=0
  IFS=$NL
  for line in $u_block; do
    unset IFS
    value=${line#*=}
    case $line in
      DropInPaths=*)
        for path in $value; do
          last=$path
          case $path in *"/$SHIELD") ;; *) g_foreign="$g_foreign $path" ;; esac
        done
        ;;
      "Description=$g_described") whole=1 ;;
      Unit=*) [ "$value" = "rollout-guard-$tx.service" ] || m_odd=$line ;;
      Requires=*) for needed in $value; do
        case $needed in sysinit.target | system.slice | *.mount) ;; *) m_odd=Requires=$needed ;; esac
      done ;;
      Conflicts=*) [ "$value" = shutdown.target ] || m_odd=$line ;;
      Requisite=* | BindsTo=* | PartOf=* | StopPropagatedFrom=*) [ -z "$value" ] || m_odd=$line ;;
      TimeoutStartUSec=*) case $1/$value in "$BOOT_UNIT/1min" | rollout-[gw]*-"$tx".service/*) ;; *) m_odd=$line ;; esac ;;
      WatchdogUSec=*) case $value in 0 | infinity) ;; *) m_odd=$line ;; esac ;;
      RuntimeMaxUSec=* | Memory*=* | TasksMax=* | Limit*=* | CPUQuotaPerSecUSec=*)
        case $value in infinity | 18446744073709551615) ;; *) m_odd=$line ;; esac
        ;;
    esac
    IFS=$NL
  done
  unset IFS
  g_foreign="${g_foreign:+; drop-ins of others:$g_foreign}"
  case $last in *"/$SHIELD") ;; *) why="$1 does not have our drop-in last$g_foreign" && return 1 ;; esac
  [ "$whole" = 1 ] || { why="systemctl show does not report the last line of our drop-in of $1" && return 1; }
  [ -z "$m_odd" ] || { why="$1 has $m_odd$g_foreign" && return 1; }
}

guard_is_tried() { # the watch that was looked up: its unit has done all that a revert does, and its process sees the folders that we see; else `why`
  local folder
  g_invocation=''
  read -r g_outcome g_invocation 2>/dev/null <"$T/tried"
  why="rollout-watch-$tx.service did not show that it can revert the change: ${g_outcome:-its trial left no result}$g_foreign"
  [ "$g_outcome" = complete ] || return 1
  case $NL$u_block$NL in
    *"${NL}InvocationID=$NL"* | *"${NL}InvocationID=$g_invocation$NL"*) ;;
    *InvocationID=*) why="another start of rollout-watch-$tx.service has tried it" && return 1 ;;
  esac
  for folder in $S $f_dirs; do
    # shellcheck disable=SC3013 # dash, bash and busybox have -ef
    [ "$R/proc/$u_pid/root${folder#"$R"}" -ef "$folder" ] || { why="rollout-watch-$tx.service is not seen to have the same ${folder#"$R"}$g_foreign" && return 1; }
  done
}

guard_is_reached() { # the next boot reaches basic.target, as systemd itself resolves its default target: in the answer, or, for a target of one's own, anew
  local needed
  ! guard_needs default.target basic.target || return 0
  ! guard_needs default.target multi-user.target || ! guard_needs multi-user.target basic.target || return 0
  for needed in $(lastly 10 systemctl list-dependencies --plain --no-pager default.target 2>/dev/null); do
    [ "$needed" != basic.target ] || return 0
  done
  return 1
}

guard_needs() { # UNIT OTHER: by the last answer, it requires or wants the other
  local needed
  processes_find_block "$1"
  for needed in $u_block; do
    case $needed in "$2" | "Requires=$2" | "Wants=$2") return 0 ;; esac
  done
  return 1
}
