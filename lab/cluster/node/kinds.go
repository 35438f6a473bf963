package node

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"tidemark.dev/tidemark/lab/cluster/cri"
	"tidemark.dev/tidemark/lab/wire"
)

// containerKinds looks a pod's containers up in the API, with the lab's rights and past any partition of the node.
func containerKinds(client kubernetes.Interface) cri.Kinds {
	return func(ctx context.Context, namespace, name, uid string) (map[string]wire.Kind, error) {
		pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("get pod: %w", err)
		}
		if string(pod.UID) != uid {
			return nil, fmt.Errorf("pod %s/%s has another UID by now", namespace, name)
		}
		kinds := map[string]wire.Kind{}
		for _, c := range pod.Spec.InitContainers {
			kinds[c.Name] = wire.Init
			if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
				kinds[c.Name] = wire.Sidecar
			}
		}
		for _, c := range pod.Spec.Containers {
			kinds[c.Name] = wire.Regular
		}
		return kinds, nil
	}
}
