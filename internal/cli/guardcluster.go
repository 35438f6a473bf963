package cli

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/cluster/revisions"
	"tidemark.dev/tidemark/internal/guard"
	"tidemark.dev/tidemark/internal/helmline"
)

// requestPatience bounds each request of a guard: a deploy does not wait for an API that does not answer.
const requestPatience = 10 * time.Second

// target connects to the cluster that the command works on, by helm's flags where it is helm, and gives the release's namespace.
func (o *guardOptions) target() (*cluster.Connection, string, error) {
	flags := o.clusterFlags()
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", err
	}
	c, err := o.dial(config)
	return c, namespace, err
}

// clusterFlags lead to the cluster: helm's where the command is helm.
func (o *guardOptions) clusterFlags() *genericclioptions.ConfigFlags {
	if o.helm != nil {
		return helmFlags(o.helm.Cluster)
	}
	return o.session.flags
}

// dial connects without asking the cluster first what it serves: the kinds that a guard reads are known.
func (o *guardOptions) dial(config *rest.Config) (*cluster.Connection, error) {
	config.Timeout = requestPatience
	config.UserAgent = "tidemark/" + o.Build.Version
	return cluster.Connect(config, guardedKinds(), o.Clock.Now)
}

func guardedKinds() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Secret", "ConfigMap", "Pod"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"} {
		mapper.Add(appsv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	mapper.Add(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	return mapper
}

// helmFlags are helm's flags about the cluster, as the flags of any other client.
func helmFlags(c helmline.Cluster) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true)
	for to, value := range map[**string]string{
		&flags.Namespace: c.Namespace, &flags.KubeConfig: c.Kubeconfig, &flags.Context: c.Context, &flags.APIServer: c.Server,
		&flags.CAFile: c.CAFile, &flags.TLSServerName: c.TLSServerName, &flags.BearerToken: c.Token, &flags.Impersonate: c.AsUser,
	} {
		*to = &value
	}
	flags.Insecure = &c.InsecureSkipTLSVerify
	if len(c.AsGroups) > 0 {
		flags.ImpersonateGroup = &c.AsGroups
	}
	return flags
}

// warn says where the pod that the guard runs in cannot protect the deploy. It is read with the rights of the pod itself, in the
// cluster that it runs in.
func (o *guardOptions) warn(ctx context.Context, pod guard.Pod) {
	config, err := o.Place.Config()
	if err != nil {
		return // a token without a cluster: not a pod's
	}
	c, err := o.dial(config)
	if err != nil {
		o.remark("whether this place protects the deploy is not known: " + err.Error())
		return
	}
	for _, text := range pod.Warnings(ctx, c.Client, o.timeout) {
		o.remark(text)
	}
}

// progressBeat is how often it is looked at what the rollouts are waiting for.
const progressBeat = 2 * time.Second

// follow says what the release's rollouts are waiting for, each time that it changes, until the returned function is called.
func (o *guardOptions) follow(ctx context.Context, c *cluster.Connection, name types.NamespacedName) (stop func()) {
	if !o.flags.progress {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := o.Clock.NewTicker(progressBeat)
		defer ticker.Stop()
		said := ""
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
			}
			text := strings.Join(revisions.Waiting(ctx, c.Client, name.Namespace, name.Name), "\n  ")
			if text != said && text != "" && ctx.Err() == nil {
				o.remark("waiting for\n  " + text)
			}
			said = text
		}
	}()
	return func() { cancel(); <-done }
}
