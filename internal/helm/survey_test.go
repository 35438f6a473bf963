package helm

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/release"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func meta(name string, number int, status string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, number),
		CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
		Labels:            map[string]string{"owner": "helm", "name": name, "version": fmt.Sprint(number), "status": status},
	}
}

func secret(m metav1.ObjectMeta) *corev1.Secret { return holding(m, "{}") }

// holding is a record with a payload.
func holding(m metav1.ObjectMeta, document string) *corev1.Secret {
	packed := base64.StdEncoding.EncodeToString([]byte(document))
	return &corev1.Secret{ObjectMeta: m, Type: helmrecord.SecretType, Data: map[string][]byte{"release": []byte(packed)}}
}

func guardLease(name string, change func(*coordinationv1.Lease)) *coordinationv1.Lease {
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: v1.DeployLeasePrefix + name, Labels: map[string]string{v1.LabelDeploy: "d1"},
			Annotations: map[string]string{
				v1.AnnotationDeployRevision: "2", v1.AnnotationDeployStartedBy: "ann", v1.AnnotationDeployJob: "https://ci/1",
				v1.AnnotationDeployBegan: "2026-11-30T11:00:00Z", v1.AnnotationDeployTimeout: "10m",
			},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("guard-1"), LeaseDurationSeconds: ptr.To[int32](180)},
	}
	change(l)
	return l
}

// find surveys a cluster in memory in which the named kinds may not be listed.
func find(t *testing.T, s Survey, forbidden []string, objects ...client.Object) (*Sight, error) {
	t.Helper()
	types := map[string]string{}
	for _, o := range objects {
		if s, is := o.(*corev1.Secret); is {
			types[s.Name] = string(s.Type)
		}
	}
	inner := fake.NewClientBuilder().WithObjects(objects...).WithIndex(&corev1.Secret{}, "type", func(o client.Object) []string {
		return []string{types[o.GetName()]} // a list of metadata selects by metadata here, which has no type
	}).Build()
	s.Now = func() time.Time { return noon }
	s.Client = interceptor.NewClient(inner, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			if _, metadata := list.(*metav1.PartialObjectMetadataList); !metadata && gvk.Kind != "LeaseList" {
				t.Errorf("asked for the content of a %s", gvk.Kind)
			}
			if kind := strings.TrimSuffix(gvk.Kind, "List"); slices.Contains(forbidden, kind) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: plural(kind)}, "", nil)
			}
			err = c.List(ctx, list, opts...)
			if leases, are := list.(*coordinationv1.LeaseList); are {
				for i := range leases.Items { // the API server, unlike the one in memory, says when each was written
					leases.Items[i].ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: noon.Add(-4 * time.Minute)}}}
				}
			}
			return err
		},
	})
	return s.Find(t.Context())
}

func TestReleasesAreFoundInSecretsAndConfigMaps(t *testing.T) {
	other := secret(meta("web", 9, "deployed")) // of another type: not a record
	other.Type = corev1.SecretTypeOpaque
	pending := meta("web", 2, "pending-upgrade")
	pending.Labels[v1.LabelDeploy] = "d1"
	sight, err := find(t, Survey{}, nil,
		secret(meta("web", 1, "deployed")), secret(pending), other, &corev1.ConfigMap{ObjectMeta: meta("db", 3, "failed")},
		guardLease("web", func(*coordinationv1.Lease) {}), guardLease("gone", func(*coordinationv1.Lease) {}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range sight.Releases {
		v := release.Judge(r.Input)
		got = append(got, fmt.Sprintf("%s %d %s", r.NamespacedName, v.Newest.Number, v.State))
	}
	if want := []string{"shop/db 3 healthy", "shop/web 2 abandoned"}; !slices.Equal(got, want) || len(sight.Remarks) > 0 {
		t.Errorf("found %q and remarked %q, want %q", got, sight.Remarks, want)
	}
	if len(sight.Unrecorded) != 1 || sight.Unrecorded[0].Name != "gone" || sight.Unrecorded[0].Lease == nil {
		t.Errorf("without a record are %+v", sight.Unrecorded)
	}
	want := release.Lease{
		ResourceVersion: "999", Deploy: "d1", Revision: 2, Holder: "guard-1", Starter: "ann", Job: "https://ci/1", Began: noon.Add(-time.Hour),
		Timeout: 10 * time.Minute, Duration: 3 * time.Minute, Written: noon.Add(-4 * time.Minute), Unchanged: 4 * time.Minute,
	}
	if got := sight.Releases[1].Lease; got == nil || *got != want {
		t.Errorf("lease %+v, want %+v", got, want)
	}
}

func TestAnUndecodableRecordIsNamedAndStopsNothing(t *testing.T) {
	noNumber, noName, otherNumber, nameless := meta("a", 2, "deployed"), meta("b", 2, "deployed"), meta("c", 2, "deployed"), meta("d", 2, "deployed")
	noNumber.Labels["version"] = "two"
	delete(noName.Labels, "name")
	otherNumber.Labels["version"] = "3"
	delete(nameless.Labels, "name")
	nameless.Name = "stray"
	sight, err := find(t, Survey{}, nil,
		secret(noNumber), secret(noName), secret(otherNumber), secret(nameless), secret(meta("web", 1, "deployed")))
	if err != nil {
		t.Fatal(err)
	}
	if len(sight.Remarks) != 1 || !strings.Contains(sight.Remarks[0], "secret/stray in namespace shop") {
		t.Errorf("remarks %q", sight.Remarks)
	}
	for _, r := range sight.Releases {
		v := release.Judge(r.Input)
		if whole := r.Name == "web"; whole != (v.State == release.Healthy) || !whole && !strings.Contains(v.Reason, "secret/sh.helm.release.v1."+r.Name+".v2") {
			t.Errorf("%s: %s: %s", r.Name, v.State, v.Reason)
		}
	}
	if len(sight.Releases) != 4 {
		t.Errorf("found %d releases", len(sight.Releases))
	}
}

func TestALeaseThatCannotBeReadIsNotNone(t *testing.T) {
	for name, change := range map[string]func(*coordinationv1.Lease){
		"a revision that is no number": func(l *coordinationv1.Lease) { l.Annotations[v1.AnnotationDeployRevision] = "two" },
		"a timeout that is none":       func(l *coordinationv1.Lease) { l.Annotations[v1.AnnotationDeployTimeout] = "soon" },
		"an end that is no time":       func(l *coordinationv1.Lease) { l.Annotations[v1.AnnotationDeployEnded] = "yes" },
		"a pod that is none":           func(l *coordinationv1.Lease) { l.Annotations[v1.AnnotationDeployPod] = "ci/job" },
		"no duration":                  func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = nil },
	} {
		sight, err := find(t, Survey{Name: "web"}, nil, secret(meta("web", 2, "pending-upgrade")), secret(meta("db", 1, "deployed")), guardLease("web", change))
		if err != nil || len(sight.Releases) != 1 {
			t.Fatal(err, sight)
		}
		if v := release.Judge(sight.Releases[0].Input); v.State != release.Unknown || !strings.Contains(v.Reason, "lease tidemark-deploy-web") {
			t.Errorf("%s: %s: %s", name, v.State, v.Reason)
		}
	}
}

func TestMissingRightsAreSaid(t *testing.T) {
	objects := []client.Object{secret(meta("web", 2, "pending-upgrade"))}
	if _, err := find(t, Survey{Namespace: "shop"}, []string{"Secret", "ConfigMap"}, objects...); err == nil || !strings.Contains(err.Error(), "missing the right to list secrets and configmaps in namespace shop") {
		t.Errorf("error %v", err)
	}
	sight, err := find(t, Survey{}, []string{"ConfigMap"}, objects...)
	if err != nil || len(sight.Releases) != 1 || len(sight.Remarks) != 1 {
		t.Errorf("%v, %+v", err, sight)
	}
	sight, err = find(t, Survey{}, []string{"ConfigMap"}, guardLease("elsewhere", func(*coordinationv1.Lease) {}))
	if err != nil || len(sight.Unrecorded) > 0 {
		t.Errorf("%v: a release whose records may not be listed has none: %+v", err, sight)
	}
	sight, err = find(t, Survey{}, []string{"Lease"}, objects...)
	if err != nil || len(sight.Remarks) != 1 {
		t.Fatal(err, sight)
	}
	if v := release.Judge(sight.Releases[0].Input); v.State != release.Unknown {
		t.Errorf("without the right to see leases: %s", v.State)
	}
}
