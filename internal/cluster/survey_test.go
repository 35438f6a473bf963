package cluster

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/stamp"
)

// api is a cluster in memory that counts what it is asked, and refuses some of it.
type api struct {
	client.Client
	// forbidden are requests that are refused: "list secrets".
	forbidden []string
	asked     map[string]int
}

func newAPI(t *testing.T, file string, forbidden ...string) *api {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a := &api{forbidden: forbidden, asked: map[string]int{}}
	known := runtime.NewScheme() // of its own, for kinds of the file may be added to it
	if err := scheme.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(known)
	for _, document := range strings.Split(string(data), "\n---\n") {
		builder.WithObjects(workloadFrom(t, document))
	}
	a.Client = builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := a.ask("get", obj, key.Name); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := a.ask("list", list, ""); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	return a
}

func (a *api) ask(verb string, obj runtime.Object, name string) error {
	gvk, err := apiutil.GVKForObject(obj, scheme.Scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	resource := Plural(gvk)
	a.asked[verb+" "+resource]++
	if slices.Contains(a.forbidden, verb+" "+resource) {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, name, nil)
	}
	return nil
}

func survey(c client.Client) Survey {
	return Survey{
		Client: c, Now: func() time.Time { return noon }, Kinds: BuiltinKinds(), Namespace: "shop",
		System: "tidemark-system", DefaultMode: stamp.Observe,
	}
}

func read(t *testing.T, s Survey) *Sight {
	t.Helper()
	sight, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sight
}

// fleets words what was seen: for each workload its mode, pods and objects.
func fleets(sight *Sight) map[string]string {
	out := map[string]string{}
	for _, w := range sight.Workloads {
		words := []string{string(w.Fleet.Mode)}
		for _, p := range w.Fleet.Pods {
			words = append(words, p.Name)
		}
		for _, o := range w.Fleet.Objects {
			name := o.Use.Object.Relative(w.Namespace)
			if o.Live {
				name += "(live)"
			}
			words = append(words, name)
		}
		for _, o := range w.Ignored {
			words = append(words, "ignored:"+o.String())
		}
		out[w.String()] = strings.Join(words, " ")
	}
	return out
}

var shop = map[string]string{
	"deployment/web": "roll web-1-a configmap/web(live) secret/db configmap/old ignored:configmap/shared/rules",
	"statefulset/db": "roll db-0 secret/db",
	"cronjob/report": "roll report-1-x configmap/web(live)",
	"daemonset/odd":  "roll",
}

func TestASurveyGivesEachWorkloadItsPodsAndObjects(t *testing.T) {
	sight := read(t, survey(newAPI(t, "testdata/shop.yaml")))
	if diff := cmp.Diff(shop, fleets(sight)); diff != "" {
		t.Errorf("fleets (-want +got):\n%s", diff)
	}
	if len(sight.Remarks) > 0 || sight.Installed {
		t.Errorf("remarks %q, installed %v; want none", sight.Remarks, sight.Installed)
	}
	for _, w := range sight.Workloads {
		if w.Name == "odd" && !strings.Contains(w.Judge().Reason, "no containers") {
			t.Errorf("a template without containers: %+v", w.Judge())
		}
	}
}

func TestASurveyOfNamedWorkloadsReadsOnlyThem(t *testing.T) {
	a := newAPI(t, "testdata/shop.yaml")
	s := survey(a)
	kinds := BuiltinKinds()
	s.Targets = []Target{{kinds[0], "shop", "web"}, {kinds[1], "shop", "nothere"}}
	s.Values = true
	sight := read(t, s)
	if diff := cmp.Diff(map[string]string{"deployment/web": shop["deployment/web"]}, fleets(sight)); diff != "" {
		t.Errorf("fleets (-want +got):\n%s", diff)
	}
	if len(sight.NotFound) != 1 || sight.NotFound[0].String() != "statefulset/nothere" {
		t.Errorf("not found: %v", sight.NotFound)
	}
	if w := sight.Workloads[0]; w.Values[w.Fleet.Objects[0].Use.Object]["LEVEL"] != "info" {
		t.Errorf("values %v", w.Values)
	}
	for _, list := range []string{"list configmaps", "list secrets", "list deployments"} {
		// The history is listed: it is in ConfigMaps of Tidemark's own namespace.
		if n := a.asked[list]; n > 1 || n == 1 && list != "list configmaps" {
			t.Errorf("%s: %d times", list, n)
		}
	}
}

func TestAMissingRightIsARemarkAndWhatDependsOnItUnknown(t *testing.T) {
	for Right, tc := range map[string]struct {
		remark   string
		affected []string
	}{
		"list secrets":     {"in namespace shop", []string{"deployment/web", "statefulset/db"}},
		"list configmaps":  {"in namespace shop", []string{"cronjob/report", "deployment/web"}},
		"list pods":        {"in namespace shop", []string{"cronjob/report", "deployment/web", "statefulset/db"}},
		"list replicasets": {"in namespace shop", []string{"deployment/web"}},
		"list jobs":        {"in namespace shop", []string{"cronjob/report"}},
		"list deployments": {"in namespace shop", nil},
		"get namespaces":   {"/shop of the cluster", nil},
		"get leases":       {"", nil}, // without history it is no matter
	} {
		t.Run(Right, func(t *testing.T) {
			sight := read(t, survey(newAPI(t, "testdata/shop.yaml", Right)))
			remarks := strings.Join(sight.Remarks, "\n")
			if tc.remark == "" && remarks != "" {
				t.Errorf("remarks %q, want none", sight.Remarks)
			}
			for _, part := range []string{"missing the right to " + Right, tc.remark} {
				if tc.remark != "" && !strings.Contains(remarks, part) {
					t.Errorf("remarks %q, want one with %q", sight.Remarks, part)
				}
			}
			var affected []string
			for _, w := range sight.Workloads {
				said := w.Blind
				for _, o := range w.Fleet.Objects {
					said += o.Problem
				}
				if !strings.Contains(said, "missing the right to "+Right) {
					continue
				}
				affected = append(affected, w.String())
				if r := w.Judge(); r.Verdict != fleet.Unknown {
					t.Errorf("%s is %s (%s), want unknown", w, r.Verdict, r.Reason)
				}
			}
			slices.Sort(affected)
			if !slices.Equal(affected, tc.affected) {
				t.Errorf("affected are %v, want %v", affected, tc.affected)
			}
		})
	}
}

func TestASurveyNamesTheKindsOfWhichItMayListNone(t *testing.T) {
	sight := read(t, survey(newAPI(t, "testdata/shop.yaml", "list statefulsets")))
	if len(sight.LeftOut) != 1 || sight.LeftOut[0].GroupVersionKind.Kind != "StatefulSet" {
		t.Errorf("left out are %v, want the StatefulSets", sight.LeftOut)
	}
}

func TestWithNoRightToAnyKindASurveyFails(t *testing.T) {
	a := newAPI(t, "testdata/shop.yaml", "list deployments", "list statefulsets", "list daemonsets", "list cronjobs")
	_, err := survey(a).Read(t.Context())
	if err == nil || !strings.Contains(err.Error(), "missing the right to list deployments, statefulsets, daemonsets, cronjobs") {
		t.Errorf("error %v", err)
	}
}

func TestAKindThatIsNotServedIsARemark(t *testing.T) {
	a := newAPI(t, "testdata/shop.yaml")
	s := survey(a)
	s.Kinds = append(s.Kinds, Kind{schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Machine"}, defaultTemplatePath})
	s.Client = unserved{a.Client, "Machine"}
	sight := read(t, s)
	if len(sight.Workloads) != len(shop) {
		t.Errorf("%d workloads, want %d", len(sight.Workloads), len(shop))
	}
	if len(sight.Remarks) != 1 || !strings.Contains(sight.Remarks[0], "Machine of example.org/v1 is not served") {
		t.Errorf("remarks %q", sight.Remarks)
	}
}

// unserved answers for one kind as a cluster does that has no such kind.
type unserved struct {
	client.Client
	kind string
}

func (u unserved) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if l, ok := list.(*unstructured.UnstructuredList); ok && l.GetKind() == u.kind+"List" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(u.kind)}, "")
	}
	return u.Client.List(ctx, list, opts...)
}

func TestPodsBelongToEveryWorkloadAboveThem(t *testing.T) {
	a := newAPI(t, "testdata/kinds.yaml")
	s := survey(a)
	k, err := ParseKind("example.org/v1/Shop=spec.front.template")
	if err != nil {
		t.Fatal(err)
	}
	s.Kinds = append(s.Kinds, k)
	want := map[string]string{
		"rollout/web":       "observe web-1-a",
		"shop/corner":       "observe corner-1-a",
		"deployment/corner": "observe corner-1-a",
	}
	if diff := cmp.Diff(want, fleets(read(t, s))); diff != "" {
		t.Errorf("fleets (-want +got):\n%s", diff)
	}
	// Who looks for built-in kinds only does not ask for what stands above others.
	s.Kinds = BuiltinKinds()
	delete(want, "shop/corner")
	if diff := cmp.Diff(want, fleets(read(t, s))); diff != "" {
		t.Errorf("of the built-in kinds (-want +got):\n%s", diff)
	}
}
