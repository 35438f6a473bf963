package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
)

// pausable is a cluster in which the objects of these names are paused by somebody.
type pausable struct {
	client.Client
	paused map[string]string
	err    error
}

func (p pausable) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if by, paused := p.paused[key.Name]; paused {
		obj.SetLabels(map[string]string{v1.LabelPaused: v1.True})
		obj.SetAnnotations(map[string]string{v1.AnnotationPaused: v1.True, v1.AnnotationPausedBy: by})
	}
	if obj.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
		return p.err
	}
	return nil
}

func (pausable) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

func TestAResumeSaysWhatElseIsPaused(t *testing.T) {
	web := stop{cluster.StopWorkload(cluster.Target{Kind: cluster.BuiltinKinds()[0], Namespace: "shop", Name: "web"}), "deployment/web", false}
	shop := stop{cluster.StopNamespace("shop"), "namespace shop", false}
	all := stop{cluster.StopNamespace("tidemark-system"), "everything", true}
	for name, tc := range map[string]struct {
		stop           stop
		paused         []string
		err            error
		want, remarked string
	}{
		"nothing else": {web, []string{"web"}, nil, "deployment/web is resumed: at most one rollout follows for each workload", ""},
		"its namespace": {
			web, []string{"web", "shop"}, nil,
			"deployment/web is resumed, but Tidemark still writes nothing to it: namespace shop is paused, by ann", "",
		},
		"its namespace alone": {
			web, []string{"shop"}, nil,
			"deployment/web is not paused itself, but Tidemark writes nothing to it: namespace shop is paused, by ann", "",
		},
		"its namespace and everything": {
			web, []string{"web", "shop", "tidemark-system"}, nil,
			"deployment/web is resumed, but Tidemark still writes nothing to it: everything is paused, by ann; namespace shop is paused, by ann", "",
		},
		"everything, of a namespace": {
			shop, []string{"shop", "tidemark-system"}, nil,
			"namespace shop is resumed, but Tidemark still writes nothing to it: everything is paused, by ann", "",
		},
		"everything itself": {all, []string{"tidemark-system"}, nil, "everything is resumed: at most one rollout follows for each workload", ""},
		"namespaces that may not be read": {
			web, []string{"web"}, errors.New("forbidden"),
			"deployment/web is resumed: at most one rollout follows for each workload",
			"remark: whether anything wider than deployment/web is paused is not known: get namespace tidemark-system: forbidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := pausable{paused: map[string]string{}, err: tc.err}
			for _, p := range tc.paused {
				api.paused[p] = "ann"
			}
			var out, remarks bytes.Buffer
			o := &pauseOptions{
				IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &remarks}, connection: &cluster.Connection{Client: api},
				resume: true, system: "tidemark-system", stops: []stop{tc.stop},
			}
			if err := o.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(out.String()); got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
			if got := strings.TrimSpace(remarks.String()); got != tc.remarked {
				t.Errorf("it remarks %q, want %q", got, tc.remarked)
			}
		})
	}
}
