package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/test/scenario"
)

var releases = benchmark{
	name: "releases", title: "Releases: 5,000 records of Helm's, 20 deploys under way among them",
	lab: client.Options{NoNodes: true},
	run: runReleases,
}

// runReleases weighs the controller on a cluster without a release, and on one whose releases have ten revisions each, some with a
// deploy under way: at rest, and when it has looked at them for a while.
func runReleases(ctx context.Context, s *site) (report, error) {
	const count, revisions, underWay, size = 500, 10, 20, 50_000
	rep := report{}
	var rows [][]string
	var nothing int64 // resident memory with no release
	take := func(what string, watched int) error {
		row, resident, err := s.watched(ctx, what, watched)
		if nothing == 0 {
			nothing = resident
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f×", float64(resident)/float64(max(1, nothing)))))
		return err
	}
	if err := take("no release", 0); err != nil {
		return rep, err
	}
	s.say("making the records")
	if err := s.releasesWithHistory(ctx, count, revisions, size); err != nil {
		return rep, err
	}
	if err := take(fmt.Sprintf("%d settled records", count*revisions), 0); err != nil {
		return rep, err
	}
	for i := range underWay {
		if err := s.deployUnderWay(ctx, i, revisions+1); err != nil {
			return rep, err
		}
	}
	if err := take(fmt.Sprintf("%d deploys under way beside them", underWay), underWay); err != nil {
		return rep, err
	}
	rep.table([]string{"", "resident", "of it the program's file", "peak", "live heap", "requests", "processor time", "of the memory without"}, rows...)
	rep.text("%d releases of %d revisions, each record of %d KB, in 10 namespaces. The controller is started fresh and left alone for %v; it looks at the releases every 15 s, the default, and no workload is there.",
		count, revisions, size/1000, settled)
	return rep, nil
}

// watched starts a controller, and reads what it needs when it has shown so many deploys under way.
func (s *site) watched(ctx context.Context, what string, want int) (row []string, resident int64, err error) {
	if err := s.lab.ResetRequests(ctx); err != nil {
		return nil, 0, err
	}
	c, err := s.controller(ctx)
	if err != nil {
		return nil, 0, err
	}
	row, resident, err = s.whatItNeeds(ctx, c, what, want)
	return row, resident, errOf(err, c.Stop())
}

func (s *site) whatItNeeds(ctx context.Context, c *scenario.Controller, what string, want int) (row []string, resident int64, err error) {
	if row, err = s.weighed(ctx, c, what); err != nil {
		return nil, 0, err
	}
	m, err := memoryOf(c.PID())
	if err != nil {
		return nil, 0, err
	}
	used, err := processorTime(c.PID())
	if err != nil {
		return nil, 0, err
	}
	shown, err := pendingShown(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	s.want(shown == want, "the controller shows %d deploys under way, want %d", shown, want)
	return append(row, used.String()), m.resident, nil
}

// releaseNamespace is the one of ten in which a release is.
func releaseNamespace(i int) string { return fmt.Sprintf("releases-%d", i%10) }

func (s *site) releasesWithHistory(ctx context.Context, count, revisions, size int) error {
	for i := range 10 {
		if err := s.namespace(ctx, releaseNamespace(i), ""); err != nil {
			return err
		}
	}
	payload := make([]byte, size)
	return each(ctx, count*revisions, workers, func(ctx context.Context, i int) error {
		release, revision, status := i/revisions, i%revisions+1, "superseded"
		if revision == revisions {
			status = "deployed"
		}
		return s.api.Create(ctx, helmRecord(releaseNamespace(release), fmt.Sprintf("release-%d", release), revision, status, payload))
	})
}

// deployUnderWay makes the next revision of a release, which is pending, with the lease of its guard.
func (s *site) deployUnderWay(ctx context.Context, i, revision int) error {
	name, namespace, id := fmt.Sprintf("release-%d", i), releaseNamespace(i), fmt.Sprintf("deploy-%d", i)
	document := fmt.Sprintf(`{"name":%q,"version":%d,"info":{"status":"pending-upgrade"}}`, name, revision)
	record := helmRecord(namespace, name, revision, "pending-upgrade", []byte(base64.StdEncoding.EncodeToString([]byte(document))))
	record.Labels[v1.LabelDeploy] = id
	now := metav1.NowMicro()
	return errOf(s.api.Create(ctx, record), s.api.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: v1.DeployLeasePrefix + name, Labels: map[string]string{v1.LabelDeploy: id},
			Annotations: map[string]string{v1.AnnotationDeployRevision: fmt.Sprint(revision), v1.AnnotationDeployBegan: now.UTC().Format(time.RFC3339)},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("bench"), LeaseDurationSeconds: ptr.To[int32](180), RenewTime: &now},
	}))
}

// pendingShown counts the deploys under way that the controller's metrics show.
func pendingShown(ctx context.Context, c *scenario.Controller) (count int, err error) {
	text, err := c.Metrics(ctx)
	return strings.Count(text, "\ntidemark_release_pending_seconds{"), err
}
