package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"tidemark.dev/tidemark/internal/fleet"
)

// pausedCanary is a Rollout as the API shows it while its canary waits.
const pausedCanary = `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop, uid: u, generation: 4}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  strategy: {canary: {steps: [{setWeight: 20}, {pause: {}}, {setWeight: 60}, {pause: {duration: 90}}, {pause: {duration: 1h}}]}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "web:2", resources: {limits: {cpu: 1}}}]}}
status:
  observedGeneration: "4"
  phase: Paused
  message: CanaryPauseStep
  controllerPause: true
  pauseConditions: [{reason: CanaryPauseStep, startTime: "2026-08-01T10:00:00Z"}]
  currentStepIndex: 1
  currentPodHash: new
  stableRS: old
  replicas: 5
  updatedReplicas: 1
  conditions: [{type: Completed, status: "False", lastTransitionTime: "2026-08-01T09:00:00Z"}]
`

// argoWith is that Rollout with fields of its spec, status or metadata changed; "-" as the value takes one away.
func argoWith(t *testing.T, changes ...string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSON([]byte(pausedCanary))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		path, value, _ := strings.Cut(c, "=")
		fields := strings.Split(path, ".")
		if value == "-" {
			unstructured.RemoveNestedField(u.Object, fields...)
			continue
		}
		var v any
		if err := yaml.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(u.Object, runtime.DeepCopyJSONValue(whole(v)), fields...); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// whole makes the whole numbers of a document what the API has them as.
func whole(v any) any {
	switch t := v.(type) {
	case float64:
		return int64(t)
	case map[string]any:
		for k := range t {
			t[k] = whole(t[k])
		}
	case []any:
		for i := range t {
			t[i] = whole(t[i])
		}
	}
	return v
}

func TestARolloutTellsHowFarItIs(t *testing.T) {
	done := []string{"status.currentPodHash=old", "status.updatedReplicas=5", "status.pauseConditions=-", "status.controllerPause=false", "status.phase=Healthy"}
	for name, tc := range map[string]struct {
		changes []string
		done    bool
		stuck   string
	}{
		"at a pause":                            {nil, false, "the canary pauses at step 2 of 5 until somebody promotes it (CanaryPauseStep)"},
		"at a pause that ends":                  {[]string{"status.currentStepIndex=3"}, false, "the canary pauses at step 4 of 5 for 1m30s"},
		"done":                                  {done, true, ""},
		"done, and not seen yet":                {append(slices.Clone(done), "metadata.generation=5"), false, ""},
		"done, with old pods left":              {append(slices.Clone(done), "status.replicas=6"), false, ""},
		"somebody went on a moment ago":         {[]string{"status.pauseConditions=-"}, false, ""},
		"a person's pause":                      {[]string{"spec.paused=true"}, false, "spec.paused is set"},
		"aborted, where the condition stays":    {[]string{"status.abort=true", "status.pauseConditions=-", "status.controllerPause=false"}, false, "aborted"},
		"a blue-green Rollout waits":            {[]string{"status.pauseConditions=[{reason: BlueGreenPause}]"}, false, "promoted (BlueGreenPause)"},
		"an analysis did not decide":            {[]string{"status.pauseConditions=[{reason: InconclusiveAnalysisRun}]"}, false, "InconclusiveAnalysisRun"},
		"its controller gave up":                {[]string{"status.pauseConditions=-", "status.controllerPause=false", "status.phase=Degraded", "status.message=too slow"}, false, "too slow"},
		"the template elsewhere is another one": {append(slices.Clone(done), `metadata.annotations={rollout.argoproj.io/workload-generation: "2"}`, `status.workloadObservedGeneration="1"`), false, ""},
		"fields that are not as they should be": {[]string{"status.replicas=many"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := RolloutOf(argoWith(t, tc.changes...))
			if r.Done != tc.done || (r.Stuck == "") != (tc.stuck == "") || !strings.Contains(r.Stuck, tc.stuck) {
				t.Errorf("it is done %v, stuck %q; want %v, %q", r.Done, r.Stuck, tc.done, tc.stuck)
			}
		})
	}
}

func TestTheWeightOfACanary(t *testing.T) {
	for name, tc := range map[string]struct {
		changes []string
		want    int
		has     bool
	}{
		"is that of the last step that sets one":   {nil, 20, true},
		"or the one before":                        {[]string{"status.currentStepIndex=3"}, 60, true},
		"is none before the first":                 {[]string{"spec.strategy.canary.steps=[{pause: {}}]", "status.currentStepIndex=0"}, 0, true},
		"is all after the last":                    {[]string{"status.currentStepIndex=5"}, 100, true},
		"is none after an abort":                   {[]string{"status.abort=true"}, 0, true},
		"is what the traffic router has":           {[]string{"status.canary={weights: {canary: {weight: 33}}}"}, 33, true},
		"is nothing that a blue-green Rollout has": {[]string{"spec.strategy={blueGreen: {}}"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, has := readArgo(argoWith(t, tc.changes...)).weight(); got != tc.want || has != tc.has {
				t.Errorf("it is %d, %v; want %d, %v", got, has, tc.want, tc.has)
			}
		})
	}
}

func TestThePausesOfACanaryThatEndAreInItsBudget(t *testing.T) {
	p := PaceOf(argoWith(t))
	if p.Pauses != 90*time.Second+time.Hour || p.Replicas != 5 || p.MaxSurge != 2 || p.MaxUnavailable != 1 {
		t.Errorf("its pace is %+v", p)
	}
}

func TestATemplateElsewhere(t *testing.T) {
	kind := BuiltinKinds()[4]
	deployment := "spec.workloadRef={apiVersion: apps/v1, kind: Deployment, name: web}"
	for name, tc := range map[string]struct {
		changes  []string
		known    bool
		problems int
	}{
		"in a Deployment":                    {[]string{"spec.template=-", deployment}, true, 0},
		"in a Deployment, and an empty one":  {[]string{"spec.template={}", deployment}, true, 0},
		"with an annotation of the template": {[]string{"spec.template=-", deployment, "metadata.annotations={tidemark.dev/mode: pin, tidemark.dev/promote-after: 2h}"}, true, 1},
		"in what nothing is known of":        {[]string{"spec.template=-", "spec.workloadRef={apiVersion: v1, kind: PodTemplate, name: web}"}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			u := argoWith(t, tc.changes...)
			_, err := kind.Template(u)
			var other *ElsewhereError
			if !errors.As(err, &other) {
				t.Fatalf("reading the template gives %v", err)
			}
			if other.Known() != tc.known || len(other.Problems(u.GetAnnotations())) != tc.problems {
				t.Errorf("known %v, problems %q; want %v, %d", other.Known(), other.Problems(u.GetAnnotations()), tc.known, tc.problems)
			}
			if revisions, err := Retained(t.Context(), nil, u); err != nil || revisions != nil {
				t.Errorf("its revisions are %v, %v; want none", revisions, err)
			}
		})
	}
}

// setOfRollout is a ReplicaSet of that Rollout.
func setOfRollout(t *testing.T, name, hash, image string, number, created string, pods string, more ...string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSON([]byte(`
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: ` + name + `
  namespace: shop
  creationTimestamp: "` + created + `"
  labels: {app: web, rollouts-pod-template-hash: ` + hash + `}
  annotations: {rollout.argoproj.io/revision: "` + number + `", rollout.argoproj.io/revision-history: "1,1"` + strings.Join(more, "") + `}
  ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web, uid: u, controller: true}]
spec:
  replicas: ` + pods + `
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, role: stable, rollouts-pod-template-hash: ` + hash + `}}
    spec:
      dnsPolicy: ClusterFirst
      restartPolicy: Always
      containers: [{name: app, image: "` + image + `", imagePullPolicy: IfNotPresent, resources: {limits: {cpu: "1"}}}]
status: {replicas: ` + pods + `}
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return u
}

const ephemeralRole = `, rollout.argoproj.io/ephemeral-metadata: '{"labels":{"role":"stable"}}'`

func TestTheRevisionsOfARolloutAreFoundAsItsControllerFindsThem(t *testing.T) {
	labelled := `spec.template.metadata.labels={app: web, role: stable}`
	injects := "spec.strategy.canary.stableMetadata={labels: {role: stable}}"
	for name, tc := range map[string]struct {
		changes []string
		set     string
		want    bool
	}{
		"the template is completed on the one side": {nil, ephemeralRole, true},
		"another image": {[]string{`spec.template.spec={containers: [{name: app, image: "web:1"}]}`}, ephemeralRole, false},
		"metadata that was put on it counts where it stays":        {[]string{labelled}, "", true},
		"an undo took along what was put on it":                    {[]string{labelled, injects}, ephemeralRole, true},
		"a label of that name that the Rollout does not put there": {[]string{labelled}, ephemeralRole, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(setOfRollout(t, "web-new", "new", "web:2", "7", "2026-08-01T09:00:00Z", "1", tc.set)).Build()
			revisions, err := Retained(t.Context(), c, argoWith(t, tc.changes...))
			if err != nil || len(revisions) != 1 {
				t.Fatalf("revisions are %+v, %v", revisions, err)
			}
			if r := revisions[0]; r.Matches != tc.want || r.Number != 7 || r.Renumbered || r.Name != "web-new" {
				t.Errorf("it is %+v, want it to match: %v", r, tc.want)
			}
		})
	}
}

func TestTheAgeOfAnUnfinishedRolloutIsThatOfItsNewerRevision(t *testing.T) {
	at := func(clock string) time.Time {
		out, err := time.Parse(time.RFC3339, "2026-08-01T"+clock+"Z")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, tc := range map[string]struct {
		newer, older string // created
		want         time.Time
	}{
		"when its ReplicaSet was made":                             {"2026-08-01T08:30:00Z", "2026-07-01T00:00:00Z", at("08:30:00")},
		"when the rollout began that made it the newest again":     {"2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z", at("09:00:00")},
		"when the other was made, if that was after the condition": {"2026-06-01T00:00:00Z", "2026-08-01T09:30:00Z", at("09:30:00")},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(
				setOfRollout(t, "web-new", "new", "web:2", "3", tc.newer, "1"), setOfRollout(t, "web-old", "old", "web:1", "2", tc.older, "4"),
			).Build()
			u := argoWith(t, "metadata.annotations={meta.helm.sh/release-name: shop}")
			if !MayStayUnfinished(u) {
				t.Fatal("it is not looked at")
			}
			p, err := PartialOf(t.Context(), c, u, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			found := p.UnfinishedAt(at("12:00:00"))
			if found == nil || !found.Since.Equal(tc.want) || !found.Overdue || found.Revision != "web-new" || found.Cause != fleet.CanaryPause ||
				found.Step != 2 || found.Steps != 5 || *found.Weight != 20 || found.Owner != "Helm release shop" || found.Pods != 1 || found.All != 5 {
				t.Errorf("it is %+v, want since %s", found, tc.want)
			}
		})
	}
}

func TestWhatACanarySaysOfItsPause(t *testing.T) {
	after := "metadata.annotations={tidemark.dev/promote-after: 2h}"
	for name, tc := range map[string]struct {
		changes []string
		waits   bool
		causes  []fleet.Cause
		timed   bool
	}{
		"a step":                        {[]string{after}, true, []fleet.Cause{fleet.CanaryPause}, false},
		"a step that ends by itself":    {[]string{after, "status.currentStepIndex=3"}, true, []fleet.Cause{fleet.CanaryPause}, true},
		"a person's pause comes first":  {[]string{after, "spec.paused=true"}, true, []fleet.Cause{fleet.PausedByPerson, fleet.CanaryPause}, false},
		"two reasons":                   {[]string{after, "status.pauseConditions=[{reason: CanaryPauseStep}, {reason: InconclusiveAnalysisRun}]"}, true, []fleet.Cause{fleet.CanaryPause, fleet.Inconclusive}, false},
		"not seen":                      {[]string{after, "metadata.generation=9"}, false, nil, false},
		"somebody went on a moment ago": {[]string{after, "status.pauseConditions=-"}, false, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, waits := CanaryOf(argoWith(t, tc.changes...))
			if waits != tc.waits || !slices.Equal(c.Causes, tc.causes) || c.Timed != tc.timed || waits && c.After != 2*time.Hour {
				t.Errorf("it waits %v: %+v", waits, c)
			}
		})
	}
}
