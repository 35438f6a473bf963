package cleanup

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/release"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// releaseRecord is what Helm's records of a release say.
type releaseRecord struct {
	// revision is the newest; 0 when there is no record.
	revision int64
	// named are the names, of those looked for, in the manifests of the newest revision and of the newest that is deployed.
	named map[string]bool
}

// releaseRecord reads the records of the release, which Helm keeps as Secrets or as ConfigMaps. While an operation is under way,
// nothing can be said of what the release needs, and that is an error.
func (c Round) releaseRecord(ctx context.Context, name string, objects []snapshot.Snapshot) (releaseRecord, error) {
	newest, deployed, err := c.helmRecords(ctx, name)
	if err != nil || newest.Number == 0 {
		return releaseRecord{}, err
	}
	if operation, _ := newest.Status.Operation(); operation != release.NoOperation {
		return releaseRecord{}, fmt.Errorf("revision %d of release %s is %s: %s while it is being deployed", newest.Number, name, newest.Status, notCleaned)
	}
	out := releaseRecord{revision: newest.Number, named: map[string]bool{}}
	wanted := map[string]bool{}
	for _, o := range objects {
		wanted[o.Object.Name] = true
	}
	records := []release.Revision{newest}
	if deployed.Number > 0 && deployed.Number != newest.Number {
		records = append(records, deployed)
	}
	for _, r := range records {
		text, err := c.helmManifest(ctx, r)
		if err != nil {
			return releaseRecord{}, fmt.Errorf("read revision %d of release %s: %s: %w", r.Number, name, notCleaned, err)
		}
		for _, word := range strings.FieldsFunc(text, notInNames) {
			if word = strings.Trim(word, "-."); wanted[word] {
				out.named[word] = true
			}
		}
	}
	return out, nil
}

// helmRecords finds the newest revision and the newest that is deployed. A record that cannot be read may be either.
func (c Round) helmRecords(ctx context.Context, name string) (newest, deployed release.Revision, err error) {
	for _, kind := range []workload.ObjectKind{workload.Secret, workload.ConfigMap} {
		gvk := cluster.GVKOf(kind)
		var unreadable error
		err := cluster.EachItem(ctx, c.Client, cluster.MetadataList(gvk), cluster.PageSize, func(m *metav1.PartialObjectMetadata) {
			_, r, err := helmrecord.Decode(gvk.Kind, m)
			if err != nil {
				unreadable = fmt.Errorf("record %s of release %s: %s: %w", m.Name, name, notCleaned, err)
				return
			}
			if r.Number > newest.Number {
				newest = r
			}
			if r.Status == release.Deployed && r.Number > deployed.Number {
				deployed = r
			}
		}, client.InNamespace(c.Namespace), client.MatchingLabels(helmrecord.Labels(name)))
		needs := right("list", cluster.Plural(gvk), c.Namespace, "what the release has deployed is not known, so nothing is deleted")
		if err := blind(err, needs); err != nil {
			return release.Revision{}, release.Revision{}, err
		}
		if unreadable != nil {
			return release.Revision{}, release.Revision{}, unreadable
		}
	}
	return newest, deployed, nil
}

// helmManifest reads the manifest of a revision with those of its hooks.
func (c Round) helmManifest(ctx context.Context, r release.Revision) (string, error) {
	packed, err := helm.Payload(ctx, c.Client, c.Namespace, r)
	if err != nil {
		return "", blind(err, right("get", cluster.Plural(corev1.SchemeGroupVersion.WithKind(r.Kind)), c.Namespace, "the record of the release is not known"))
	}
	record, err := packed.Unpack()
	if err != nil {
		return "", err
	}
	text := record.Manifest
	for _, h := range record.Hooks {
		text += "\n" + h.Manifest
	}
	return text, nil
}
