#!/usr/bin/env bash
# Writes every generated file of the repository below the directory given: "." to bring them up to date, another one to
# compare (hack/verify.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
readonly out=${1:?give a directory}

programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
mkdir -p "$out/deploy/manifests" "$out/deploy/pin" "$out/deploy/alerts" "$out/docs"

# help_of HEADING PROGRAM [COMMAND...] prints the help of a command as a section, then that of the commands below it.
help_of() {
  local heading=$1 text command
  shift
  # HOME stands in the defaults of some flags.
  text=$(cd "$programs" && HOME='$HOME' "./$@" --help 2>&1 | sed 's/[[:space:]]*$//')
  printf '\n%s %s\n\n```\n%s\n```\n' "$heading" "$*" "$text"
  awk '/^Available Commands:/ {on = 1; next} /^$/ {on = 0} on && $1 != "help" && $1 != "completion" {print $1}' <<<"$text" |
    while IFS= read -r command; do help_of '###' "$@" "$command"; done
}

# RBAC, from the markers beside the code that needs the rights.
go tool -modfile=go.tools.mod controller-gen rbac:roleName=tidemark-controller \
  paths=./internal/controller output:rbac:dir="$out/deploy/manifests"
go tool -modfile=go.tools.mod controller-gen rbac:roleName=tidemark-pin \
  paths=./internal/cluster paths=./internal/cluster/cleanup paths=./internal/webhook output:rbac:dir="$out/deploy/pin"

# The alerts once more, for the Prometheus operator.
{
  echo '# Generated from rules.yaml by `make generate`.'
  printf '%s\n' 'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' 'metadata:' '  name: tidemark' '  namespace: tidemark-system' 'spec:'
  sed -n '/^groups:/,$ s/^/  /p' deploy/alerts/rules.yaml
} >"$out/deploy/alerts/prometheusrule.yaml"

# Commands with their flags, from the programs themselves.
go build -buildvcs=false -o "$programs/" ./cmd/...
{
  echo '# Commands'
  echo
  echo 'What the programs say about themselves. Written by `make generate`.'
  help_of '##' tidemark
  help_of '##' tidemark-controller
} >"$programs/commands.md"
mv "$programs/commands.md" "$out/docs/commands.md"
