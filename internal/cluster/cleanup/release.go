package cleanup

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// What Helm puts on the objects of a release, and what keeps it from deleting one.
const (
	helmReleaseName      = helmrecord.AnnotationReleaseName
	helmReleaseNamespace = helmrecord.AnnotationReleaseNamespace
	helmResourcePolicy   = "helm.sh/resource-policy"
)

// RunRelease cleans up what Helm left in place for one release of the namespace: ConfigMaps and Secrets that the release made,
// that its chart told Helm to keep, and whose names differ by a trailing revision number or hash. The newest of each family
// stay, what the release as it is deployed has, and what anything uses. Everything is listed twice, and only what both
// listings find unneeded is deleted, in the state in which both found it, and until somebody deploys the release: Helm adopts an object that
// it made before without writing it.
func (c Round) RunRelease(ctx context.Context, release string) (*Outcome, error) {
	first, err := c.judgeRelease(ctx, release)
	if err != nil || c.DryRun || !hasDeletion(first) {
		if err == nil {
			c.write(ctx, first) // of a dry run only whether it would be left
		}
		return first, err
	}
	newest, _, err := c.helmRecords(ctx, release)
	if err != nil {
		return nil, err
	}
	second, err := c.judgeRelease(ctx, release)
	if err != nil {
		return nil, err
	}
	agree(second, first)
	c.writeWhile(ctx, second, func(ctx context.Context) (string, error) {
		now, _, err := c.helmRecords(ctx, release)
		if err == nil && (now.Number != newest.Number || now.Status != newest.Status) {
			return fmt.Sprintf("release %s was deployed meanwhile, which may need it: run it again", release), nil
		}
		return "", err
	})
	return second, nil
}

func hasDeletion(c *Outcome) bool {
	for _, item := range c.Items {
		if item.Action == snapshot.Delete {
			return true
		}
	}
	return false
}

// agree takes back the deletions that the earlier listing did not find.
func agree(out, earlier *Outcome) {
	found := map[workload.Object]string{}
	for _, item := range earlier.Items {
		if item.Action == snapshot.Delete {
			found[item.Object] = item.UID + "/" + item.ResourceVersion
		}
	}
	for i := range out.Items {
		if item := &out.Items[i]; item.Action == snapshot.Delete && found[item.Object] != item.UID+"/"+item.ResourceVersion {
			item.Action, item.Reason, item.Detail = snapshot.Keep, snapshot.Young, "it was written, or its last use ended, a moment ago"
		}
	}
}

func (c Round) judgeRelease(ctx context.Context, release string) (*Outcome, error) {
	out := &Outcome{}
	objects, err := c.keptObjects(ctx, release)
	if err != nil {
		return nil, err
	}
	out.Now = c.Now()
	if len(objects) == 0 {
		return out, nil
	}
	record, err := c.releaseRecord(ctx, release, objects)
	if err != nil {
		return nil, err
	}
	if record.revision == 0 {
		out.Remarks = append(out.Remarks, fmt.Sprintf("no record of release %s is in namespace %s, so what it has deployed is not known: "+
			"it was uninstalled, or Helm keeps its records elsewhere", release, c.Namespace))
	}
	found, err := c.uses(ctx, objects)
	if err != nil {
		return nil, err
	}
	stock := snapshot.ReleaseStock{Now: out.Now, Objects: objects, Uses: found.uses, Named: record.named, Revision: record.revision}
	for _, v := range c.Retention.PlanRelease(stock) {
		out.Items = append(out.Items, Item{Verdict: v})
	}
	c.tellQuotas(ctx, out)
	return out, nil
}

// keptObjects lists the config objects that Helm was told to keep for the release.
func (c Round) keptObjects(ctx context.Context, release string) ([]snapshot.Snapshot, error) {
	var out []snapshot.Snapshot
	for _, kind := range c.objectKinds() {
		gvk := cluster.GVKOf(kind)
		err := cluster.EachItem(ctx, c.Client, cluster.MetadataList(gvk), cluster.PageSize, func(m *metav1.PartialObjectMetadata) {
			if m.DeletionTimestamp == nil && keptFor(m, release) {
				s, _ := snapshot.ReadVersioned(kind, m)
				out = append(out, s)
			}
		}, client.InNamespace(c.Namespace))
		if err := blind(err, right("list", cluster.Plural(gvk), c.Namespace, notCleaned)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keptFor reports whether Helm made the object for this very release, and leaves it in place. It reads the policy as Helm does.
func keptFor(m *metav1.PartialObjectMetadata, release string) bool {
	namespace, said := m.Annotations[helmReleaseNamespace]
	return m.Annotations[helmReleaseName] == release && (!said || namespace == m.Namespace) &&
		strings.EqualFold(strings.TrimSpace(m.Annotations[helmResourcePolicy]), "keep")
}
