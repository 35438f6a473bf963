package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/workload"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	*session
	container, output string
}

// verifyOptions are what verify does.
type verifyOptions struct {
	genericiooptions.IOStreams
	survey         cluster.Survey
	pod, container string
	output         string
	run            func(ctx context.Context, namespace, pod, container string, command ...string) ([]byte, error)
	namespace      string
	getPod         func(context.Context) (*corev1.Pod, error)
}

// errWrong ends a run in which something that was known turned out wrong; it is not reported.
var errWrong = errors.New("wrong")

func newVerify(s *session, name string) *cobra.Command {
	flags := &verifyFlags{session: s}
	cmd := &cobra.Command{
		Use:   "verify POD",
		Short: "Look into a pod, and say whether what is known of it is right",
		Long: fill(name, `
			Look into the containers of a running pod with your own rights, as kubectl exec does, and say whether
			what evidence tells of the ConfigMaps that they loaded is right. It reads the environment of the
			process with cat and env, and the files that show ConfigMaps with cat. What comes from Secrets is
			not looked at, and no value is printed.

			right: the process's environment has what evidence tells. wrong: it has something else. unknown: looking
			does not decide, such as in an image with neither cat nor env ("cannot look"). Files are replaced
			while a program runs: they tell what they hold now, and not what was read.

			It needs the right to create pods/exec, which Tidemark's controller does not have. Exit status: 0,
			1 when something is wrong, or 2 on any error.`),
		Example: examples(name, `
			tidemark verify web-5d8f7c-x2k4q

			# One container, for a script
			tidemark verify -n shop web-5d8f7c-x2k4q -c app -o json | jq -r '.checks[] | .object + " " + .outcome'`),
		ValidArgsFunction: s.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.toOptions(args)
			if err != nil {
				return err
			}
			return o.verify(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&flags.container, "container", "c", "", "Look into this container only.")
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "Output format: json or yaml.")
	completeFormat(cmd, verifyFormats)
	return cmd
}

var verifyFormats = []string{"json", "yaml"}

func (f *verifyFlags) toOptions(args []string) (*verifyOptions, error) {
	if err := checkFormat(f.output, verifyFormats...); err != nil {
		return nil, err
	}
	if len(args) != 1 {
		return nil, usagef("name one pod")
	}
	name := strings.TrimPrefix(strings.TrimPrefix(args[0], "pods/"), "pod/")
	if name == "" || strings.Contains(name, "/") {
		return nil, usagef("%q names no pod: write its name", args[0])
	}
	kinds, err := f.allKinds()
	if err != nil {
		return nil, err
	}
	namespace, err := f.session.namespace()
	if err != nil {
		return nil, err
	}
	survey, err := f.session.survey(kinds)
	if err != nil {
		return nil, err
	}
	survey.Namespace = namespace
	config, err := f.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	execs, err := cluster.NewExecs(config)
	if err != nil {
		return nil, err
	}
	return &verifyOptions{
		IOStreams: f.IOStreams, survey: survey, namespace: namespace, pod: name, container: f.container, output: f.output, run: execs.Run,
		getPod: func(ctx context.Context) (*corev1.Pod, error) {
			pod := &corev1.Pod{}
			err := survey.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)
			if client.IgnoreNotFound(err) == nil && err != nil {
				err = fmt.Errorf("pod %s is not found in namespace %s", name, namespace)
			}
			return pod, err
		},
	}, nil
}

func (o *verifyOptions) verify(ctx context.Context) error {
	pod, err := o.getPod(ctx)
	if err != nil {
		return err
	}
	sight, err := o.survey.Read(ctx)
	if err != nil {
		return err
	}
	return o.check(ctx, pod, sight)
}

// check looks into the pod, and compares what it finds with what is known of it.
func (o *verifyOptions) check(ctx context.Context, pod *corev1.Pod, sight *cluster.Sight) error {
	w, err := workloadOf(sight, o.pod)
	if err != nil {
		o.remark(sight) // which may be why
		return err
	}
	var checks []fleet.Check
	looked := false
	for _, c := range running(&pod.Spec) {
		if o.container != "" && c.Name != o.container {
			continue
		}
		looked = true
		found, err := o.lookInto(ctx, pod, c, w)
		if err != nil {
			return err
		}
		checks = append(checks, fleet.Verify(w.Fleet, o.pod, c.Name, found)...)
	}
	if !looked {
		return fmt.Errorf("pod %s has no container %s", o.pod, o.container)
	}
	o.sort(checks)
	if err := o.print(w, sight, checks); err != nil {
		return err
	}
	if slices.ContainsFunc(checks, func(c fleet.Check) bool { return c.Outcome == fleet.Wrong }) {
		return errWrong
	}
	return nil
}

// running are the containers that run as long as the pod: its own, behind the init containers that are restarted.
func running(spec *corev1.PodSpec) []*corev1.Container {
	var out []*corev1.Container
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			out = append(out, c)
		}
	}
	for i := range spec.Containers {
		out = append(out, &spec.Containers[i])
	}
	return out
}

func (o *verifyOptions) remark(sight *cluster.Sight) {
	for _, r := range sight.Remarks {
		fmt.Fprintln(o.ErrOut, "remark:", r)
	}
}

// workloadOf is the workload of whose fleet the pod is.
func workloadOf(sight *cluster.Sight, pod string) (cluster.Workload, error) {
	for _, w := range sight.Workloads {
		for _, p := range w.Fleet.Pods {
			if p.Name == pod {
				return w, nil
			}
		}
	}
	if len(sight.Remarks) > 0 {
		return cluster.Workload{}, fmt.Errorf("of which workload pod %s is, is not known: it is of none that could be read", pod)
	}
	return cluster.Workload{}, fmt.Errorf("pod %s is of no workload that Tidemark knows", pod)
}

// lookInto looks into a container. What it finds is of the run that is known, or it finds nothing.
func (o *verifyOptions) lookInto(ctx context.Context, pod *corev1.Pod, c *corev1.Container, w cluster.Workload) (fleet.Looked, error) {
	if runOf(pod, c.Name) == "" {
		return cannotLook("the container does not run"), nil
	}
	look := cluster.Look{
		Pod: pod, Source: sourcesIn(w, pod.Name), Keys: w.KeysEver,
		Run: func(ctx context.Context, container string, command ...string) ([]byte, error) {
			return o.run(ctx, pod.Namespace, pod.Name, container, command...)
		},
	}
	found, err := look.Into(ctx, c)
	if err != nil {
		return found, err
	}
	now, err := o.getPod(ctx)
	if err != nil {
		return found, err
	}
	if now.UID != pod.UID || runOf(now, c.Name) != runOf(pod, c.Name) || !o.known(w, pod, c.Name) {
		return cannotLook("the container started again meanwhile"), nil
	}
	return found, nil
}

func cannotLook(why string) fleet.Looked { return fleet.Looked{NoEnv: why, NoFiles: why} }

// known reports whether the run of the container is the one of which the fleet's facts are.
func (o *verifyOptions) known(w cluster.Workload, pod *corev1.Pod, container string) bool {
	of := cluster.PodOf(pod)
	for _, p := range w.Fleet.Pods {
		for _, c := range p.Containers {
			if p.UID != of.UID || c.Name != container {
				continue
			}
			return slices.ContainsFunc(of.Containers, func(d fleet.Container) bool {
				return d.Name == container && d.Restarts == c.Restarts && d.Started.Equal(c.Started)
			})
		}
	}
	return false
}

// runOf identifies the present run of a container; "" when it does not run.
func runOf(pod *corev1.Pod, container string) string {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.Name == container && s.State.Running != nil {
			return s.ContainerID + s.State.Running.StartedAt.String()
		}
	}
	return ""
}

// sourcesIn tells of which object a name in the pod's spec is the snapshot.
func sourcesIn(w cluster.Workload, pod string) func(container string, o workload.Object) workload.Object {
	return func(container string, o workload.Object) workload.Object {
		for _, p := range w.Fleet.Pods {
			for _, c := range p.Containers {
				if p.Name != pod || c.Name != container {
					continue
				}
				for _, u := range c.Pinned {
					if u.Snapshot == o.Name && u.Use.Object.Kind == o.Kind && !u.Shared {
						return u.Use.Object
					}
				}
			}
		}
		return o
	}
}

// sort puts what is wrong first.
func (*verifyOptions) sort(checks []fleet.Check) {
	rank := map[fleet.Outcome]int{fleet.Wrong: 0, fleet.Right: 1, fleet.Unverified: 2}
	slices.SortStableFunc(checks, func(a, b fleet.Check) int { return rank[a.Outcome] - rank[b.Outcome] })
}

func (o *verifyOptions) print(w cluster.Workload, sight *cluster.Sight, checks []fleet.Check) error {
	if o.output != "" {
		return printDocument(o.Out, o.output, o.document(w, sight, checks))
	}
	o.remark(sight)
	if len(checks) == 0 {
		fmt.Fprintf(o.ErrOut, "Pod %s reads no configuration.\n", o.pod)
		return nil
	}
	out := printers.GetNewTabWriter(o.Out)
	fmt.Fprintln(out, "CONTAINER\tOBJECT\tLOADED\tEVIDENCE\tOUTCOME\tFILES\tWHY")
	for _, c := range checks {
		fmt.Fprintln(out, strings.Join([]string{
			c.Container, relativeTo(w.Namespace, c.Object.String()), dash(c.Digest.Short()), string(c.Evidence), string(c.Outcome),
			dash(c.Files), c.Why,
		}, "\t"))
	}
	return out.Flush()
}

func (o *verifyOptions) document(w cluster.Workload, sight *cluster.Sight, checks []fleet.Check) v1.Verification {
	out := v1.Verification{
		APIVersion: v1.APIVersion, Kind: v1.KindVerification, Time: seconds(sight.Now), Namespace: o.namespace, Pod: o.pod,
		Workload: w.String(), Checks: []v1.VerificationCheck{}, Remarks: sight.Remarks,
	}
	for _, c := range checks {
		out.Checks = append(out.Checks, v1.VerificationCheck{
			Container: c.Container, Object: c.Object.String(), Digest: string(c.Digest), Applied: string(c.Applied), Evidence: string(c.Evidence),
			Outcome: string(c.Outcome), Why: c.Why, Differs: c.Differs, Files: c.Files,
		})
	}
	return out
}
