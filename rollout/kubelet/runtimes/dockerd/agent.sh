dockerd_root() { # of the process `process`, into `data`
  local config n_value
  data='' config=''
  if processes_mentions "$process" --data-root || processes_mentions "$process" --config-file; then
    homes_command_line "$process"
    homes_option ' --config-file '
    config=$n_value
    homes_option ' --data-root '
    data=$n_value
  fi
  [ -n "$data" ] || dockerd_read_data_root "$R${config:-/etc/docker/daemon.json}"
  data=${data:-/var/lib/docker}
}

dockerd_layers() { # each layer is in a file of its own until it is extracted; false where that cannot be read
  local data path
  dockerd_root
  [ -d "$R$data/tmp" ] || return 1
  set +f
  for path in "$R$data"/tmp/GetImageBlob*; do [ ! -e "$path" ] || { pulls_unnamed && break; }; done
  set -f
}

dockerd_read_data_root() { # FILE of dockerd's, into `data`
  local line text
  while read -r line || [ -n "$line" ]; do
    case $line in *'"data-root"'*:*) text=${line#*'"data-root"'} ;; *) continue ;; esac
    text=${text#*'"'}
    data=${text%%'"'*}
    return
  done 2>/dev/null <"$1"
}
