package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

const (
	pathCRDs       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	pathNamespaces = "/api/v1/namespaces"
	yamlType       = "application/yaml"
)

var rolloutResource = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}

// installArgo makes what the controller needs: its namespace, and its CRDs, which are served when it returns.
func (l *Lab) installArgo(ctx context.Context) error {
	api, err := discovery.NewDiscoveryClientForConfig(l.RESTConfig())
	if err != nil {
		return err
	}
	namespace := []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + ArgoRolloutsNamespace + "}\n")
	if err := create(ctx, api, pathNamespaces, namespace); err != nil {
		return err
	}
	files, err := l.argoCRDs()
	if err != nil {
		return err
	}
	if served, err := servedResources(api); err != nil || served >= len(files) {
		return err
	}
	var all sync.WaitGroup // each takes the server a second
	errs := make([]error, len(files))
	for i, file := range files {
		all.Go(func() { errs[i] = createFile(ctx, api, file) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return poll(ctx, nil, func() (bool, error) {
		served, err := servedResources(api)
		return served >= len(files), err
	})
}

func createFile(ctx context.Context, api *discovery.DiscoveryClient, crd string) error {
	content, err := os.ReadFile(crd)
	if err != nil {
		return err
	}
	if err := create(ctx, api, pathCRDs, content); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(crd), err)
	}
	return nil
}

func (l *Lab) argoCRDs() ([]string, error) {
	dir, err := l.argoPath("-crds")
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%w (no CRD in %s)", ErrNoBinary, dir)
	}
	return files, err
}

// create sends a manifest as it is, for the server to read. An object that is there already is left alone. It is not
// `kubectl apply`, which would put a copy into an annotation of the object, where Argo's CRDs have no room.
func create(ctx context.Context, api *discovery.DiscoveryClient, path string, manifest []byte) error {
	err := api.RESTClient().Post().AbsPath(path).SetHeader("Content-Type", yamlType).Body(manifest).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// servedResources counts the kinds of Argo's that the API serves: those whose CRDs are established.
func servedResources(api *discovery.DiscoveryClient) (int, error) {
	list, err := api.ServerResourcesForGroupVersion(rolloutResource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	count := 0
	for _, resource := range list.APIResources {
		if !strings.Contains(resource.Name, "/") { // else it is a subresource
			count++
		}
	}
	return count, nil
}

// poll calls check until it returns true or an error, the context ends, or stop is closed.
func poll(ctx context.Context, stop <-chan struct{}, check func() (bool, error)) error {
	for {
		if done, err := check(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-stop:
			return errEnded
		case <-time.After(pollPause):
		}
	}
}
