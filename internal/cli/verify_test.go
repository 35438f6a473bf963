package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	"tidemark.dev/tidemark/internal/cluster"
)

// looking are options that look into one of the mailer's pods, of which commands print what is given.
func looking(prints map[string]string) (o *verifyOptions, pod *corev1.Pod, out, errOut *bytes.Buffer) {
	w := mailer()
	of := w.Fleet.Pods[0]
	pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mail", Name: of.Name, UID: "", CreationTimestamp: metav1.NewTime(of.Created)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:    "mailer",
			EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "mailer"}}, Prefix: "MAIL_"}},
			Env: []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "smtp"}, Key: "password",
			}}}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "mailer", ContainerID: "c1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(of.Containers[0].Started)}},
		}}},
	}
	out, errOut = &bytes.Buffer{}, &bytes.Buffer{}
	o = &verifyOptions{
		IOStreams: genericiooptions.IOStreams{Out: out, ErrOut: errOut}, namespace: "mail", pod: of.Name,
		getPod: func(context.Context) (*corev1.Pod, error) { return pod, nil },
		run: func(_ context.Context, _, _, _ string, command ...string) ([]byte, error) {
			text, ok := prints[strings.Join(command, " ")]
			if !ok {
				return nil, errors.New("executable file not found in $PATH")
			}
			return []byte(text), nil
		},
	}
	return o, pod, out, errOut
}

const secretly = "PASSWORD=MARKER\x00"

func TestVerifyPrints(t *testing.T) {
	for name, tc := range map[string]struct {
		prints map[string]string
		wrong  bool
	}{
		"right":  {map[string]string{"cat /proc/1/environ": "MAIL_LEASE=10m\x00MAIL_OLD=x\x00MAIL_API_TOKEN=t1\x00" + secretly}, false},
		"wrong":  {map[string]string{"env -0": "MAIL_LEASE=2m\x00MAIL_NEW=y\x00MAIL_API_TOKEN=t2\x00" + secretly}, true},
		"cannot": {nil, false},
	} {
		for _, format := range []string{"", "json"} {
			t.Run(name+" "+format, func(t *testing.T) {
				o, pod, out, errOut := looking(tc.prints)
				o.output = format
				s := sight()
				s.Remarks = nil
				if err := o.check(t.Context(), pod, s); errors.Is(err, errWrong) != tc.wrong || err != nil && !tc.wrong {
					t.Errorf("error %v", err)
				}
				golden(t, "verify-"+name+"."+map[string]string{"": "txt", "json": "json"}[format], out.String())
				if strings.Contains(out.String()+errOut.String(), "MARKER") {
					t.Error("it prints a Secret")
				}
				for _, value := range []string{"10m", "t1", "t2"} {
					if strings.Contains(out.String(), value) {
						t.Errorf("it prints the value %q", value)
					}
				}
			})
		}
	}
}

func TestVerifyOfARunThatIsOver(t *testing.T) {
	o, pod, out, _ := looking(map[string]string{"env -0": "MAIL_LEASE=2m\x00"})
	again := pod.DeepCopy()
	again.Status.ContainerStatuses[0].ContainerID = "c2"
	o.getPod = func(context.Context) (*corev1.Pod, error) { return again, nil }
	if err := o.check(t.Context(), pod, sight()); err != nil || !strings.Contains(out.String(), "cannot look: the container started again meanwhile") {
		t.Errorf("printed %q, %v", out, err)
	}
}

func TestVerifyWithoutTheRight(t *testing.T) {
	o, pod, out, _ := looking(nil)
	o.run = func(context.Context, string, string, string, ...string) ([]byte, error) {
		return nil, &cluster.ForbiddenExecError{Namespace: "mail"}
	}
	err := o.check(t.Context(), pod, sight())
	if err == nil || err.Error() != "missing the right to create pods/exec in namespace mail" || out.Len() > 0 {
		t.Errorf("printed %q, %v", out, err)
	}
}

func TestVerifyOfWhatIsNotThere(t *testing.T) {
	o, pod, _, _ := looking(nil)
	o.container = "other"
	if err := o.check(t.Context(), pod, sight()); err == nil || err.Error() != "pod mailer-7f9-a has no container other" {
		t.Errorf("error %v", err)
	}
	o.pod = "stray"
	s := sight()
	s.Remarks = nil
	if err := o.check(t.Context(), pod, s); err == nil || err.Error() != "pod stray is of no workload that Tidemark knows" {
		t.Errorf("error %v", err)
	}
}

func TestVerifyDoesNotKnowAWorkloadThatCouldNotBeRead(t *testing.T) {
	o, pod, _, errOut := looking(nil)
	o.pod = "stray"
	s := sight()
	s.Remarks = []string{"missing the right to list daemonsets in namespace mail"}
	if err := o.check(t.Context(), pod, s); err == nil || !strings.HasPrefix(err.Error(), "of which workload pod stray is, is not known") {
		t.Errorf("error %v", err)
	}
	if want := "remark: missing the right to list daemonsets in namespace mail\n"; errOut.String() != want {
		t.Errorf("said %q, want %q", errOut, want)
	}
}

func TestVerifyLooksIntoSidecars(t *testing.T) {
	o, pod, out, _ := looking(map[string]string{"cat /proc/1/environ": "MAIL_LEASE=10m\x00MAIL_OLD=x\x00MAIL_API_TOKEN=t1\x00"})
	sidecar := pod.Spec.Containers[0].DeepCopy()
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	pod.Spec.InitContainers, pod.Spec.Containers = []corev1.Container{*sidecar, {Name: "once"}}, nil
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = pod.Status.ContainerStatuses, nil
	s := sight()
	s.Remarks = nil
	if err := o.check(t.Context(), pod, s); err != nil || !strings.Contains(out.String(), "right") {
		t.Errorf("printed %q, %v", out, err)
	}
}
