# The virtual machine: built once of Debian's packages, and booted. `run` sources this, and sets the variables.
# shellcheck shell=bash disable=SC2154

# Kernel modules, with those that they need. One that a kernel has built in is not missed.
modules=(nfit nd_btt nd_pmem dax_pmem device_dax virtio_pci virtio_console)
# The NVDIMMs: how each is used and the node that it is on; and the domain that their contents persist in (mem-ctrl or cpu).
nvdimms=(fsdax:0 fsdax:1)
persistence=mem-ctrl
image_size=256M

fail() {
  echo "vm/run: $*" >&2
  exit 2
}

need() { # need COMMAND PACKAGE: installs the package if the command is missing.
  if command -v "$1" >/dev/null; then return; fi
  [ "$(id -u)" -eq 0 ] || fail "$1 is missing; install the package $2, or run this once as root"
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends "$2" >/dev/null || fail "the package $2 cannot be installed"
}

# Fetches a package in its newest version and extracts it into $unpacked, without installing it.
extract() {
  (cd "$cache/packages" && apt-get -qq download "$1" 2>/dev/null) || fail "the package $1 cannot be fetched (try apt-get update)"
  dpkg-deb -x "$cache/packages/$1"_*.deb "$unpacked"
}

# Adds a module to the file system, behind those that it needs.
add_module() {
  local file needed to=$cache/base/modules/$1
  if [ -e "$to" ]; then return; fi
  file=$(find "$unpacked" -name "${1//_/[_-]}.ko*" | head -n 1)
  case $file in
  '') return ;;
  *.xz) xz -dc "$file" >"$to" ;;
  *) cp "$file" "$to" ;;
  esac
  for needed in $(tr '\0' '\n' <"$to" | sed -n 's/^depends=//p' | tr ',' ' '); do add_module "$needed"; done
  echo "$1" >>"$cache/base/modules/order"
}

# Makes vmlinuz and base.gz, the file system with busybox, mke2fs and modules, unless they are there.
build_rig() {
  [ "$(uname -m)" = x86_64 ] || fail "the machine is x86-64, and this is $(uname -m)"
  command -v apt-get >/dev/null || fail "the parts come from Debian's packages, and apt-get is missing"
  PATH=$PATH:/usr/sbin:/sbin
  need qemu-system-x86_64 qemu-system-x86
  need mke2fs e2fsprogs
  need xz xz-utils
  unpacked=$cache/unpacked
  local busybox=$unpacked/bin/busybox
  [ "$cache/base.gz" -nt "$here/rig.sh" ] && return 0
  echo "building the virtual machine in $cache"
  rm -rf "$cache"
  mkdir -p "$cache"/{packages,unpacked,base/{bin,sbin,modules}}
  # A package that only names the newest kernel.
  apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1 || apt-get -qq update || true
  local kernel
  kernel=$(apt-cache depends --no-recommends --no-suggests linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
  [ -n "$kernel" ] || fail "apt knows no package linux-image-cloud-amd64"
  extract "$kernel"
  extract busybox-static
  [ -x "$busybox" ] || busybox=$unpacked/usr/bin/busybox
  local base=$cache/base module file
  cp "$busybox" "$base/bin/busybox"
  for module in "${modules[@]}"; do add_module "$module"; done
  cp -L "$(command -v mke2fs)" "$base/sbin/mke2fs"
  ldd "$base/sbin/mke2fs" | grep -o '/[^ ]*' | while read -r file; do
    mkdir -p "$base${file%/*}"
    cp -L "$file" "$base$file"
  done
  cp "$unpacked"/boot/vmlinuz-* "$cache/vmlinuz"
  (cd "$base" && find . | "$busybox" cpio -o -H newc 2>/dev/null | gzip -1) >"$cache/base.gz.new"
  cp "$busybox" "$cache/busybox"
  rm -rf "$cache/packages" "$unpacked" "$base"
  mv "$cache/base.gz.new" "$cache/base.gz"
}

# boot COMMAND...: runs the command inside, prints what it prints, and waits until the machine is off. Its files are those
# of $payload, where the command begins. Sets `status`: its exit status, 137 if the machine was killed, 124 if it took longer than $deadline seconds.
#
# The machine is killed with SIGKILL once the condition that is set holds: `kill_on` (a pattern that a line matches, for the
# time that `kill_count` says), `kill_after` (milliseconds after the line `kill_from`) or `kill_at` (acknowledgements through each of so many `ports`). With `quiet`, only the lines of checks are printed.
boot() {
  printf '%q ' "$@" >"$payload/command"
  (cd "$work/files" && find . | "$cache/busybox" cpio -o -H newc 2>/dev/null) | cat - "$cache/base.gz" >"$work/initrd"
  local machine=(
    qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot
    -machine "q35,nvdimm=on,nvdimm-persistence=$persistence" -accel "tcg,thread=multi" -cpu max -smp 2
    -m "512M,slots=8,maxmem=3584M"
    -object "memory-backend-ram,id=ram0,size=256M" -object "memory-backend-ram,id=ram1,size=256M"
    -numa "node,nodeid=0,cpus=0,memdev=ram0" -numa "node,nodeid=1,cpus=1,memdev=ram1" -numa "dist,src=0,dst=1,val=21"
    -chardev "stdio,id=console,signal=off" -serial chardev:console
    -kernel "$cache/vmlinuz" -initrd "$work/initrd"
    -append "console=ttyS0 quiet loglevel=3 edd=off panic=-1 nokaslr vm.modes=$(IFS=,; echo "${nvdimms[*]%:*}")"
  )
  # Images take disk space only as they fill.
  local number image
  for number in "${!nvdimms[@]}"; do
    image=$images/nv$number.img
    [ -e "$image" ] || truncate -s "$image_size" "$image"
    machine+=(-object "memory-backend-file,id=nvm$number,share=on,mem-path=$image,size=$image_size")
    machine+=(-device "nvdimm,id=nvd$number,memdev=nvm$number,node=${nvdimms[number]#*:}")
  done
  # Ports for acknowledgements, each of which works at once: a write that has returned is in the host's file.
  machine+=(-device "virtio-serial-pci,ioeventfd=off")
  rm -f "$work"/acknowledgements.*
  for ((number = 1; number <= ports; number++)); do
    machine+=(-chardev "file,id=port$number,path=$work/acknowledgements.$number" -device "virtserialport,chardev=port$number")
  done
  local line='' part seen=0 begun=$SECONDS since='' over=''
  status=''
  exec {console}< <(exec "${machine[@]}" </dev/null 2>"$work/errors")
  machine_pid=$!
  while :; do
    if IFS= read -r -t 0.02 part <&"$console"; then
      line=${line}${part%$'\r'}
      heard
      line=''
    elif [ $? -gt 128 ]; then
      line+=$part
    else
      break
    fi
    [ -z "$machine_pid" ] && continue
    if [ $((SECONDS - begun)) -ge "$deadline" ]; then
      kill_machine 124
    elif [ -n "$since" ] && [ -n "$kill_after" ] && [ $((${EPOCHREALTIME/[.,]/} - since)) -ge "${kill_after}000" ]; then
      kill_machine 137
    elif [ -n "$kill_at" ] && [ "$(least)" -ge "$kill_at" ]; then
      kill_machine 137
    fi
  done
  exec {console}<&-
  machine_pid=''
  if [ -z "$status" ]; then
    echo "the machine ended by itself: $(cat "$work/errors")" >&2
    status=125
  fi
}

# The fewest acknowledgements that have come through a port.
least() {
  local number
  for ((number = 1; number <= ports; number++)); do
    wc -l 2>/dev/null <"$work/acknowledgements.$number" || echo 0
  done | sort -n | head -n 1
}

kill_machine() {
  kill -9 "$machine_pid" 2>/dev/null
  machine_pid='' status=$1
}

# Deals with $line, a line of the console.
heard() {
  if [ -n "$over" ]; then return; fi
  case $line in
  "vm: exit "*)
    status=${status:-${line#vm: exit }} over=1
    return
    ;;
  vm:*) ;;
  pass* | FAIL* | "      "*) echo "$line" ;;
  *) [ -n "$quiet" ] || echo "$line" ;;
  esac
  case $line in
  pass*) passes=$((passes + 1)) ;;
  FAIL*) failures=$((failures + 1)) ;;
  esac
  if [ "$line" = "$kill_from" ]; then since=${EPOCHREALTIME/[.,]/}; fi
  if [ -n "$kill_on" ] && [[ $line =~ $kill_on ]]; then
    seen=$((seen + 1))
    if [ "$seen" -eq "$kill_count" ] && [ -n "$machine_pid" ]; then kill_machine 137; fi
  fi
}
