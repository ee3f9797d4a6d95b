# The words of the checks inside the virtual machine. Each check prints one line, `pass` or `FAIL`, and what a failed one said.
# shellcheck shell=dash disable=SC2034

failed=0

passed() {
  echo "pass  $1"
}

failed() {
  echo "FAIL  $1"
  echo "$2" | sed 's/^/      /'
  failed=1
}

# check NAME COMMAND...: the command succeeds.
check() {
  local name=$1 said
  shift
  if said=$("$@" 2>&1); then passed "$name"; else failed "$name" "$* ended with $?: $said"; fi
}

# expect NAME PATTERN COMMAND...: the command succeeds and prints the pattern.
expect() {
  local name=$1 pattern=$2 said status
  shift 2
  said=$("$@" 2>&1)
  status=$?
  if [ $status -eq 0 ] && echo "$said" | grep -qE -- "$pattern"; then
    passed "$name"
  else
    failed "$name" "$* ended with $status, and should say '$pattern': $said"
  fi
}

# refuse NAME PATTERN COMMAND...: the command ends with 1 or 2, so not by a panic or a signal, and its error says the pattern.
refuse() {
  local name=$1 pattern=$2 said status
  shift 2
  said=$("$@" 2>&1)
  status=$?
  if { [ $status -eq 1 ] || [ $status -eq 2 ]; } && echo "$said" | grep -qE -- "$pattern"; then
    passed "$name: $(echo "$said" | head -n 1)"
  else
    failed "$name" "$* ended with $status, and should be refused with '$pattern': $said"
  fi
}

# field NAME: that field of the JSON object on standard input, if it is a number or a word.
field() {
  sed -n "s/^.*\"$1\":\"\{0,1\}\([^,\"}]*\).*\$/\1/p"
}
