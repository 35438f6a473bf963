#!/usr/bin/env bash
# Builds bin/lab, the real Kubernetes in one process that the tests run on. Cold it takes minutes, then seconds.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root/lab/cluster"

# Without a version in it the API server calls itself v0.0.0, which kubectl cannot parse.
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
minor=${minor%%.*}
stamp=k8s.io/component-base/version
flags=(-s -w
	-X "$stamp.gitVersion=$version" -X "$stamp.gitMajor=1" -X "$stamp.gitMinor=$minor"
	-X "$stamp.gitCommit=lab" -X "$stamp.gitTreeState=clean" -X "$stamp.buildDate=1970-01-01T00:00:00Z")

go build -o "$root/bin/lab" -ldflags "${flags[*]}" "$@" ./cmd/lab
