package scenario

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/helm"
)

// Release is the name of the Helm release of the chart `checkout`.
const Release = "checkout"

// Revisions are those of the release, as "1 deployed, 2 pending-upgrade", by the labels of Helm's records.
func (s *Scene) Revisions(ctx context.Context) (string, error) {
	list := &corev1.SecretList{}
	err := s.API.List(ctx, list, ctrlclient.InNamespace(s.Namespace), ctrlclient.MatchingLabels{"owner": "helm", "name": Release})
	if err != nil {
		return "", err
	}
	statuses := map[int]string{}
	for i := range list.Items {
		n, err := strconv.Atoi(list.Items[i].Labels["version"])
		if err != nil {
			return "", err
		}
		statuses[n] = list.Items[i].Labels["status"]
	}
	var out []string
	for _, n := range slices.Sorted(maps.Keys(statuses)) {
		out = append(out, fmt.Sprintf("%d %s", n, statuses[n]))
	}
	return strings.Join(out, ", "), nil
}

// CutOff starts a deploy that hangs, waits until it waits for pods, and kills it as the loss of its machine would.
func (s *Scene) CutOff(ctx context.Context, deploy *exec.Cmd) error {
	if err := deploy.Start(); err != nil {
		return err
	}
	err := Await(ctx, "the release to be pending", func() error {
		revisions, err := s.Revisions(ctx)
		if err == nil && !strings.HasSuffix(revisions, "pending-upgrade") {
			err = fmt.Errorf("its revisions are %s", revisions)
		}
		return err
	})
	if killed := deploy.Process.Kill(); err == nil {
		err = killed
	}
	_ = deploy.Wait() // it was killed
	return err
}

// DeployEnds is when the guard of the release's deploy stops its command, as its Lease says: a deploy that gives no sign of life is
// certainly dead then.
func (s *Scene) DeployEnds(ctx context.Context) (time.Time, error) {
	l := &coordinationv1.Lease{}
	if err := s.API.Get(ctx, ctrlclient.ObjectKey{Namespace: s.Namespace, Name: v1.DeployLeasePrefix + Release}, l); err != nil {
		return time.Time{}, err
	}
	lease, err := helm.DecodeLease(l, time.Now())
	if err != nil {
		return time.Time{}, err
	}
	return lease.Began.Add(lease.Timeout), nil
}
