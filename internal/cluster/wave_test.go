package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "tidemark.dev/tidemark/api/v1"
)

func TestWaveScheduler(t *testing.T) {
	disabled := func(optIn, name string) map[string]string {
		return map[string]string{v1.WaveOptIn: optIn, v1.WaveSchedulingDisabled: name}
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		scheduler   string
		want        string // "none" where there is nothing to give back
	}{
		"Wave took it away: the name that it noted": {disabled("true", "gpu-scheduler"), v1.WaveSchedulerInvalid, "gpu-scheduler"},
		"Wave noted no name: the API's default":     {disabled("true", ""), v1.WaveSchedulerInvalid, ""},
		"Wave noted its own: the API's default":     {disabled("true", v1.WaveSchedulerInvalid), v1.WaveSchedulerInvalid, ""},
		"somebody else gave another one":            {disabled("true", "default-scheduler"), "gpu-scheduler", "none"},
		"it did not opt in to Wave":                 {disabled("false", "default-scheduler"), v1.WaveSchedulerInvalid, "none"},
		"Wave noted nothing":                        {map[string]string{v1.WaveOptIn: "true"}, v1.WaveSchedulerInvalid, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			got := "none"
			if s := WaveScheduler(tc.annotations, &corev1.PodTemplateSpec{Spec: corev1.PodSpec{SchedulerName: tc.scheduler}}); s != nil {
				got = *s
			}
			if got != tc.want {
				t.Errorf("scheduler %q, want %q", got, tc.want)
			}
		})
	}
}
