package scenario

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client"
)

//go:embed testdata/*.yaml
var manifests embed.FS

// Manifest returns the YAML of an incident's scene.
func Manifest(name string) (string, error) {
	content, err := manifests.ReadFile("testdata/" + name + ".yaml")
	return string(content), err
}

// Scene is a namespace on a lab in which something happens.
type Scene struct {
	Lab       *client.Lab
	Namespace string
	// API reads and writes with all rights, as the people and programs of the scene do.
	API ctrlclient.WithWatch
}

// Open makes the namespace of a scene, with a mode of Tidemark's as its label where one is given.
func Open(ctx context.Context, lab *client.Lab, namespace, mode string) (*Scene, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	api, err := ctrlclient.NewWithWatch(lab.RESTConfig(), ctrlclient.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	s := &Scene{Lab: lab, Namespace: namespace, API: api}
	if _, _, err := lab.Kubectl(ctx, "create", "namespace", namespace); err != nil {
		return nil, err
	}
	if mode == "" {
		return s, nil
	}
	err = s.do(ctx, "label", "namespace", namespace, v1.LabelMode+"="+mode)
	return s, err
}

// Close removes the namespace, and waits until its containers have ended. What remains of it goes in its own time.
func (s *Scene) Close(ctx context.Context) error {
	if err := s.do(ctx, "delete", "namespace", s.Namespace, "--wait=false", "--ignore-not-found"); err != nil {
		return err
	}
	return Await(ctx, "the containers of "+s.Namespace+" to end", func() error {
		running, err := s.Running(ctx)
		if err == nil && len(running) > 0 {
			err = fmt.Errorf("%d run", len(running))
		}
		return err
	})
}

// Kubectl runs the real kubectl in the scene's namespace and returns what it wrote.
func (s *Scene) Kubectl(ctx context.Context, args ...string) (string, error) {
	out, _, err := s.Lab.Kubectl(ctx, append([]string{"-n", s.Namespace}, args...)...)
	return out, err
}

func (s *Scene) do(ctx context.Context, args ...string) error {
	_, err := s.Kubectl(ctx, args...)
	return err
}

// Apply runs kubectl apply on a manifest in the scene's namespace.
func (s *Scene) Apply(ctx context.Context, manifest string) error {
	_, _, err := s.Lab.KubectlWithInput(ctx, manifest, "apply", "-n", s.Namespace, "-f", "-")
	return err
}

// Set changes one key of a ConfigMap.
func (s *Scene) Set(ctx context.Context, configMap, key, value string) error {
	return s.patch(ctx, &corev1.ConfigMap{ObjectMeta: s.named(configMap)}, map[string]any{"data": map[string]any{key: value}})
}

// SetSecret changes one key of a Secret.
func (s *Scene) SetSecret(ctx context.Context, secret, key, value string) error {
	return s.patch(ctx, &corev1.Secret{ObjectMeta: s.named(secret)}, map[string]any{"stringData": map[string]any{key: value}})
}

func (s *Scene) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: name}
}

func (s *Scene) patch(ctx context.Context, object ctrlclient.Object, patch map[string]any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	if err := s.API.Patch(ctx, object, ctrlclient.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("change %s/%s: %w", s.Namespace, object.GetName(), err)
	}
	return nil
}

// Drain drains a node, as an upgrade of its machine would, and lets pods on it again.
func (s *Scene) Drain(ctx context.Context, node string) error {
	if _, _, err := s.Lab.Kubectl(ctx, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s"); err != nil {
		return err
	}
	_, _, err := s.Lab.Kubectl(ctx, "uncordon", node)
	return err
}

// RolledOut waits until kubectl says that the workload's rollout is complete.
func (s *Scene) RolledOut(ctx context.Context, workload string) error {
	return s.do(ctx, "rollout", "status", workload, "--timeout=120s")
}

const pause = 100 * time.Millisecond

// Await calls check until it returns nil; the context bounds it.
func Await(ctx context.Context, what string, check func() error) error {
	var last error
	for {
		err := check()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", what, context.Cause(ctx), last)
		case <-time.After(pause):
		}
	}
}
