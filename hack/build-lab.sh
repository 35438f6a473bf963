#!/usr/bin/env bash
# Builds bin/lab, the real Kubernetes in one process that the tests run on, and what runs beside it: bin/kubectl,
# bin/argo-rollouts, Argo Rollouts' own controller, with its CRDs in bin/argo-rollouts-crds, and bin/helm. Cold it takes minutes, then seconds.
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
# Upstream's own. As a part of the lab it would take twice as long to start, and tests run it thousands of times.
go build -o "$root/bin/kubectl" -ldflags "${flags[*]}" "$@" k8s.io/kubernetes/cmd/kubectl

# Upstream's own main package, straight from its module, and the CRDs that lie beside it there.
cd "$root/lab/argo"
argo=github.com/argoproj/argo-rollouts
version=$(go list -m -f '{{.Version}}' "$argo")
go build -o "$root/bin/argo-rollouts" -ldflags "-s -w -X $argo/utils/version.version=${version#v}" "$@" "$argo/cmd/rollouts-controller"

source=$(go list -m -f '{{.Dir}}' "$argo")/manifests/crds
crds=$root/bin/argo-rollouts-crds
# Only when they differ: a test may be reading them.
if ! diff -r --exclude=kustomization.yaml "$source" "$crds" >/dev/null 2>&1; then
	rm -rf "$crds"
	mkdir "$crds"
	install -m 0644 "$source"/*-crd.yaml "$crds/"
fi

cd "$root/lab/helm"
helm=helm.sh/helm/v4
version=$(go list -m -f '{{.Version}}' "$helm")
go build -o "$root/bin/helm" -ldflags "-s -w -X $helm/internal/version.version=$version" "$@" "$helm/cmd/helm"
